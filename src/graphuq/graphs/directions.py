"""Symmetric weights of a directed graph, whose edges lead from the row to the column."""

from collections.abc import Callable

import numpy as np
from scipy import sparse

from graphuq.errors import require
from graphuq.graphs.signs import Weights, has_signs

RESTART = 0.01  # share of steps of the walk that lead to any node (Zhou, Huang & Schölkopf 2005)
TOLERANCE, MAX_STEPS = 1e-12, 10_000  # total change of the stationary distribution in a step
MAX_PAIRS = 100_000_000  # of nodes with a common neighbour, whose weights fill about 3 GB


def symmetrized(weights: Weights, rule: str) -> Weights:
    """Return symmetric weights by one of `RULES`.

    Raises
    ------
    InvalidInput
        If nodes have too many common neighbours for "shared-neighbors", or weights are negative
        and the rule is one of walks.
    """
    own = weights if sparse.issparse(weights) else sparse.csr_array(weights)
    if not np.isfinite(own.data).all():
        rule = "average"  # which keeps wrong weights, so that they are refused
    require(
        rule in ("union", "average") or not has_signs(own),
        "symmetrize",
        f"{rule!r} of negative weights, along which no walk leads",
        "use 'union' or 'average'",
    )
    found = RULES[rule](own)
    return found if sparse.issparse(weights) else np.asarray(found.toarray())


def check_rule(rule: str | None, argument: str = "symmetrize") -> None:
    """Raise `InvalidInput` if a rule is unknown; None means that it is not chosen."""
    known = ", ".join(f"'{name}'" for name in RULES)
    require(rule is None or rule in RULES, argument, f"{rule!r} is unknown", f"use {known}")


def _union(weights: sparse.csr_array) -> sparse.csr_array:
    """Return the larger of W and its transpose, with their signs; the mean if these contradict."""
    if not has_signs(weights):
        return sparse.csr_array(weights.maximum(weights.T))
    back = sparse.csr_array(weights.T)
    sign = (weights + back).sign()
    contradict = weights.multiply(back) < 0
    larger = abs(weights).maximum(abs(back)).multiply(sign)
    mean = _average(weights).multiply(contradict)
    return sparse.csr_array(larger - larger.multiply(contradict) + mean)


def _average(weights: sparse.csr_array) -> sparse.csr_array:
    """Return ``(W + Wᵀ) / 2``."""
    return sparse.csr_array((weights + weights.T) / 2)


def _random_walk(weights: sparse.csr_array) -> sparse.csr_array:
    """Return ``N (Φ P + Pᵀ Φ) / 2`` of the walk along the edges, with stationary distribution φ.

    Their normalized Laplacian is that of a directed graph (Chung 2005), for an undirected graph
    the usual one. A node without an edge leads to all others alike.
    """
    n, weights = weights.shape[0], _without_loops(weights)
    out = np.asarray(weights.sum(axis=1)).ravel()
    steps = sparse.diags_array(_inverse(out)) @ weights
    back, ends = sparse.csr_array(steps.T), out == 0
    share = np.full(n, 1 / n)
    for _ in range(MAX_STEPS):
        new = (1 - RESTART) * (back @ share + share[ends].sum() / n) + RESTART / n
        change, share = float(np.abs(new - share).sum()), new
        if change <= TOLERANCE:
            break
    return _average(sparse.csr_array(n * (sparse.diags_array(share) @ steps)))


def _shared_neighbors(weights: sparse.csr_array) -> sparse.csr_array:
    """Return how much nodes lead to the same nodes, or come from the same ones.

    With degrees of both directions, ``D_o^-½ W D_i^-½ Wᵀ D_o^-½ + D_i^-½ Wᵀ D_o^-½ W D_i^-½``: a
    common neighbour of many tells little (Satuluri & Parthasarathy 2011).
    """
    weights = _without_loops(weights)
    one = weights != 0
    n_pairs = sum(float((np.asarray(one.sum(axis=k)).ravel() ** 2).sum()) for k in (0, 1))
    require(
        n_pairs <= MAX_PAIRS,
        "symmetrize",
        f"'shared-neighbors' makes up to {n_pairs:.2g} pairs of nodes with a common neighbour",
        "leave out nodes with very many edges, or use 'random-walk'",
    )
    out, into = (
        sparse.diags_array(np.sqrt(_inverse(np.asarray(weights.sum(axis=k)).ravel())))
        for k in (1, 0)
    )
    scaled = out @ weights @ into
    leads = scaled @ weights.T @ out
    comes = into @ (weights.T @ out @ weights) @ into
    return _without_loops(sparse.csr_array(leads + comes))


def _inverse(degrees: np.ndarray) -> np.ndarray:
    """Return 1/d, or 0 where d is 0."""
    return np.divide(1.0, degrees, out=np.zeros_like(degrees, dtype=float), where=degrees > 0)


def _without_loops(weights: sparse.csr_array) -> sparse.csr_array:
    """Return the weights with zero diagonal."""
    found = sparse.csr_array(weights - sparse.diags_array(weights.diagonal()))
    found.eliminate_zeros()
    return found


RULES: dict[str, Callable[[sparse.csr_array], sparse.csr_array]] = {
    "union": _union,
    "average": _average,
    "random-walk": _random_walk,
    "shared-neighbors": _shared_neighbors,
}
