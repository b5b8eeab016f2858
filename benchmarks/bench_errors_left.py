"""Is the number of errors that are left right? Twelve sets, four stages, two choices of labels.

Question: how often does the 90 % interval of `expected_errors` hold the number of wrong labels, for
the default model and for the one of the labelling page?

How to run (GRAPHUQ_DATA names the folder of the data sets):

    python benchmarks/bench_errors_left.py [--draws 2] [--models page average] [--designs random]

Each draw takes up to 600 rows. The first labels are random, 10 or two a class, and one of each
class. They double three times: by random rows, or by the rows that the default rule picks in
batches of ten, as on the page. "page" is one model of largest evidence, "average" the default of
`GraphClassifier`; both by expectation propagation.

Prints: for each model and choice of labels, and each stage, the share of fits whose interval holds
the number, and the ratio of all expected errors to all errors.

Results go to ``benchmarks/results/errors_left.json``.
"""

import argparse
import json
import os
import warnings
from collections import defaultdict

import numpy as np
from sklearn import datasets

import graphuq as gq
from peers import RESULTS

DATA = os.environ.get("GRAPHUQ_DATA", "../shared/data")
MODELS = {"page": {"model": "largest-evidence"}, "average": {}}
MAX_ROWS, N_STAGES = 600, 4


def problems(rng, news, voting):
    """Yield names, features, classes and the metric of all sets."""

    def some(features, classes):
        rows = rng.permutation(len(classes))[:MAX_ROWS]
        return features[rows], np.unique(classes[rows], return_inverse=True)[1]

    digits = datasets.load_digits()
    yield "digits", *some(digits.data, digits.target), None
    three = np.isin(digits.target, [3, 5, 8])
    yield "digits 3, 5, 8", *some(digits.data[three], digits.target[three]), None
    words, group = news
    yield "newsgroups", *some(words, group), "cosine"
    yield "pc, mac", *some(words[group < 2], group[group < 2]), "cosine"
    yield "votes", *some(*voting), None
    for load in (datasets.load_iris, datasets.load_wine, datasets.load_breast_cancer):
        data = load()
        standard = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
        yield load.__name__[5:], *some(standard, data.target), None
    seed = int(rng.integers(1_000_000))
    yield "moons", *datasets.make_moons(500, noise=0.25, random_state=seed), None
    yield "circles", *datasets.make_circles(500, noise=0.15, factor=0.5, random_state=seed), None
    for name, n_classes, size, spread in (("six groups", 6, 5, 1.6), ("unequal", 4, 10, 0.8)):
        shares = None if n_classes == 6 else [0.5, 0.25, 0.15, 0.1]
        classes = rng.choice(n_classes, 600, p=shares)
        centers = spread * rng.normal(size=(n_classes, size))
        yield name, centers[classes] + rng.normal(size=(600, size)), classes, None


def read():
    """Return words and groups of 2,400 posts, the two of hardware first, and the votes."""
    found = gq.datasets.load_newsgroups(folder=DATA)
    names = sorted(set(found.classes), key=lambda name: ("hardware" not in name, name))
    rows = np.random.default_rng(0).permutation(len(found.classes))[:2400]
    group = np.array([names.index(name) for name in np.asarray(found.classes)[rows]])
    votes = gq.datasets.load_voting(folder=DATA)
    return (found.features[rows], group), (np.asarray(votes.features), np.asarray(votes.classes))


def stages(model, design, features, truth, metric, rng):
    """Yield the errors that are expected and those that are there, from stage to stage."""
    n_classes, y = truth.max() + 1, np.full(len(truth), -1)
    order, n = rng.permutation(len(truth)), max(10, 2 * n_classes)
    each = [order[np.flatnonzero(truth[order] == k)[0]] for k in range(n_classes)]
    labelled = np.union1d(order[:n], each)
    classifier = None
    for stage in range(N_STAGES):
        while design == "page" and classifier and (y >= 0).sum() < n * 2**stage:
            picks = classifier.query(min(10, n * 2**stage - int((y >= 0).sum())))
            y[picks] = truth[picks]
            classifier.add_labels(picks, truth[picks])
        if design == "random" or stage == 0:
            labelled = np.union1d(labelled, order[: n * 2**stage])
            y[labelled] = truth[labelled]
        options = {"inference": "expectation-propagation", "metric": metric, **MODELS[model]}
        classifier = gq.GraphClassifier(**options).fit(features, y)
        count = gq.expected_errors(classifier.result_)
        wrong = int((classifier.transduction_ != truth)[y < 0].sum())
        yield {"stage": stage, "n_labels": int((y >= 0).sum()), "wrong": wrong, **count._asdict()}


def show(name, found):
    """Print the shares of intervals that hold the truth, and the ratio of expected to true."""
    holds = np.mean([run["lower"] <= run["wrong"] <= run["upper"] for run in found])
    ratio = sum(run["expected"] for run in found) / sum(run["wrong"] for run in found)
    print(f"{name:24} {len(found):4} fits, {holds:.2f} hold, expected / true {ratio:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--designs", nargs="+", default=["random", "page"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sources, found = read(), defaultdict(list)
    for model in options.models:
        for design in options.designs:
            for draw in range(options.draws):
                for name, *problem in problems(np.random.default_rng(draw), *sources):
                    for run in stages(model, design, *problem, np.random.default_rng(draw)):
                        found[f"{model}, {design}"].append({"set": name, **run})
            runs = found[f"{model}, {design}"]
            show(f"{model}, {design}", runs)
            for stage in range(N_STAGES):
                show(f"    stage {stage}", [run for run in runs if run["stage"] == stage])
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "errors_left.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
