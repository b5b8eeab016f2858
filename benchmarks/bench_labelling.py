"""What does labelling by the page bring? Accuracy against labels, keys a label, time to an item.

Question: how right is the answer after 10 to 80 labels that the page chose, beside items in random
order and beside margin sampling? How many keys does a label take, and how long the next item?

How to run (GRAPHUQ_DATA names the folder of the data sets):

    OMP_NUM_THREADS=1 python benchmarks/bench_labelling.py [--draws 3]
    OMP_NUM_THREADS=1 python benchmarks/bench_labelling.py --browser [--labels 60]
    OMP_NUM_THREADS=1 python benchmarks/bench_labelling.py --first [--draws 8]

Digits, newsgroups of six groups (words) and segment (a table of 18 columns): 600 rows drawn at
random. A script takes eight items from the queue, as the page does in advance, gives their true
classes, and waits for the posterior. "page" is the default: items that cover the graph until there
are two classes, then the stochastic margin. "margin" is the smallest margin after the same first
items. "random" are random rows. Accuracies are those of the unlabelled rows, by the average over
models, which is the page's answer, and by the quick model that shows probabilities.

In the browser, Chromium without a window labels the same sets by keys alone: the space bar where
the suggested class is right, else the key of the class. Times are from a key to the frame that
shows the next item.

With ``--first``, ten items are labelled before there is any model: those that the page begins with,
which cover the graph; those that cover the features, each the one that brings the rows closest to a
labelled one (facility location by cosines, or by exp(−squared distance / median)); and random ones.
The accuracy is that of the quick model.

Prints: a table for each set and number of labels; or keys a label, the share of labels by the space
bar, and milliseconds.
"""

import argparse
import os
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.metrics import pairwise_distances

import graphuq as gq
from bench_errors_left import fit, problem
from graphuq.labelling.features import default_classifier
from graphuq.labelling.items import TextItems
from graphuq.labelling.model import Model
from graphuq.labelling.session import Session
from graphuq.labelling.store import LabelStore

SETS = ("digits", "newsgroups", "segment")
WAYS = {"page": "auto", "margin": "margin", "random": "random"}
CHECKED = (10, 20, 40, 80)  # labels
BATCH = 8  # items that the page fetches in advance
SHOWN = "() => !['', 'Item'].includes(document.getElementById('item-name').textContent)"
WATCH = """() => { const at = document.getElementById("item-name"); let began = 0;
    document.addEventListener("keydown", () => { began = performance.now(); }, true);
    new MutationObserver(() => at.textContent === "" || requestAnimationFrame(() => {
      window.painted = performance.now() - began; })).observe(at, { childList: true }); }"""


def accuracies(session, features, truth, metric):
    """Return the accuracy of unlabelled rows, by the average and by the quick model."""
    snapshot = session.wait_until_current()
    y = np.full(len(truth), -1)
    y[list(snapshot.labels)] = truth[list(snapshot.labels)]
    free = y < 0
    average = fit(gq.GraphClassifier(), features, y, metric).transduction_
    quick = np.array(snapshot.classes).astype(int)[snapshot.probabilities.argmax(axis=1)]
    return (average == truth)[free].mean(), (quick == truth)[free].mean()


def campaign(way, name, draw):
    """Return accuracies after each number of labels."""
    features, truth, metric = problem(name, draw)
    items = TextItems([""] * len(truth))
    settings = default_classifier().set_params(metric=metric)
    order, found = np.random.default_rng(draw).permutation(len(truth)), []
    with tempfile.TemporaryDirectory() as folder:
        store = LabelStore(Path(folder) / "labels.jsonl", items)
        session = Session(items, Model(features, settings, WAYS[way]), store).start()
        session.wait_until_current()
        n = 0
        while n < CHECKED[-1]:
            size = min(BATCH, next(c for c in CHECKED if c > n) - n)
            rows = [card["row"] for card in session.queue("ada", size)]
            for row in order[n : n + size].tolist() if way == "random" else rows:
                session.label("ada", [row], str(truth[row]))
            n += size
            session.wait_until_current(600)
            if n in CHECKED:
                found.append(accuracies(session, features, truth, metric))
        session.close()
    return found


