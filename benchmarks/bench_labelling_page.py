"""Ten people at the labelling page of 50,000 items: how long does the next item take?

Each person is a thread of another process, which asks as the page does: it waits for news, fetches
the next items in advance, sends a label after a while, and asks for more. The time to the next item
is that of the request for more items, as if nothing had been fetched in advance.
"""

import argparse
import gc
import http.client
import json
import multiprocessing
import os
import shutil
import tempfile
import threading
import time
from urllib.parse import urlsplit

import numpy as np

import graphuq as gq
from graphuq.labelling.address import path_of

THINKING_S = 1.0  # of a person, from an item to its label


def people_at(address, token, truth, n_people, seconds):
    """Let people label for a while; return milliseconds of each request, by kind."""
    place, base = urlsplit(address).netloc, path_of(token)
    found = {"next item": [], "label": [], "news": []}
    until = time.monotonic() + seconds

    def ask(kind, method, path, body=None):
        began = time.perf_counter()
        connection = http.client.HTTPConnection(place, timeout=120)
        headers = {"Cookie": f"graphuq={token}", "Origin": f"http://{place}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, base + path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        assert answer.status == 200, content[:200]
        found[kind].append(1000 * (time.perf_counter() - began))
        return json.loads(content)

    def follow(user):
        revision = -1
        while time.monotonic() < until:
            state = ask("news", "GET", f"/api/state?user={user}&tab=t&after={revision}")
            revision = state["revision"]

    def work(user, seed):
        rng = np.random.default_rng(seed)
        while time.monotonic() < until:
            card = ask("next item", "GET", f"/api/queue?user={user}&tab=t&n=8")[0]
            time.sleep(THINKING_S * rng.uniform(0.5, 1.5))
            kind = "blind" if "blind" in card else "label"
            body = {"user": user, "rows": [card["row"]], "label": truth[card["row"]],
                    "version": card["version"], "kind": kind}  # fmt: skip
            ask("label", "POST", "/api/label", json.dumps(body))

    threads = [
        threading.Thread(target=act, args=arguments)
        for k in range(n_people)
        for act, arguments in ((follow, (f"p{k}",)), (work, (f"p{k}", k)))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def person_in_browser(address, truth, seconds):
    """Label by keys in Chromium; return milliseconds from a key to the frame of the next item."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    shown = "() => !['', 'Item'].includes(document.getElementById('item-name').textContent)"
    watch = """() => { const at = document.getElementById("item-name"); let began = 0;
        document.addEventListener("keydown", () => { began = performance.now(); }, true);
        new MutationObserver(() => at.textContent === "" || requestAnimationFrame(() => {
          window.painted = performance.now() - began; })).observe(at, { childList: true }); }"""
    found, until = [], time.monotonic() + seconds
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(address)
        tab.wait_for_function(shown)
        tab.wait_for_selector("#classes button")
        tab.evaluate(watch)
        while time.monotonic() < until:
            tab.wait_for_timeout(1000 * THINKING_S)
            tab.wait_for_function(shown)
            name = truth[int(tab.text_content("#item-name"))]
            tab.evaluate("window.painted = null")
            tab.keyboard.press(name)
            tab.wait_for_function("() => window.painted !== null")
            found.append(tab.evaluate("window.painted"))
        browser.close()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--people", type=int, default=10)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--known", type=int, default=2, help="labels of each class before")
    parser.add_argument("--browser", action="store_true", help="one of them in Chromium")
    parser.add_argument("--seconds", type=float, default=120.0)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    codes = rng.integers(given.classes, size=given.items)
    X = 2.5 * rng.normal(size=(given.classes, 20))[codes] + rng.normal(size=(given.items, 20))
    truth = [f"{k}" for k in codes]  # of one letter, which is their key
    y = np.full(given.items, "", dtype=object)
    for k in range(given.classes):
        y[np.flatnonzero(codes == k)[: given.known]] = f"{k}"
    began, used = time.monotonic(), time.process_time()
    path = os.path.join(tempfile.mkdtemp(), "labels.jsonl")
    with gq.label(X, y=y, labels=path, open_browser=False, overlap=0.1) as page:
        page.session.wait_until_current(1800)
        gc.freeze()  # as the command does
        print(f"{given.items:,} items, {given.classes} classes: page is ready after "
              f"{time.monotonic() - began:.0f} s, {time.process_time() - used:.0f} of the "
              f"processor (load {os.getloadavg()[0]:.1f})")  # fmt: skip
        began, used = time.monotonic(), time.process_time()
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            n_people = given.people - given.browser
            arguments = page.origin, page.token, truth, n_people, given.seconds
            crowd = pool.apply_async(people_at, arguments)
            painted = []
            if given.browser:
                painted = pool.apply(person_in_browser, (page.address, truth, given.seconds))
            found = crowd.get()
        versions = {record.model for record in page.session.store.records}
        n_labels = len(page.session.store.labels())
        print(f"{given.people} people, {n_labels} labels, {len(versions)} models seen, "
              f"{(time.process_time() - used) / (time.monotonic() - began):.2f} processors busy, "
              f"load {os.getloadavg()[0]:.1f}")  # fmt: skip
        found["key to frame"] = painted
        for kind in ("next item", "label", "key to frame"):
            if not found[kind]:
                continue
            ms = np.percentile(found[kind], (50, 95, 99, 100))
            print(f"| {kind} | {len(found[kind])} | " + " | ".join(f"{v:.0f}" for v in ms) + " |")


if __name__ == "__main__":
    main()
