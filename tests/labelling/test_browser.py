"""The labelling page in a real browser, offline; skipped in words without one."""

import contextlib
import http.server
import json
import re
import signal
import threading
import time
from importlib import resources

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.labelling.notebook import forward, page_text
from labelling.browsing import SHOWN, keys, label, name, press, saved, start
from labelling.programs import running

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="pip install playwright, to test pages in a browser"
)
pytest.importorskip("uvicorn", reason="pip install graphuq[label], to test the page")

HOSTILE = '<img src="/x" onerror="document.title=1"><script>document.title=2</script>'
SERVE = """
import sys, numpy as np, graphuq as gq
digits = gq.datasets.load_digits()
page = gq.label(digits.data[:300], digits.data[:300].reshape(-1, 8, 8), labels=sys.argv[1],
                open_browser=False, user="ada")
print(page.address, flush=True)
page.wait()
"""


@pytest.fixture(scope="module")
def digits():
    return gq.datasets.load_digits()


@pytest.fixture
def page(digits, tmp_path):
    """150 digits, four of which have a label."""
    rows, y = np.arange(150), np.full(150, "", dtype=object)
    y[:4] = digits.target[:4].astype(int).astype(str)
    y[4:] = ""
    pictures = digits.data[rows].reshape(-1, 8, 8)
    with gq.label(digits.data[rows], pictures, y=y, labels=tmp_path / "labels.jsonl",
                  open_browser=False, user="ada", title="Digits") as opened:  # fmt: skip
        yield opened


