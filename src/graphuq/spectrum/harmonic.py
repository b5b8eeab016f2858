"""The harmonic function: labels held fixed, every other node the mean of its neighbours."""

import warnings
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import linalg, sparse
from scipy.sparse.linalg import cg

from graphuq.errors import DisconnectedGraphWarning, InvalidInput, NotConvergedWarning, require
from graphuq.graphs import Graph
from graphuq.spectrum.checks import check_graph
from graphuq.spectrum.precision import DENSE_UP_TO, MAX_ITERATIONS

TOLERANCE = 1e-10


def harmonic_function(graph: Graph, labelled: Any, values: Any) -> Float[np.ndarray, "N *K"]:
    """``y_U = Δ_UU⁻¹ W_UL y_L``: the mean of the Gaussian field whose labels are values of it.

    Zhu, Lafferty & Ghahramani 2003, (2), Δ = D − W. Its value at a node is that at the first label
    that a random walk from there meets, on average. The limit of `RegularizedLaplacian` with the
    `Gaussian` likelihood as σ → ∞ and the noise vanishes.

    Parameters
    ----------
    graph : Graph
    labelled : array_like of int, shape (J,)
    values : array_like, shape (J,) or (J, K)
        Of the labels: −1 and +1, or any numbers; of several classes their indicators.

    Returns
    -------
    numpy.ndarray, shape (N,) or (N, K)
        0 in components without a label.

    Raises
    ------
    InvalidInput
        If there are no labels, a node is not there or twice, or values are not finite.

    Warns
    -----
    DisconnectedGraphWarning
        If there are such components.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> path = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
    >>> graph = gq.graphs.from_adjacency(path)
    >>> [round(u, 6) + 0.0 for u in gq.harmonic_function(graph, [0, 4], [-1.0, 1.0]).tolist()]
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    check_graph(graph)
    nodes, given = _checked(labelled, values, graph.n_nodes)
    seen = np.isin(graph.components, graph.components[nodes])
    if not seen.all():
        warnings.warn(
            f"{int((~seen).sum())} node(s) lie in components without a label, and get 0",
            DisconnectedGraphWarning,
            stacklevel=2,
        )
    free = seen.copy()
    free[nodes] = False
    found = np.zeros((graph.n_nodes, *given.shape[1:]))
    found[nodes] = given
    if free.any():
        inside = np.flatnonzero(free)
        weights = graph.weights[inside]
        pull, inner = weights[:, nodes] @ given, weights[:, inside]
        found[inside] = _solved(graph.degrees[inside], inner, pull)
    return found


def _solved(degrees: np.ndarray, weights: Any, right: np.ndarray) -> np.ndarray:
    """``(D − W) x = right`` on the free nodes."""
    if isinstance(weights, np.ndarray) or len(degrees) <= DENSE_UP_TO:
        dense = weights if isinstance(weights, np.ndarray) else weights.toarray()
        solution: np.ndarray = linalg.solve(np.diag(degrees) - dense, right, assume_a="pos")
        return solution
    matrix = sparse.csr_array(sparse.diags_array(degrees) - weights)
    preconditioner = sparse.diags_array(1 / degrees)
    columns = []
    for column in right.reshape(len(degrees), -1).T:
        x, failed = cg(matrix, column, rtol=TOLERANCE, maxiter=MAX_ITERATIONS, M=preconditioner)
        if failed:
            warnings.warn(
                f"conjugate gradients did not reach {TOLERANCE:g} in {MAX_ITERATIONS} steps; use a "
                "denser graph",
                NotConvergedWarning,
                stacklevel=3,
            )
        columns.append(x)
    return np.stack(columns, axis=1).reshape(right.shape)


def _checked(labelled: Any, values: Any, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    nodes, given = np.asarray(labelled), np.asarray(values, dtype=np.float64)
    integer = nodes.ndim == 1 and len(nodes) > 0 and np.issubdtype(nodes.dtype, np.integer)
    require(integer, "labelled", f"{labelled!r}", "give the indices of one labelled node or more")
    outside = nodes[(nodes < 0) | (nodes >= n_nodes)]
    require(
        len(outside) == 0,
        "labelled",
        f"node {outside[:1].tolist()} is not there",
        f"use indices from 0 to {n_nodes - 1}",
    )
    if len(np.unique(nodes)) < len(nodes):
        raise InvalidInput("labelled", "a node is labelled twice", "give each node once")
    require(
        given.ndim in (1, 2) and len(given) == len(nodes),
        "values",
        f"shape {given.shape} beside {len(nodes)} labelled nodes",
        "give one value a label, or one row",
    )
    require(np.isfinite(given).all(), "values", "NaN or infinite", "give numbers")
    return nodes, given
