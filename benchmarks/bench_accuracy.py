"""Accuracy and calibration of `GraphClassifier()` beside the best peers, on the same labels.

Question: with default settings and 10 to 160 labels, how accurate is each method, and how well
calibrated are its probabilities? The data sets are MNIST (4, 9) and (3, 8), voting records and two
moons; two further pairs of digits were not used to choose the defaults.

How to run:

    pip install graphlearning annoy
    python benchmarks/bench_accuracy.py [--draws 20] [--approximate]

One peer is GraphLearning: Laplace learning and Poisson learning on its default graph (10 exact
neighbours). The other is LabelSpreading of scikit-learn, with 7 neighbours (its default) and 20.
For calibration, the scores of a peer are taken as probabilities, since it offers no others. The
scores of Poisson learning have any sign and size; they get the logistic slope that minimises the
log score against the true classes, which are unknown in practice.

Prints: one line for each data set, number of labels and method. The columns are accuracy, expected
calibration error, Brier score, log score, accuracy on the more certain half of the nodes, and
seconds. Each is a mean over draws of labels, with its standard error. The last lines list all
cases in which a peer is more accurate.

Results go to ``benchmarks/results/accuracy.json``.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

import graphuq as gq
from peers import RESULTS, label_draws, load, peers

DATASETS = ["mnist49", "mnist38", "voting", "two-moons", "digits17", "digits35"]


def evaluate(label_mean, truth, labelled):
    """Return all scores of one run."""
    return {
        "accuracy": gq.scores.accuracy(label_mean, truth, labelled),
        "ece": gq.scores.expected_calibration_error(label_mean, truth, labelled),
        "brier": gq.scores.brier_score(label_mean, truth, labelled),
        "log": gq.scores.log_score(label_mean, truth, labelled),
        "top half": gq.scores.accuracy_by_certainty(label_mean, truth, (0.5,), labelled)[0.5],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--labels", type=int, nargs="+", default=[10, 20, 40, 80, 160])
    parser.add_argument("--data", nargs="+", default=DATASETS)
    parser.add_argument("--output", type=Path, default=RESULTS / "accuracy.json")
    parser.add_argument(
        "--approximate", action="store_true", help="expectation propagation, no sampling"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    inference = "expectation-propagation" if options.approximate else "auto"
    rows = []
    print(
        "accuracy, expected calibration error, Brier score, log score, accuracy on the more "
        "certain half, seconds; ± standard error"
    )
    for name in options.data:
        try:
            features, truth = load(name)
        except (FileNotFoundError, gq.GraphuqError) as error:
            print(f"{name} skipped: {error}")
            continue
        methods = peers(features, truth)

        def ours(nodes, signs, features=features):
            y = np.full(len(features), -1)
            y[nodes] = signs > 0
            return gq.results.label_mean(
                gq.GraphClassifier(inference=inference).fit(features, y).result_
            )

        for n_labels in options.labels:
            found = {}
            for nodes in label_draws(truth, n_labels, options.draws):
                for method, run in {"graphuq": ours, **methods}.items():
                    began = time.perf_counter()
                    scores = evaluate(run(nodes, truth[nodes]), truth, nodes)
                    scores["seconds"] = time.perf_counter() - began
                    found.setdefault(method, []).append(scores)
            for method, runs in found.items():
                row = {"data": name, "labels": n_labels, "method": method, "draws": len(runs)}
                cells = []
                for key in runs[0]:
                    values = np.array([run[key] for run in runs])
                    row[key] = float(values.mean())
                    row[f"{key} s.e."] = float(values.std(ddof=1) / np.sqrt(len(values)))
                    cells.append(f"{row[key]:.4f} ±{row[f'{key} s.e.']:.4f}")
                ahead = np.mean([r["accuracy"] for r in found["graphuq"]]) - row["accuracy"]
                row["graphuq ahead by"] = float(ahead)
                rows.append(row)
                print(
                    f"{name:10}{n_labels:4d} {method:20} {'  '.join(cells[:-1])}  {cells[-1]} s",
                    flush=True,
                )
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(json.dumps(rows, indent=1))
    behind = [r for r in rows if r["graphuq ahead by"] < 0]
    print(f"\ngraphuq is less accurate in {len(behind)} of {len(rows)} comparisons:")
    for row in behind:
        print(f"  {row['data']} {row['labels']} {row['method']}: by {-row['graphuq ahead by']:.4f}")


if __name__ == "__main__":
    main()
