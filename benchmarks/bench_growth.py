"""Time to add labels, or rows, to a fitted classifier.

Question: how long does it take to add a label or a row after the fit, compared with a new fit?

How to run:

    python benchmarks/bench_growth.py [--batches 8] [--rows 100 1000 10000]

The data are all 70,000 digits of MNIST, odd against even, with 50 principal components and 100
labels; inference is expectation propagation of the likeliest model. Labels are added ten at a time.
For each number of rows, a classifier is fitted without these rows. Then all of them are added
together, once with extended eigenvectors and once with recomputed ones.

Prints: seconds of the fit; for each batch of labels, seconds and accuracy; for each number of rows,
seconds and accuracy on the new rows. The last two columns are mean differences in probabilities
between extended and recomputed eigenvectors, for old and for new rows.

Results go to ``benchmarks/results/growth.json``.
"""

import argparse
import copy
import json
import time

import numpy as np

import graphuq as gq
from peers import DATA, RESULTS

N_LABELS, BATCH = 100, 10
CLASSIFIER = gq.GraphClassifier(model="likeliest", inference="expectation-propagation")


def timed(work):
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began


def timed_fit(features, y):
    return timed(lambda: copy.copy(CLASSIFIER).fit(features, y))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batches", type=int, default=8, help="number of batches of ten labels")
    parser.add_argument("--rows", type=int, nargs="*", default=[100, 1_000, 10_000])
    options = parser.parse_args()
    data = gq.datasets.load_mnist(n_components=50, folder=DATA)
    features, classes = data.features.astype(np.float32), data.classes % 2
    order = np.random.default_rng(0).permutation(len(classes))
    y = np.full(len(classes), -1)
    y[order[:N_LABELS]] = classes[order[:N_LABELS]]

    classifier, fit_seconds = timed_fit(features, y)
    print(f"{len(y)} rows, {N_LABELS} labels: fit {fit_seconds:.1f} s")
    results = {"fit": fit_seconds, "labels": [], "rows": []}
    for begin in range(N_LABELS, N_LABELS + BATCH * options.batches, BATCH):
        rows = order[begin : begin + BATCH]
        _, seconds = timed(lambda r=rows: classifier.add_labels(r, classes[r]))
        accuracy = float((classifier.transduction_ == classes).mean())
        print(f"  {begin + BATCH} labels: {seconds:.2f} s, accuracy {accuracy:.4f}", flush=True)
        results["labels"].append((begin + BATCH, seconds, accuracy))

    for n_new in options.rows:
        first = order[: len(order) - n_new]  # includes all labelled rows
        base, _ = timed_fit(features[first], y[first])
        new = order[len(order) - n_new :]
        grown, row = {}, {"rows": n_new}
        for eigenpairs in ("extend", "recompute"):
            classifier = copy.copy(base)
            _, seconds = timed(
                lambda c=classifier, r=new, e=eigenpairs: c.add_rows(features[r], eigenpairs=e)
            )
            grown[eigenpairs] = classifier
            accuracy = float((classifier.transduction_[-n_new:] == classes[new]).mean())
            row[eigenpairs] = {"seconds": seconds, "accuracy_on_new": accuracy}
        difference = np.abs(
            grown["extend"].label_distributions_ - grown["recompute"].label_distributions_
        ).max(axis=1)
        for name, part in (("old", difference[:-n_new]), ("new", difference[-n_new:])):
            row[f"difference_{name}"] = [float(part.mean()), float(part.max())]
        results["rows"].append(row)
        print(
            f"  {n_new} new rows: "
            + "; ".join(
                f"{e} {row[e]['seconds']:.1f} s, their accuracy {row[e]['accuracy_on_new']:.3f}"
                for e in ("extend", "recompute")
            )
            + f"; mean difference {row['difference_old'][0]:.4f} (old rows), "
            f"{row['difference_new'][0]:.4f} (new rows)",
            flush=True,
        )
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "growth.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
