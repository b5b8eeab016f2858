"""Eigenpairs: time and accuracy of Lanczos in graphuq beside SciPy, on the same graph.

Question: how long do the ℓ smallest eigenpairs of a graph of MNIST take, and how accurate are they?
Laplacians are the symmetric and the unnormalised one.

How to run:

    python benchmarks/bench_spectrum.py [--nodes 70000 13000] [--unnormalized 4000 13000]

SciPy computes the largest eigenvalues of D^{-1/2} W D^{-1/2}, or of 2 d_max I − L, by `eigsh` with
its default number of Krylov vectors. GraphLearning's `eigen_decomp` and most scripts do the same.
The tolerance of `eigsh` is relative to the eigenvalue that it iterates on, and that of graphuq to
the largest requested eigenvalue. Printed residuals are relative to an upper bound on all
eigenvalues.

Prints: for each size, Laplacian and number of pairs: seconds and the largest residual of both
methods, and the ratio of their times.

Results go to ``benchmarks/results/spectrum.json``.
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
    """Return the eigenpairs of graphuq, including the null vectors."""
    spectrum = gq.laplacian_spectrum(graph, kind, n_pairs, solver="lanczos", tolerance=TOLERANCE)
    return spectrum.eigenvalues, spectrum.eigenvectors


def scipys(graph, kind, n_pairs):
    """Return the eigenpairs that SciPy finds as the largest ones of ``shift − L``."""
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
        ratio = rows[-1]["seconds"] / rows[-2]["seconds"]
        print(f"{'':34} SciPy takes {ratio:.1f} times as long", flush=True)
    RESULTS.mkdir(exist_ok=True)
    with open(options.output, "w") as file:
        json.dump({"tolerance": TOLERANCE, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
