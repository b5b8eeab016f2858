"""Eigenpairs: seconds and accuracy of the library's Lanczos beside SciPy's, on the same graph.

Question: how long do the ℓ smallest eigenpairs of MNIST's graph take, of the symmetric and of the
unnormalised Laplacian, and how exact are they?

    python benchmarks/bench_spectrum.py [--nodes 70000 13000] [--unnormalized 4000 13000]

Peers find the largest eigenvalues of D^{-1/2} W D^{-1/2}, or of 2 d_max − L, by `eigsh` with its
own number of Krylov vectors: what GraphLearning's `eigen_decomp` and most scripts do. Its tolerance
is relative to the eigenvalue it iterates on, ours to the largest wanted one; residuals, which are
printed, to the largest of all.
"""

import argparse
import json
import time

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

import graphuq as gq
from graphuq.spectrum.laplacian import Laplacian
from peers import DATA, RESULTS

TOLERANCE = 1e-8


def ours(graph, kind, n_pairs):
    """Null vectors included."""
    spectrum = gq.laplacian_spectrum(graph, kind, n_pairs, solver="lanczos", tolerance=TOLERANCE)
    return spectrum.eigenvalues, spectrum.eigenvectors


def scipys(graph, kind, n_pairs):
    """Of ``shift − L``."""
    degrees = graph.degrees
    if kind == "symmetric":
        root = sparse.diags_array(1 / np.sqrt(degrees))
        matrix, shift = (root @ graph.weights @ root).tocsr(), 1.0
    else:
        shift = 2 * degrees.max()
        matrix = (sparse.diags_array(shift - degrees) + graph.weights).tocsr()
    values, vectors = eigsh(matrix, n_pairs, which="LA", tol=TOLERANCE)
    order = np.argsort(-values)
    return shift - values[order], vectors[:, order]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="*", default=[13_000, 70_000])
    parser.add_argument("--unnormalized", type=int, nargs="*", default=[4_000])
    parser.add_argument("--output", default=RESULTS / "spectrum.json")
    options = parser.parse_args()
    data = gq.datasets.load_mnist(n_components=50, folder=DATA)
    rng, rows = np.random.default_rng(0), []
    print(f"{'N':>6} {'Laplacian':13} {'pairs':>5} {'method':8} {'s':>7} {'residual':>9}")
    cases = [(n, "symmetric", pairs) for n in options.nodes for pairs in (10, 150)]
    cases += [(n, "unnormalized", 300) for n in options.unnormalized]
    for n, kind, n_pairs in cases:
        chosen = np.sort(rng.choice(len(data.features), min(n, len(data.features)), replace=False))
        graph = gq.graphs.knn_graph(data.features[chosen], 15)
        operator = Laplacian(graph, kind)
        for name, method in (("graphuq", ours), ("SciPy", scipys)):
            began = time.perf_counter()
            values, vectors = method(graph, kind, n_pairs)
            seconds = time.perf_counter() - began
            error = np.linalg.norm(operator @ vectors - vectors * values, axis=0).max()
            rows.append(
                {
                    "nodes": len(chosen),
                    "laplacian": kind,
                    "pairs": n_pairs,
                    "method": name,
                    "seconds": seconds,
                    "residual": float(error / operator.upper_bound),
                    "last eigenvalue": float(values[-1]),
                }
            )
            row = rows[-1]
            print(
                f"{row['nodes']:6} {kind:13} {n_pairs:5} {name:8} {seconds:7.2f} "
                f"{row['residual']:9.1e}",
                flush=True,
            )
        print(f"{'':34} ratio {rows[-1]['seconds'] / rows[-2]['seconds']:.1f}", flush=True)
    RESULTS.mkdir(exist_ok=True)
    with open(options.output, "w") as file:
        json.dump({"tolerance": TOLERANCE, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
