"""Several annotators: do their confusion matrices, learnt beside the field, find the classes?

Question: three annotators label some rows of scikit-learn's digits. One is good (90 % right), one
lazy (50 %, otherwise a class at random), one adversarial (10 %, otherwise the next class);
``--accuracies`` gives other shares. How often are classes right, and what is the log score, at
annotated rows and at all others?

How to run:

    python benchmarks/bench_annotators.py [--draws 5] [--classes 3 5 8] [--rows 60] \
        [--accuracies 0.9 0.5 0.1]

Methods:

- majority: the class with most votes, the first of equal ones; `GraphClassifier` of these labels
- Dawid-Skene: EM without a graph; `GraphClassifier` of the most probable classes
- Dawid-Skene, soft: `GraphClassifier` of the class probabilities of EM, as soft labels
- annotators: `AnnotatorClassifier`
- true classes: `GraphClassifier` of the true classes of the same rows, which nobody knows

Prints: accuracy and mean negative log probability of the true class, at annotated and at other
rows; for annotators the error of their accuracies, and how often 90 % intervals hold the
accuracy with which labels were drawn; seconds of a fit.

Results go to ``benchmarks/results/``, one file for each number of classes and shares.
"""

import argparse
import json
import time
import warnings

import numpy as np

import graphuq as gq
from graphuq.inference.collapsed_gibbs.annotators import Readings
from peers import RESULTS

ACCURACIES = [0.9, 0.5, 0.1]
SMALLEST = 1e-12  # probability in a log score


def readings_of(truth, n_classes, accuracies, rng):
    """Return what three annotators say, shape (J, 3)."""
    right = rng.uniform(size=(len(truth), 3)) < accuracies
    anything = rng.integers(1, n_classes, len(truth))
    wrong = [anything, anything, np.ones(len(truth), int)]
    shift = np.where(right, 0, np.stack(wrong, axis=1))
    shift[:, 1] = np.where(right[:, 1], 0, rng.integers(1, n_classes, len(truth)))
    return (truth[:, None] + shift) % n_classes


def scores(probability, codes):
    own = np.maximum(probability[np.arange(len(codes)), codes], SMALLEST)
    return {
        "accuracy": float((probability.argmax(axis=1) == codes).mean()),
        "log_score": float(-np.log(own).mean()),
    }


def one_hot(codes, n_classes):
    return np.eye(n_classes)[codes]


def one_draw(features, codes, n_classes, n_rows, accuracies, seed):
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(codes), n_rows, replace=False)
    others = np.setdiff1d(np.arange(len(codes)), rows)
    readings = readings_of(codes[rows], n_classes, accuracies, rng)
    votes = one_hot(readings, n_classes).sum(axis=1)
    shares = votes / votes.sum(axis=1, keepdims=True)
    alone = Readings(readings, n_classes, 2.0, 1.0).without_graph()

    def certain(found):
        y = np.full(len(codes), -1)
        y[rows] = found
        return gq.GraphClassifier(), y

    def matrix(values, kind, empty):
        y = np.full((len(codes), values.shape[1]), empty)
        y[rows] = values
        return kind(), y

    methods = {  # labels of the fit, and class probabilities of annotated rows beforehand
        "majority": (*certain(votes.argmax(axis=1)), shares),
        "Dawid-Skene": (*certain(alone.argmax(axis=1)), alone),
        "Dawid-Skene, soft": (*matrix(alone, gq.GraphClassifier, np.nan), None),
        "annotators": (*matrix(readings, gq.AnnotatorClassifier, -1), None),
        "true classes": (*certain(codes[rows]), None),
    }
    found = {}
    for name, (classifier, y, before) in methods.items():
        began = time.perf_counter()
        classifier.fit(features, y)
        seconds = time.perf_counter() - began
        probability = np.zeros((len(codes), n_classes))
        probability[:, classifier.classes_] = classifier.label_distributions_
        at_rows = probability[rows] if before is None else before
        found[name] = {
            "annotated": scores(at_rows, codes[rows]),
            "others": scores(probability[others], codes[others]),
            "seconds": seconds,
        }
        if name == "annotators":
            true = np.array(accuracies)
            low, high = classifier.accuracy_interval_.T
            found[name]["accuracies"] = classifier.accuracy_.tolist()
            found[name]["errors"] = (classifier.accuracy_ - true).tolist()
            found[name]["covered"] = ((low <= true) & (true <= high)).tolist()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--classes", type=int, nargs="+", default=[3, 5, 8])
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--accuracies", type=float, nargs=3, default=ACCURACIES)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    digits = gq.datasets.load_digits(tuple(arguments.classes))
    codes, n_classes = digits.codes(), len(arguments.classes)
    draws = [
        one_draw(digits.features, codes, n_classes, arguments.rows, arguments.accuracies, seed)
        for seed in range(arguments.draws)
    ]
    print(f"{len(codes)} digits of {n_classes} classes, {arguments.rows} annotated by three")
    print(f"{'':20}{'annotated':>20}{'others':>20}{'seconds':>9}")
    for name in draws[0]:
        line = f"{name:20}"
        for part in ("annotated", "others"):
            accuracy, log_score = (
                np.mean([draw[name][part][key] for draw in draws])
                for key in ("accuracy", "log_score")
            )
            line += f"{accuracy:12.3f}{log_score:8.3f}"
        print(line + f"{np.mean([draw[name]['seconds'] for draw in draws]):9.1f}")
    errors = np.array([draw["annotators"]["errors"] for draw in draws])
    covered = np.array([draw["annotators"]["covered"] for draw in draws])
    for a, share in enumerate(arguments.accuracies):
        rms, held = np.sqrt((errors[:, a] ** 2).mean()), covered[:, a].mean()
        print(f"right in {share:.0%}: error of accuracy {rms:.3f}, in 90 % interval {held}")
    RESULTS.mkdir(exist_ok=True)
    shares = "_".join(f"{share:g}" for share in arguments.accuracies)
    file = RESULTS / f"annotators_{n_classes}_{shares}.json"
    file.write_text(json.dumps({"settings": vars(arguments), "draws": draws}, indent=1))


if __name__ == "__main__":
    main()