def covering(features, n):
    """Return rows so that, one after the other, all rows come closest to one of them."""
    if sparse.issparse(features):
        rows = features.toarray()
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        likeness = rows @ rows.T
    else:
        squares = pairwise_distances(features, metric="sqeuclidean")
        likeness = np.exp(-squares / np.median(squares))
    best, picks = np.zeros(len(likeness)), []
    for _ in range(n):
        gain = np.maximum(likeness - best[:, None], 0).sum(axis=0)
        gain[picks] = -1
        picks.append(int(gain.argmax()))
        best = np.maximum(best, likeness[:, picks[-1]])
    return picks


def first_items(name, draw):
    """Return the accuracy after ten items that were chosen without a label, for each way."""
    features, truth, metric = problem(name, draw)
    model = Model(features, default_classifier().set_params(metric=metric))
    model.prepare()
    rng, found = np.random.default_rng(draw), []
    random = rng.permutation(len(truth))[:10].tolist()
    for rows in (model.similarity.central_rows(10).tolist(), covering(features, 10), random):
        snapshot = model.renew({row: str(truth[row]) for row in rows}, 1)
        guess = np.array(snapshot.classes).astype(int)[snapshot.probabilities.argmax(axis=1)]
        found.append(np.delete(guess == truth, rows).mean())
    return found


def items_of(name, features):
    """Return what a person sees of a set, for the browser."""
    if name == "digits":
        return features.reshape(-1, 8, 8)
    if name == "newsgroups":
        return [f"post {row}" for row in range(features.shape[0])]
    return pd.DataFrame(features).add_prefix("x")


def by_keys(name, n_labels):
    """Label by keys in Chromium; return keys, labels by the space bar, and milliseconds."""
    from playwright.sync_api import sync_playwright

    features, truth, metric = problem(name, 0)
    classes = [f"class {k}" for k in range(truth.max() + 1)]
    path = Path(tempfile.mkdtemp()) / "labels.jsonl"
    settings = default_classifier().set_params(metric=metric)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    n_keys, n_accepted, times = 0, 0, []
    page = gq.label(features, items_of(name, features), classes=classes, labels=path,
                    classifier=settings, open_browser=False)  # fmt: skip
    with page, sync_playwright() as playwright:
        page.session.wait_until_current(600)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(page.address)
        tab.wait_for_function(SHOWN)
        tab.wait_for_selector("#classes button")
        tab.evaluate(WATCH)
        for _ in range(n_labels):
            wanted = classes[truth[int(tab.text_content("#item-name"))]]
            button = tab.locator("#classes button", has_text=wanted)
            accepts = not tab.is_disabled("#accept") and wanted in tab.text_content("#accept")
            tab.wait_for_timeout(400)  # after which the space bar counts
            tab.evaluate("window.painted = null")
            tab.keyboard.press(" " if accepts else button.locator("kbd").text_content())
            tab.wait_for_function("() => window.painted !== null")
            n_keys, n_accepted = n_keys + 1, n_accepted + accepts
            times.append(tab.evaluate("window.painted"))
        browser.close()
        given = page.session.store.labels()
        assert len(given) == n_labels
        assert all(label == classes[truth[row]] for row, label in given.items())
    return n_keys, n_accepted, times


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--browser", action="store_true")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--labels", type=int, default=60, help="of each set, in the browser")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in SETS:
        if options.first:
            found = np.array([first_items(name, draw) for draw in range(options.draws)])
            errors = found.std(axis=0, ddof=1) / np.sqrt(len(found))
            cells = [f"{a:.3f} ± {e:.3f}" for a, e in zip(found.mean(axis=0), errors, strict=True)]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
            continue
        if options.browser:
            n_keys, n_accepted, times = by_keys(name, options.labels)
            ms = np.percentile(times, (50, 95, 100))
            shares = f"{n_keys / options.labels:.2f} | {n_accepted / options.labels:.2f}"
            print(f"| {name} | {shares} | {ms[0]:.0f} | {ms[1]:.0f} | {ms[2]:.0f} | "
                  f"load {os.getloadavg()[0]:.1f}", flush=True)  # fmt: skip
            continue
        for way in WAYS:
            found = np.mean([campaign(way, name, draw) for draw in range(options.draws)], axis=0)
            print(f"| {name} | {way} | " + " | ".join(f"{a:.3f} {q:.3f}" for a, q in found) + " |",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
