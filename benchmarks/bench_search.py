"""Maximising the evidence: one gradient beside that of the paper, and complete searches.

Question: what does one gradient of the evidence cost in graphuq, and what does it cost by appendix
B of Zhu, Lafferty & Ghahramani 2003? The appendix computes the full covariance G, and G ∂Δ G for
each parameter. How long does a search over tanh weights take, and one over the number of
neighbours?

How to run:

    python benchmarks/bench_search.py [--sizes 500 1000 2000] [--large 70000]

Gradients are those of the Laplace evidence in α₁ and α₂ (tanh weights), β, σ and γ, with 20 labels
of MNIST 1/2. The script fails if a derivative differs by more than 1e-6 of the largest one.

Prints: for each size, seconds of both gradients, their ratio and their largest relative
difference; for each search, seconds, number of evaluations, log evidence and parameters.

Results go to ``benchmarks/results/search.json``.
"""

import argparse
import json
import time
import warnings

import numpy as np
from scipy.special import expit

import graphuq as gq
from graphuq.evidence.graph_gradient import GraphEvidence
from graphuq.graphs import TanhWeights
from graphuq.graphs.pairs import AllNodePairs
from graphuq.graphs.row_distances import all_distances
from graphuq.likelihoods import Logistic
from graphuq.priors import RegularizedLaplacian
from peers import DATA, RESULTS

AT = {
    "weights__steepness": 1.0,
    "weights__cutoff": 6.0,
    "prior__beta": 0.1,
    "prior__sigma": 1000.0,
    "likelihood__steepness": 1.0,
}


def literal(distances, labelled, labels, at):
    """Return value and gradient by appendix B, with its factors of two corrected.

    Numbers in brackets are equations of the paper.
    """
    slope, cutoff, beta, sigma, gamma = at.values()
    n = len(distances)
    hyperbolic = np.tanh(-slope * (distances - cutoff))
    weights = (hyperbolic + 1) / 2
    np.fill_diagonal(weights, 0.0)
    delta = np.diag(weights.sum(axis=1)) - weights
    g = np.linalg.inv(beta * (delta + np.eye(n) / sigma**2))
    g_l = g[np.ix_(labelled, labelled)]
    y = np.zeros(len(labels))
    for _ in range(200):  # (29), rewritten without the inverse of G
        pi = expit(2 * gamma * y)
        p = 4 * gamma**2 * pi * (1 - pi)
        step = np.linalg.solve(np.eye(len(y)) + g_l * p, g_l @ (gamma * (labels + 1 - 2 * pi)) - y)
        y = y + step
        if abs(step).max() < 1e-10:
            break
    pi = expit(2 * gamma * y)
    p = 4 * gamma**2 * pi * (1 - pi)
    pull = labels + 1 - 2 * pi
    system = np.eye(len(y)) + g_l * p
    value = (
        -np.log1p(np.exp(-2 * gamma * y * labels)).sum()
        - 0.5 * y @ np.linalg.solve(g_l, y)
        - 0.5 * np.linalg.slogdet(system)[1]
    )

    def of_weights(dw):
        np.fill_diagonal(dw, 0.0)
        return -g @ (beta * (np.diag(dw.sum(axis=1)) - dw)) @ g

    flat = (1 - hyperbolic**2) / 2
    changes = {  # derivatives of G and of γ in each parameter
        "weights__steepness": (of_weights(-flat * (distances - cutoff)), 0.0),
        "weights__cutoff": (of_weights(flat * slope), 0.0),
        "prior__beta": (-g / beta, 0.0),
        "prior__sigma": (2 * beta / sigma**3 * g @ g, 0.0),
        "likelihood__steepness": (np.zeros_like(g), 1.0),
    }
    gradient = {}
    for name, (dg_full, dgamma) in changes.items():
        dg = dg_full[np.ix_(labelled, labelled)]
        # (53): derivative of ŷ = γ G (t + 1 − 2π)
        rest = gamma * dg @ pull + dgamma * g_l @ (pull - 4 * gamma * pi * (1 - pi) * y)
        dy = np.linalg.solve(system, rest)
        dpi = 2 * pi * (1 - pi) * (y * dgamma + gamma * dy)
        dp = 8 * gamma * pi * (1 - pi) * dgamma + 4 * gamma**2 * (1 - 2 * pi) * dpi
        # (54)
        miss = expit(-2 * gamma * y * labels) * 2 * labels
        solved = np.linalg.solve(g_l, y)
        gradient[name] = (
            miss @ (y * dgamma + gamma * dy)
            - solved @ dy
            + 0.5 * solved @ dg @ solved
            - 0.5 * np.trace(np.linalg.solve(system, dg * p + g_l * dp))
        )
    return value, gradient