@pytest.mark.parametrize("n_labels", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_digits_are_labelled_by_keys(page, tab, digits, n_labels):
    """Labels by keys, one of them taken back; the file has what was given."""
    start(tab, page)
    assert "token" not in tab.url
    assert all(key == name for name, key in keys(tab).items())  # digits have their own keys
    tab.wait_for_selector("#classes .bar b")  # intervals
    given = {}
    for _ in range(n_labels):
        row = int(name(tab))
        given[row] = str(int(digits.target[row]))
        label(tab, given[row])
    assert saved(page, n_labels) == given
    assert {record.user for record in page.session.store.records} == {"ada"}
    tab.keyboard.press("u")
    tab.wait_for_function(
        "() => document.getElementById('said').textContent.startsWith('Taken back')"
    )
    row = int(name(tab))
    assert row == list(given)[-1]
    del given[row]
    assert page.session.store.labels() == given
    tab.wait_for_function(
        f"() => document.getElementById('counts').textContent.startsWith('{n_labels + 3} of')"
    )
    label(tab, "9")  # the correction of a person
    assert saved(page, n_labels + 2)[row] == "9"


@pytest.mark.slow
def test_a_late_queue_brings_no_item_back(page, tab, digits):
    """The queue arrives a second after it was made; items labelled meanwhile are still in it."""
    start(tab, page)
    tab.evaluate(
        """() => { const real = window.fetch; window.fetch = async (...given) => {
        const answer = await real(...given);
        if (String(given[0]).includes("/api/queue")) await new Promise(f => setTimeout(f, 1000));
        return answer; }; }"""
    )
    rows = []
    for _ in range(20):
        tab.wait_for_function(SHOWN)
        rows.append(int(name(tab)))
        label(tab, str(int(digits.target[rows[-1]])))
        tab.wait_for_timeout(100)
    assert len(set(rows)) == 20


def watch_paint(tab):
    """Let the page note the time from a key to the paint of another item."""
    tab.evaluate(
        """() => { const at = document.getElementById("item-name"); let began = 0;
        document.addEventListener("keydown", () => { began = performance.now(); }, true);
        new MutationObserver(() => at.textContent === "" || requestAnimationFrame(() => {
          window.painted = performance.now() - began; })).observe(at, { childList: true }); }"""
    )


def paint_after(tab, key):
    """Return the milliseconds from a key to the frame that shows the next item."""
    tab.evaluate("window.painted = null")
    tab.keyboard.press(key)
    tab.wait_for_function("() => window.painted !== null")
    return tab.evaluate("window.painted")


@pytest.mark.slow
def test_undo_gives_back_the_same_bars(page, tab):
    start(tab, page)
    tab.wait_for_function("() => document.querySelector('#classes .share').textContent !== ''")
    shares = "Array.from(document.querySelectorAll('#classes .share'), s => s.textContent)"
    before, first = tab.evaluate(shares), name(tab)
    assert len([share for share in before if share]) == 4
    probabilities = page.session.wait_until_current().probabilities
    press(tab, "1")
    saved(page, 1)
    page.session.wait_until_current()
    tab.keyboard.press("u")
    tab.wait_for_function("x => document.getElementById('item-name').textContent === x", arg=first)
    assert tab.evaluate(shares) == before
    assert np.array_equal(page.session.wait_until_current().probabilities, probabilities)


@pytest.mark.slow
def test_accept_skip_search_and_look_alikes(page, tab):
    start(tab, page)
    tab.wait_for_function("() => document.querySelector('#classes .share').textContent !== ''")
    tab.wait_for_timeout(700)  # a change of the likeliest class hinders "Accept" for a moment
    likeliest, first = tab.text_content("#accept b"), int(name(tab))
    press(tab, " ")
    assert saved(page, 1) == {first: likeliest}
    (record,) = page.session.store.records
    assert record.probability > 0.25
    assert record.model >= 1
    skipped = name(tab)
    press(tab, "s")
    tab.keyboard.press("/")
    tab.keyboard.type("149")
    tab.wait_for_function("() => document.getElementById('hits-note').textContent === '1 found'")
    tab.click("#hits button")
    tab.wait_for_function("() => document.getElementById('item-name').textContent === '149'")
    tab.keyboard.press("g")
    tab.wait_for_selector("#alikes li:nth-child(5)")
    tab.click("#alike-all")
    tab.uncheck("#alikes li:nth-child(2) input")
    chosen, text = tab.input_value("#alike-class"), tab.text_content("#alike-accept")
    tab.click("#alike-accept")
    n = int(text.split()[1])
    labels = saved(page, n + 1)
    assert n > 3
    assert len(labels) == n + 1
    assert labels[149] == chosen
    assert int(skipped) not in labels
    tab.wait_for_function("() => document.getElementById('item-name').textContent !== '149'")
    tab.focus("#item-name")
    tab.keyboard.press("u")  # all of them together
    tab.wait_for_function("() => document.getElementById('said').textContent.endsWith('items.')")
    assert page.session.store.labels() == {first: likeliest}


@pytest.mark.slow
def test_the_map_opens_items_and_queues_a_selection(page, tab):
    start(tab, page)
    tab.click("#map-panel summary")
    tab.wait_for_function(
        "() => document.getElementById('map').getAttribute('role') === 'application'"
    )
    tab.focus("#map")
    tab.keyboard.press("s")
    tab.click("#map-queue:enabled")
    tab.wait_for_function("() => document.getElementById('said').textContent.includes('come next')")
    assert page.session._turns._wishes


def test_hostile_text_is_inert(tab, tmp_path):
    features = gq.datasets.two_moons(30, n_features=2, noise_std=0.05).features
    texts = [f"{HOSTILE} {row}" for row in range(30)]
    y = [HOSTILE, *([""] * 28), "plain"]
    with gq.label(features, texts, y=y, labels=tmp_path / "labels.jsonl", user=HOSTILE[:90],
                  title=HOSTILE, open_browser=False) as page:  # fmt: skip
        start(tab, page)
        assert tab.text_content("#item").startswith(HOSTILE)
        assert HOSTILE in keys(tab)
        press(tab, "1")
        tab.keyboard.press("g")
        tab.wait_for_selector("#alikes li")
        tab.keyboard.press("Escape")
        tab.wait_for_selector("#alike-dialog", state="hidden")
        tab.keyboard.press("/")
        tab.wait_for_selector("#query")
        tab.fill("#query", "img")
        tab.wait_for_selector("#hits li")
        tab.keyboard.press("Escape")
        assert tab.title() == HOSTILE
        assert tab.locator("#item img, #item script, #why img, #hits img, #alikes img").count() == 0
        assert saved(page, 1)
        tab.goto("about:blank")


def test_a_stranger_and_a_lost_server_are_told(browser, page, tab):
    context = browser.new_context()
    stranger = context.new_page()
    assert stranger.goto(page.address.partition("?")[0]).status == 403
    context.close()
    start(tab, page)
    page.close()
    tab.keyboard.press("1")
    tab.wait_for_selector("#alert:not([hidden])")
    assert page.session.store.records == []
    tab.problems.clear()  # the browser reports refused connections as errors


@pytest.mark.parametrize(
    ("scheme", "everywhere"),
    [
        ("light", False),
        pytest.param("light", True, marks=pytest.mark.slow),
        pytest.param("dark", True, marks=pytest.mark.slow),
    ],
)
def test_page_is_accessible_and_narrow(page, tab, scheme, everywhere):
    """No finding of axe-core that is serious or critical; nothing is wider than 400 pixels."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-core")
    tab.emulate_media(color_scheme=scheme)
    start(tab, page)
    tab.click("#map-panel summary")

    def findings():
        # The script of axe-core is put in by the debugger, which the policy does not hinder.
        response = axe.Axe().run(tab).response
        assert "color-contrast" in [rule["id"] for rule in response["passes"]]
        found = response["violations"]
        return [
            f"{v['id']}: {node['target']}"
            for v in found
            if v["impact"] in ("serious", "critical")
            for node in v["nodes"]
        ]

    if everywhere:
        assert findings() == []
        tab.keyboard.press("g")
        tab.wait_for_selector("#alikes li:nth-child(3)")
        assert findings() == []
        tab.keyboard.press("Escape")
    tab.set_viewport_size({"width": 400, "height": 800})
    assert findings() == []
    assert tab.evaluate("document.documentElement.scrollWidth") == 400
    box = tab.locator("#accept").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 400


PARENT = """<!doctype html><title>notebook</title><div id="cell"></div>
<script type="module">
import widget from "/widget.js";
const heard = [];
const model = {
  get: (name) => ({ page: PAGE, height: 800 })[name],
  on: (_, act) => heard.push(act),
  off: () => {},
  send: async (message) => {
    const answer = await fetch("/ask", { method: "POST", body: JSON.stringify(message) });
    const view = new DataView(await answer.arrayBuffer());
    for (const act of heard) act(JSON.parse(answer.headers.get("X-Answer")), [view]);
  },
};
widget.render({ model, el: document.getElementById("cell") });
</script>"""


@pytest.fixture
def notebook(page):
    """Address of a page with the widget, whose kernel answers at another address."""
    text = json.dumps(page_text("Digits", "ada", page.session.items)).replace("</", "<\\/")

    class Kernel(http.server.BaseHTTPRequestHandler):
        def _send(self, content, kind, **headers):
            self.send_response(200)
            for header, value in {"Content-Type": kind, **headers}.items():
                self.send_header(header, value)
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self):
            if self.path == "/widget.js":
                script = resources.files("graphuq") / "labelling" / "static" / "widget.js"
                self._send(script.read_bytes(), "text/javascript")
            else:
                self._send(PARENT.replace("PAGE", text).encode(), "text/html; charset=utf-8")

        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found, content = forward(message, page.port, page.token)
            self._send(content, "application/octet-stream", **{"X-Answer": json.dumps(found)})

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Kernel) as server:
        server.daemon_threads, server.block_on_close = True, False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.slow
def test_the_page_in_a_notebook(browser, notebook, page, digits):
    """Pictures, keys, undo, the map and downloads come through the widget."""
    context = browser.new_context(viewport={"width": 1180, "height": 900})
    tab, problems = context.new_page(), []
    tab.set_default_timeout(60_000)
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    tab.goto(notebook)
    frame = tab.frame_locator("iframe")
    name = frame.locator("#item-name")
    sync_api.expect(name).not_to_have_text(re.compile("^(Item)?$"))
    frame.locator("#item img[src^='blob:']").wait_for()
    assert (
        frame.locator("#item img").evaluate("img => img.decode().then(() => img.naturalWidth)") == 8
    )
    row = int(name.text_content())
    frame.locator("#classes button", has_text="0").first.wait_for()
    name.focus()
    tab.keyboard.press("n")
    tab.keyboard.type(str(int(digits.target[row])))
    tab.keyboard.press("Enter")
    sync_api.expect(name).not_to_have_text(str(row))
    assert saved(page, 1) == {row: str(int(digits.target[row]))}
    tab.keyboard.press("u")
    sync_api.expect(name).to_have_text(str(row))
    assert page.session.store.labels() == {}
    frame.locator("#map-panel summary").click()
    frame.locator("#map[role=application]").wait_for()
    with tab.expect_download() as download:
        frame.get_by_text("predictions.csv").click()
    assert len(pd.read_csv(download.value.path())) == 150
    context.close()
    assert problems == []


@pytest.mark.slow
def test_kill_and_reopen(tab, tmp_path, digits):
    """A killed program loses no label; the same command goes on, also with undo."""
    path = tmp_path / "labels.jsonl"

    @contextlib.contextmanager
    def serve():
        with running(SERVE, path, seconds=300) as process:
            tab.goto(process.stdout.readline().strip())
            tab.wait_for_function(SHOWN)
            yield process

    given = {}
    for _ in range(3):
        with serve() as process:
            for _ in range(5):
                row = int(name(tab))
                given[row] = str(int(digits.target[row]))
                label(tab, given[row])
            tab.wait_for_function("() => document.getElementById('said').textContent !== ''")
            tab.wait_for_function(f"() => document.getElementById('counts').textContent"
                                  f".startsWith('{len(given)} of')")  # fmt: skip
            process.send_signal(signal.SIGKILL)
        tab.problems.clear()  # requests that were refused after the end of the server
        lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
        assert {line["row"]: line["label"] for line in lines} == given
    with serve() as process:
        tab.wait_for_function(
            "() => document.getElementById('counts').textContent.startsWith('15 of')"
        )
        tab.focus("#item-name")
        tab.keyboard.press("u")
        tab.wait_for_function(
            "() => document.getElementById('said').textContent.startsWith('Taken')"
        )
        assert int(name(tab)) == list(given)[-1]
        tab.goto("about:blank")
        process.kill()
    tab.wait_for_timeout(300)
    tab.problems.clear()


@pytest.mark.slow
def test_latency_with_five_thousand_items(tab, tmp_path, data_folder):
    """The 95th percentile of an idle machine is in docs/labelling_page.md; medians are bounded."""
    mnist = gq.datasets.load_mnist(folder=data_folder)
    rows = np.random.default_rng(0).permutation(len(mnist.features))[:5000]
    truth = np.array([str(int(v)) for v in mnist.classes[rows]])
    y = np.full(5000, "", dtype=object)
    for digit in np.unique(truth):
        y[np.flatnonzero(truth == digit)[:3]] = digit
    pixels = np.asarray(mnist.features[rows]).reshape(-1, 28, 28)
    with gq.label(pixels.reshape(5000, -1), pixels, y=y, labels=tmp_path / "labels.jsonl",
                  open_browser=False) as page:  # fmt: skip
        page.session.wait_until_current(300)
        start(tab, page)
        watch_paint(tab)
        latencies = []
        for _ in range(40):
            tab.wait_for_function(SHOWN)
            row = int(name(tab))
            latencies.append(paint_after(tab, keys(tab)[truth[row]]))
            tab.wait_for_timeout(200)
        print(f"\nkey to next item: {np.percentile(latencies, 95):.1f} ms (95 %)")  # noqa: T201
        assert np.median(latencies) <= 50
        page.session.wait_until_current(300)
        renewals = []
        for row in page.session.latest[0].queue[:5].tolist():
            began = time.monotonic()
            page.session.label("ada", [row], truth[row])
            while row not in page.session.latest[0].labels:
                time.sleep(0.01)
            renewals.append(time.monotonic() - began)
            page.session.wait_until_current(300)
        print(f"label to new posterior: {np.median(renewals):.2f} s (median)")  # noqa: T201
        assert np.median(renewals) <= 2
        tab.goto("about:blank")
