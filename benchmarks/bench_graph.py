"""Graph and eigenpairs of 70,000 digits beside peers, in one run.

Question: how long does it take from features to 150 eigenpairs, how accurate are they, and how much
do their errors change label means?

How to run:

    python benchmarks/bench_graph.py [--nodes 70000] [--embedding]

The graph has 15 neighbours in 50 principal components. Peers compute the same graph: scikit-learn's
`kneighbors_graph` (brute force, all cores) and GraphLearning's `knn`. Their eigenpairs are the
largest of D^{-1/2} W D^{-1/2}, for the weights of graphuq. SciPy's `eigsh` gets the largest
residual of graphuq as its tolerance. GraphLearning's `eigen_decomp` calls `eigsh` with its own
tolerance. scikit-learn's `spectral_embedding` runs on request. Label means are those of
expectation propagation with 100 labels, odd against even digits. They are compared with those of
exact neighbours and eigenpairs to 1e-8.

Prints: seconds of each graph; seconds and the largest error of an eigenvalue of each solver; total
times; and the mean and largest change of label means.

Results go to ``benchmarks/results/graph.json``.
"""

import argparse
import json
import time
import warnings

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh
from sklearn.manifold import spectral_embedding
from sklearn.neighbors import kneighbors_graph

import graphuq as gq
from peers import DATA, RESULTS, first_label_means

K, PAIRS = 15, 150


def timed(work):
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def graphlearning():
    import graphlearning as gl

    return gl


def label_means(spectrum, classes):
    labelled = np.random.default_rng(0).choice(len(classes), 100, replace=False)
    return first_label_means(spectrum, labelled, 2 * (classes[labelled] % 2) - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=70_000)
    parser.add_argument(
        "--embedding",
        action="store_true",
        help="also run scikit-learn's spectral_embedding, which factorises the matrix",
    )
    parser.add_argument("--output", default=RESULTS / "graph.json")
    options = parser.parse_args()
    data = gq.datasets.load_mnist(n_components=50, folder=DATA)
    rows = np.random.default_rng(0).permutation(len(data.features))[: options.nodes]
    features, classes = data.features[rows], data.classes[rows]
    weights = gq.graphs.SelfTuning(4.0)
    warnings.simplefilter("ignore")
    graph, seconds = timed(lambda: gq.graphs.knn_graph(features, K, weights))
    exact_graph, exact_seconds = timed(
        lambda: gq.graphs.knn_graph(features, K, weights, search="exact")
    )
    found = {f"graphuq (recall {graph.settings['recall']:.3f})": seconds}
    found["graphuq, exact"] = exact_seconds
    _, found["scikit-learn kneighbors_graph"] = timed(
        lambda: kneighbors_graph(features, K, mode="distance", n_jobs=-1)
    )
    gl = graphlearning()
    _, found["GraphLearning knn"] = timed(lambda: gl.weightmatrix.knn(features, K))
    print(f"{len(features)} nodes, {K} neighbours: seconds")
    for name, value in found.items():
        print(f"  {name:34} {value:7.1f}")

    spectrum, seconds = timed(lambda: gq.laplacian_spectrum(exact_graph, n_eigenpairs=PAIRS))
    pairs = {"graphuq": (seconds, spectrum.eigenvalues)}
    degrees = exact_graph.degrees
    root = sparse.diags_array(1 / np.sqrt(degrees))
    matrix = sparse.csr_array(root @ exact_graph.weights @ root)
    tolerance = float(spectrum.residuals.max())
    (values, _), seconds = timed(lambda: eigsh(matrix, PAIRS, which="LA", tol=tolerance))
    pairs["SciPy eigsh"] = (seconds, 1 - np.sort(values)[::-1])
    (values, _), seconds = timed(
        lambda: gl.graph(exact_graph.weights.tocsr()).eigen_decomp(
            normalization="normalized", k=PAIRS
        )
    )
    pairs["GraphLearning eigen_decomp"] = (seconds, values)
    if options.embedding:
        _, seconds = timed(
            lambda: spectral_embedding(
                exact_graph.weights, n_components=PAIRS, eigen_tol=tolerance, drop_first=False
            )
        )
        pairs["scikit-learn spectral_embedding"] = (seconds, None)
    fine, seconds = timed(
        lambda: gq.laplacian_spectrum(exact_graph, n_eigenpairs=PAIRS, tolerance=1e-8)
    )
    pairs["graphuq, tolerance 1e-8"] = (seconds, fine.eigenvalues)
    rough = gq.laplacian_spectrum(graph, n_eigenpairs=PAIRS)
    print(f"{PAIRS} pairs: seconds, largest error of an eigenvalue")
    for name, (value, eigenvalues) in pairs.items():
        error = np.nan if eigenvalues is None else np.abs(eigenvalues - fine.eigenvalues).max()
        print(f"  {name:34} {value:7.1f} {error:9.1e}")
    peers = [found[n] for n in list(found)[2:]]
    solvers = [pairs[n][0] for n in list(pairs)[1:3]]
    best = min(peers) + min(solvers)
    ours = {n: found[n] + pairs["graphuq"][0] for n in list(found)[:2]}
    for name, value in ours.items():
        print(
            f"graph and pairs, {name}: {value:.1f} s; fastest peers {best:.1f} s, "
            f"{best / value:.1f} times as long"
        )
    means = label_means(fine, classes)
    shifts = {
        "tolerance": np.abs(label_means(spectrum, classes) - means),
        "recall": np.abs(label_means(rough, classes) - means),
    }
    for name, shift in shifts.items():
        print(
            f"change of label means by the {name}: mean {shift.mean():.1e}, largest "
            f"{shift.max():.1e}"
        )
    record = {
        "nodes": len(features),
        "graph seconds": found,
        "pair seconds": {n: v[0] for n, v in pairs.items()},
        "largest residual": float(spectrum.residuals.max()),
        "change of label means": {n: [float(s.mean()), float(s.max())] for n, s in shifts.items()},
    }
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