def timed(work, repeats):
    """Return the result of `work` and the mean seconds of its calls, without a first call."""
    if repeats > 1:
        work()
    began = time.perf_counter()
    for _ in range(repeats):
        found = work()
    return found, (time.perf_counter() - began) / repeats


def one_gradient(size):
    """Compute one gradient by appendix B and by graphuq, for `size` images."""
    data = gq.datasets.load_mnist((1, 2), size // 2, folder=DATA)
    distances = all_distances(data.features, "euclidean")
    truth = data.signs(1)
    labelled = np.sort(np.random.default_rng(0).choice(len(truth), 20, replace=False))
    labels = truth[labelled]
    (value, by_hand), slow = timed(lambda: literal(distances, labelled, labels, AT), 1)
    pairs = AllNodePairs(distances, np.ones(len(truth)))
    parts = ("unnormalized", None, False, RegularizedLaplacian(), Logistic())

    def ours():
        """Compute value and gradient without anything cached from an earlier call."""
        weight = TanhWeights(AT["weights__steepness"], AT["weights__cutoff"])
        model = GraphEvidence(pairs, weight, *parts, labelled, labels, "laplace")
        return model.value_and_gradient(AT)

    (found, gradient), quick = timed(ours, 3)
    scale = max(abs(by_hand[k] * AT[k]) for k in AT)
    error = max(abs(by_hand[k] * AT[k] - gradient[k]) for k in AT) / scale
    assert abs(value - found) < 1e-6, (value, found)
    assert error < 1e-6, (by_hand, gradient)
    return {"nodes": len(truth), "literal": slow, "graphuq": quick, "error": float(error)}


def gradients(sizes):
    rows = []
    print(f"{'N':>6} {'literal, s':>11} {'graphuq, s':>11} {'ratio':>6} {'difference':>11}")
    for size in sizes:
        rows.append(one_gradient(size))
        slow, quick = rows[-1]["literal"], rows[-1]["graphuq"]
        print(f"{rows[-1]['nodes']:6} {slow:11.3f} {quick:11.3f} {slow / quick:6.1f} "
              f"{rows[-1]['error']:11.1e}")  # fmt: skip
    return rows


def classifier(**changes):
    return gq.GraphClassifier(
        laplacian="unnormalized",
        model=gq.models.Fixed("regularized-laplacian", "logistic"),
        inference="laplace",
        missing_label=0,
        **changes,
    )


def searches(large):
    """Search tanh weights with 2,000 nodes, and numbers of neighbours with all of MNIST."""
    data = gq.datasets.load_mnist((1, 2), 1000, folder=DATA)
    truth = data.signs(1)
    given = np.zeros(2000)
    chosen = np.random.default_rng(0).choice(2000, 20, replace=False)
    given[chosen] = truth[chosen]
    began = time.perf_counter()
    search = gq.EvidenceSearch(
        classifier(graph="complete", weights=TanhWeights(1.0, 6.0)),
        {"weights__steepness": (0.1, 30.0), "weights__cutoff": (2.0, 12.0)},
        refit=False,
    ).fit(data.features, given)
    rows = [_search_row("tanh weights, 3 starts", 2000, search, began)]
    if large:
        digits = gq.datasets.load_mnist(None, large // 10, n_components=50, folder=DATA)
        odd = np.where(digits.classes % 2 == 1, 1.0, -1.0)
        given = np.zeros(len(odd))
        chosen = np.random.default_rng(0).choice(len(odd), 50, replace=False)
        given[chosen] = odd[chosen]
        began = time.perf_counter()
        search = gq.EvidenceSearch(
            classifier(weights="unweighted"), {"n_neighbors": (1, 128)}, refit=False
        ).fit(digits.features, given)
        rows.append(_search_row("neighbours, 1 to 128", len(odd), search, began))
    return rows


def _search_row(name, n_nodes, search, began):
    row = {
        "search": name,
        "nodes": n_nodes,
        "seconds": time.perf_counter() - began,
        "evaluations": sum(r["n_evaluations"] for r in search.results_),
        "log evidence": search.best_score_,
        "at": {k: float(v) for k, v in search.best_params_.items()},
    }
    print(f"{name}: {n_nodes} nodes, {row['seconds']:.1f} s, {row['evaluations']} evaluations, "
          f"log evidence {row['log evidence']:.3f} at {row['at']}")  # fmt: skip
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[500, 1000, 2000])
    parser.add_argument("--large", type=int, default=70_000)
    parser.add_argument("--output", default=RESULTS / "search.json")
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gq.errors.DisconnectedGraphWarning)
        found = {"gradients": gradients(options.sizes), "searches": searches(options.large)}
    RESULTS.mkdir(exist_ok=True)
    with open(options.output, "w") as file:
        json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
