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

Two real crowds of GRAPHUQ_DATA or ../shared/data, products with texts and birds without features:

    python benchmarks/bench_annotators.py crowd product [--held-out 0.1]
    python benchmarks/bench_annotators.py crowd duck

Methods there: majority; Dawid and Skene's EM with shares of classes; Raykar et al. 2010, that is a
logistic regression on the features of pairs in place of shares, trained on the probabilities of EM;
`AnnotatorClassifier`. With ``--held-out`` that share of the readings is left out, and the log score
is that of these readings, for which no truth is needed. Without it, scores use the truth.
"""

import argparse
import json
import sys
import time
import warnings

import numpy as np
from scipy.stats import norm

import crowds
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


def crowd(name, held_out):
    """Print scores of a crowd: of its held-out readings, or with the truth of its items."""
    items, people, item, who, said, truth, features = crowds.load(name)
    kept = np.random.default_rng(1).uniform(size=len(item)) >= held_out
    parts = item[kept], who[kept], said[kept], len(items), len(people)
    votes = crowds.votes(*parts)
    methods = {"majority": (votes, None), "Dawid-Skene": crowds.dawid_skene(*parts)}
    if features is not None:
        methods["Raykar et al."] = crowds.raykar(features, *parts)
    labels = np.full((len(items), len(people)), -1)
    labels[item[kept], who[kept]] = said[kept]
    labels = labels[:, (labels >= 0).any(axis=0)]
    began, cpu = time.perf_counter(), time.process_time()
    classifier = gq.AnnotatorClassifier().fit(features, labels)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    confusion = np.full((len(people), 2, 2), 0.5)
    confusion[np.isin(np.arange(len(people)), who[kept])] = classifier.confusion_
    methods["AnnotatorClassifier"] = classifier.label_distributions_, confusion
    print(f"{name}: {len(items)} items, {len(people)} people, {kept.sum()} readings of {len(kept)}")
    found = {}
    for method, (probability, matrices) in methods.items():
        if held_out > 0:
            if matrices is None:
                continue
            left = item[~kept], who[~kept], said[~kept]
            found[method] = {"readings": crowds.log_score(probability, matrices, *left)}
        else:
            found[method] = {**scores(probability, truth), "f1": crowds.f1(probability, truth)}
        print(f"{method:20}", *(f"{key} {value:.4f}" for key, value in found[method].items()))
    print(f"{seconds:.0f} s, {cpu:.0f} s of CPU; {classifier.result_.settings['crowd']}")
    if held_out == 0:
        right = np.bincount(who, truth[item] == said) / np.bincount(who)
        low, high = classifier.share_right_interval_.T
        held = (low <= right + 1e-9) & (right <= high + 1e-9)
        error = np.sqrt(((classifier.share_right_ - right) ** 2).mean())
        found["people"] = {"held": float(held.mean()), "rms": float(error)}
        print(f"share of right labels: in 90 % interval {held.mean():.2f}, rms error {error:.3f}")
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"crowd_{name}_{held_out:g}.json"
    file.write_text(json.dumps({"seconds": seconds, "cpu": cpu, "found": found}, indent=1))


def simulated_crowds(n_draws):
    """Print how often intervals hold, for crowds drawn from the model, and for a wrong one."""
    for difficulty in (0.5, 3.0):
        held, shares = [], []
        for seed in range(n_draws):
            rng = np.random.default_rng(seed)
            classes = rng.integers(0, 2, 300)
            level = rng.normal(1.0, 0.75, (20, 1)) + rng.normal(0, 0.5, (20, 2))
            ease = rng.normal(size=300)
            right = norm.cdf(level[:, classes] + difficulty * ease) > rng.uniform(size=(20, 300))
            labels = np.where(right, classes, 1 - classes).T
            labels[rng.uniform(size=labels.shape) < 0.7] = -1
            classifier = gq.AnnotatorClassifier(random_state=seed).fit(None, labels)
            root = np.sqrt(1 + difficulty**2)
            accuracy = norm.cdf(level / root) @ (np.bincount(classes) / 300)
            low, high = classifier.accuracy_interval_.T
            held.append(((low <= accuracy) & (accuracy <= high)).mean())
            probability = classifier.label_distributions_
            shares.append([scores(probability, classes)["accuracy"], probability.max(1).mean()])
        error = np.std(held, ddof=1) / np.sqrt(n_draws)
        accurate, sure = np.mean(shares, axis=0)
        print(
            f"difficulty {difficulty}: accuracies in 90 % intervals {np.mean(held):.3f} "
            f"(error {error:.3f}); classes right {accurate:.3f}, expected {sure:.3f}"
        )


def main():
    if sys.argv[1:2] == ["crowd"]:
        parser = argparse.ArgumentParser(description="A real crowd, or simulated ones.")
        parser.add_argument("crowd")
        parser.add_argument("name", choices=["product", "duck", "simulated"])
        parser.add_argument("--held-out", type=float, default=0.0)
        parser.add_argument("--draws", type=int, default=20)
        arguments = parser.parse_args()
        warnings.simplefilter("ignore")
        if arguments.name == "simulated":
            return simulated_crowds(arguments.draws)
        return crowd(arguments.name, arguments.held_out)
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
