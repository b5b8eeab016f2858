"""Sets of classes: how often do they contain the true class, and how large are they?

Question: what is the coverage of prediction sets of nominal coverage 0.9 and 0.98, by both methods?

How to run:

    python benchmarks/bench_coverage.py [--labels 5 20] [--draws 5] [--inference auto]

Data: scikit-learn's digits, ten classes, with 5 or 20 labels for each. `GraphClassifier()` predicts
sets of all unlabelled rows. With 5 labels a class, each score is one of 50.

Prints: for each number of labels, method and nominal coverage, the share of rows whose set
contains the true class (mean and standard error over draws), the mean number of classes in a set,
and the share of sets with one class.

Results go to ``benchmarks/results/coverage.json``.
"""

import argparse
import json
import time
import warnings

import numpy as np

import graphuq as gq
from peers import RESULTS

COVERAGES = (0.9, 0.98)  # nominal; 0.98 needs at least 49 labels


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--labels", type=int, nargs="+", default=[5, 20], help="per class")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--inference", default="auto")
    options = parser.parse_args()
    warnings.simplefilter("ignore", gq.GraphuqWarning)
    data = gq.datasets.load_digits()
    truth, rows = data.codes(), []
    for n_labels in options.labels:
        measured = {(m, c): [] for m in ("posterior", "conformal") for c in COVERAGES}
        seconds = []
        for seed in range(options.draws):
            rng = np.random.default_rng([n_labels, seed])
            nodes = np.concatenate(
                [rng.choice(np.flatnonzero(truth == k), n_labels, replace=False) for k in range(10)]
            )
            y = np.full(len(truth), -1)
            y[nodes] = truth[nodes]
            began = time.perf_counter()
            classifier = gq.GraphClassifier(inference=options.inference).fit(data.features, y)
            rest = np.setdiff1d(np.arange(len(truth)), nodes)
            for (method, nominal), values in measured.items():
                sets = gq.prediction_sets(classifier.result_, nominal, method)[rest]
                inside = sets[np.arange(len(rest)), truth[rest].astype(int)]
                size = sets.sum(axis=1)
                values.append([inside.mean(), size.mean(), (size == 1).mean()])
            seconds.append(time.perf_counter() - began)
        for (method, nominal), values in measured.items():
            mean = np.mean(values, axis=0)
            error = np.std(values, axis=0, ddof=1)[0] / np.sqrt(len(values))
            rows.append(
                {
                    "labels per class": n_labels,
                    "method": method,
                    "nominal": nominal,
                    "inference": options.inference,
                    "coverage": mean[0],
                    "error": error,
                    "mean size": mean[1],
                    "single": mean[2],
                    "draws": len(values),
                    "seconds": float(np.mean(seconds)),
                }
            )
            print(
                f"{n_labels:3} labels  {method:10} {nominal:.2f}  "
                f"coverage {mean[0]:.3f} ± {error:.3f}  size {mean[1]:.2f}  single {mean[2]:.2f}",
                flush=True,
            )
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "coverage.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
