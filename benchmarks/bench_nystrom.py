"""Nyström approximation of a spectrum: errors and cost for two choices of landmarks.

Question: which landmarks, and how many, do the eigenpairs of a complete graph need?

How to run:

    python benchmarks/bench_nystrom.py [--nodes 70000]

The data are digits of MNIST with 50 principal components and Gaussian weights, whose length scale
is half the median distance, or the median distance. Landmarks are drawn uniformly, or are centres
of k-means. Errors are those against the dense solution for 4,000 nodes, as means of three seeds.
Time and memory are those of all nodes, whose features are memory-mapped from disk.

Prints: for each length scale, number of landmarks m and choice of landmarks: the largest error of
an eigenvalue, the mean squared sine of the angles between the two spans, and seconds. Then seconds
and peak memory for all nodes.

Results go to ``benchmarks/results/nystrom.json``.
"""

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

import graphuq as gq
from graphuq.graphs.row_distances import all_distances
from peers import DATA, RESULTS

SMALL, PAIRS = 4_000, 50


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=70_000)
    parser.add_argument("--output", default=RESULTS / "nystrom.json")
    options = parser.parse_args()
    features = gq.datasets.load_mnist(n_components=50, folder=DATA).features
    features = features[np.random.default_rng(0).permutation(len(features))]
    few, rows = features[:SMALL].astype(float), []
    median = float(np.median(all_distances(few[:1000], "euclidean")))
    print(
        f"{'scale':>6} {'m':>4} {'landmarks':10} {'eigenvalue':>10} {'span':>8} {'s':>6}   "
        "(eigenvalue, span: errors)"
    )
    for scale in (median / 2, median):
        graph = gq.graphs.complete_graph(few, "gaussian", scale=scale)
        exact = gq.laplacian_spectrum(graph, n_eigenpairs=PAIRS, solver="dense")
        for m in (100, 200, 400, 800):
            for choice in ("uniform", "k-means"):
                errors, began = [], time.perf_counter()
                for seed in range(3):
                    found = gq.nystrom_spectrum(
                        few,
                        "gaussian",
                        scale=scale,
                        n_eigenpairs=PAIRS,
                        n_landmarks=m,
                        landmarks=choice,
                        rng=seed,
                    )
                    cosines = np.linalg.svd(
                        exact.eigenvectors.T @ found.eigenvectors, compute_uv=False
                    )
                    value = np.abs(found.eigenvalues - exact.eigenvalues).max()
                    errors.append([value, 1 - (cosines**2).mean()])
                seconds = (time.perf_counter() - began) / 3
                value, span = np.mean(errors, axis=0)
                rows.append([scale, m, choice, value, span, seconds])
                print(f"{scale:6.1f} {m:4} {choice:10} {value:10.1e} {span:8.1e} {seconds:6.2f}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "features.npy"
        np.save(path, features[: options.nodes].astype(np.float32))
        del features
        mapped, began = np.load(path, mmap_mode="r"), time.perf_counter()
        gq.nystrom_spectrum(mapped, "gaussian", scale=median, n_eigenpairs=PAIRS)
        seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{options.nodes} nodes, {8 * PAIRS} landmarks: {seconds:.1f} s, peak memory {peak:.1f} GB"
    )
    found = {"errors": rows, "nodes": options.nodes, "seconds": seconds, "GB": peak}
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
