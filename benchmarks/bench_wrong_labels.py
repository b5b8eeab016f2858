"""Wrong labels: how well does the leave-one-out probability of a given label find them?

Question: a fifth of the given labels is replaced by another class at random. How large is the area
under the ROC curve of finding these, if labels are ranked by their leave-one-out probability?

How to run (GRAPHUQ_DATA names the folder of MNIST; ``pip install cleanlab`` adds its scores):

    python benchmarks/bench_wrong_labels.py [--draws 5] [--inference auto] [--data digits …]

Data: scikit-learn's digits with 20 labels for each of ten classes, two moons (500 rows of 2
features, σ = 0.15) and 2,000 rows of MNIST (4, 9), with 20 labels for each of two classes. Labels
that are ranked:

- leave-one-out: `graphuq.results.leave_one_out`, of `GraphClassifier()`
- cleanlab, margin: normalised margin by cleanlab, from the same probabilities. Its self-confidence
  is the probability of the given label, so that it equals the first method.
- cleanlab, logistic: self-confidence from cross-validated logistic regression on the labelled rows
- neighbours: share of the five nearest labelled rows with the same label

Prints: area under the curve, mean and standard error over draws, and seconds of a fit.

Results go to ``benchmarks/results/wrong_labels.json``.
"""

import argparse
import json
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import graphuq as gq
from graphuq.results.leaving_out import given_classes
from peers import DATA, RESULTS

try:
    from cleanlab.rank import get_label_quality_scores
except ImportError:
    get_label_quality_scores = None

FLIPPED = 0.2  # share of wrong labels
N_LABELS = 20  # labels a class
N_NEIGHBORS = 5  # labelled neighbours that vote


def data_sets():
    digits = gq.datasets.load_digits()
    yield "digits", digits.features, digits.codes()
    moons = gq.datasets.two_moons(500, n_features=2, noise_std=0.15)
    yield "two moons", moons.features, moons.classes
    if DATA.exists():
        mnist = gq.datasets.load_mnist((4, 9), 1000, n_components=50, folder=DATA)
        yield "MNIST (4, 9)", mnist.features, mnist.codes()


def draw(truth, rng):
    """Return labelled nodes, their labels, and which of these are wrong."""
    classes = np.unique(truth)
    nodes = np.concatenate(
        [rng.choice(np.flatnonzero(truth == k), N_LABELS, replace=False) for k in classes]
    )
    labels, wrong = truth[nodes].astype(int), np.zeros(len(nodes), bool)
    wrong[rng.choice(len(nodes), int(FLIPPED * len(nodes)), replace=False)] = True
    step = rng.integers(1, len(classes), size=wrong.sum())
    labels[wrong] = (labels[wrong] + step) % len(classes)
    return nodes, labels, wrong


def scores(features, nodes, labels, classifier):
    """Return a score of each label by each method; small where the label seems wrong."""
    y = np.full(len(features), -1)
    y[nodes] = labels
    result = classifier.fit(features, y).result_
    back = np.argsort(np.argsort(nodes))  # the classifier sorts its labelled rows
    probability = gq.leave_one_out(result).of_label[back]
    given = given_classes(result.posterior)[back]
    assert (given == labels).all()
    found = {"leave-one-out": probability[np.arange(len(nodes)), given]}
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    outside = cross_val_predict(logistic, features[nodes], labels, method="predict_proba", cv=5)
    if get_label_quality_scores is not None:
        found["cleanlab, margin"] = get_label_quality_scores(
            labels, probability, method="normalized_margin"
        )
        found["cleanlab, logistic"] = get_label_quality_scores(labels, outside)
    nearest = NearestNeighbors(n_neighbors=N_NEIGHBORS + 1).fit(features[nodes])
    near = nearest.kneighbors(features[nodes], return_distance=False)[:, 1:]
    found["neighbours"] = (labels[near] == labels[:, None]).mean(axis=1)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--inference", default="auto")
    parser.add_argument("--data", nargs="+", help="names of data sets; by default all")
    options = parser.parse_args()
    warnings.simplefilter("ignore", gq.GraphuqWarning)
    if get_label_quality_scores is None:
        print("cleanlab is not installed: its scores are left out")
    rows = []
    for name, features, truth in data_sets():
        if options.data and name not in options.data:
            continue
        areas, seconds = {}, []
        for seed in range(options.draws):
            nodes, labels, wrong = draw(truth, np.random.default_rng(seed))
            began = time.perf_counter()
            classifier = gq.GraphClassifier(inference=options.inference)
            found = scores(features, nodes, labels, classifier)
            seconds.append(time.perf_counter() - began)
            for method, score in found.items():
                areas.setdefault(method, []).append(roc_auc_score(wrong, -score))
        for method, values in areas.items():
            error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else None
            rows.append(
                {
                    "data": name,
                    "inference": options.inference,
                    "method": method,
                    "area": float(np.mean(values)),
                    "error": error,
                    "draws": len(values),
                    "seconds": float(np.mean(seconds)),
                }
            )
            print(f"{name:14} {method:20} {np.mean(values):.3f} ± {error or 0:.3f}", flush=True)
        print(f"{name:14} {np.mean(seconds):.1f} s a draw", flush=True)
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "wrong_labels.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
