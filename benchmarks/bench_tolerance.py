"""Effect of residual tolerance, recall and number of eigenpairs on label means.

Question: how accurate must graph and spectrum be so that the posterior does not change?

How to run:

    python benchmarks/bench_tolerance.py [--figure docs/images/tolerance.png]

The data are the 4s and 9s of MNIST (13,782 images), with 15 neighbours, 160 labels, a fixed prior
and noise, and expectation propagation. Label means of all nodes are compared with those of exact
neighbours, a residual of 1e-9 and the same number of eigenpairs (150). For the number of pairs ℓ,
the reference has 1,200.

Prints: for each tolerance, recall and ℓ, the mean and the largest change of a label mean; with
``--figure``, draws them.

Results go to ``benchmarks/results/tolerance.json``.
"""

import argparse
import json

import faiss
import numpy as np
from matplotlib.figure import Figure

import graphuq as gq
from graphuq.graphs import neighbors_faiss
from peers import DATA, RESULTS, first_label_means

TOLERANCES = [0.3, 0.1, 0.03, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5]
RECALLS = [0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999]
PAIRS = [25, 50, 100, 150, 300, 600]


def label_means(graph, classes, n_pairs=150, tolerance=1e-9):
    spectrum = gq.laplacian_spectrum(
        graph, n_eigenpairs=n_pairs, tolerance=tolerance, solver="lanczos"
    )
    labelled = np.random.default_rng(0).choice(len(classes), 160, replace=False)
    return first_label_means(spectrum, labelled, np.where(classes[labelled] == 9, 1, -1))


def with_recall(features, recall):
    """Return a graph whose neighbours have about this recall; lists are added one by one."""
    neighbors_faiss.MIN_RECALL, neighbors_faiss.FIRST_PROBES = recall, 1
    return gq.graphs.knn_graph(features, 15, gq.graphs.SelfTuning(4.0), search="approximate")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--figure", default=None)
    parser.add_argument("--output", default=RESULTS / "tolerance.json")
    options = parser.parse_args()
    faiss.omp_set_num_threads(2)
    data = gq.datasets.load_mnist((4, 9), n_components=50, folder=DATA)
    exact = gq.graphs.knn_graph(data.features, 15, gq.graphs.SelfTuning(4.0), search="exact")
    best = label_means(exact, data.classes)
    changes = {"residual tolerance": [], "1 − recall": [], "ℓ": []}
    for tolerance in TOLERANCES:
        change = np.abs(label_means(exact, data.classes, tolerance=tolerance) - best)
        changes["residual tolerance"].append((tolerance, change.mean(), change.max()))
    for recall in RECALLS:
        graph = with_recall(data.features, recall)
        change = np.abs(label_means(graph, data.classes) - best)
        changes["1 − recall"].append((1 - graph.settings["recall"], change.mean(), change.max()))
    many = label_means(exact, data.classes, 1_200, tolerance=1e-4)
    for n_pairs in PAIRS:
        change = np.abs(label_means(exact, data.classes, n_pairs, tolerance=1e-5) - many)
        changes["ℓ"].append((n_pairs, change.mean(), change.max()))
    for name, rows in changes.items():
        print(f"{name}: value, mean and largest change of a label mean")
        for row in rows:
            print("  {:9.2g} {:9.1e} {:9.1e}".format(*row))
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps({n: np.array(r).tolist() for n, r in changes.items()}))
    if options.figure:
        draw(changes, options.figure)


def draw(changes, path):
    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes, (name, rows) in zip(figure.subplots(1, 3), changes.items(), strict=True):
        x, mean, largest = np.array([row for row in rows if row[0] > 0]).T
        axes.loglog(x, mean, "o-", color="#1b5e8c", label="mean")
        axes.loglog(x, largest, "s--", color="#bf4412", label="largest")
        axes.axhline(0.01, color="grey", lw=0.8)
        axes.set(xlabel=name)
        axes.spines[["top", "right"]].set_visible(False)
    axes.set_xticks(PAIRS, [str(n) for n in PAIRS])
    axes.minorticks_off()
    figure.axes[0].set(ylabel="change of label means")
    figure.axes[0].legend(frameon=False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
