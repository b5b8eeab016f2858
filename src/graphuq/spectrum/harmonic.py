"""Harmonic function: fixed labels, and every other node the mean of its neighbours."""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import linalg, sparse
from scipy.sparse.linalg import cg

from graphuq.errors import DisconnectedGraphWarning, NotConvergedWarning, require
from graphuq.graphs import Graph
from graphuq.graphs.signs import Weights
from graphuq.spectrum.checks import check_graph
from graphuq.spectrum.precision import DENSE_UP_TO, MAX_ITERATIONS
from graphuq.utils.checks import numbers_among
from graphuq.utils.user_warnings import warn_user

TOLERANCE = 1e-10  # relative residual of conjugate gradients


def harmonic_function(
    graph: Graph, labelled: ArrayLike, values: ArrayLike
) -> Float[np.ndarray, "N *K"]:
    """Compute ``y_U = Δ_UU⁻¹ W_UL y_L``, the mean of the Gaussian field with fixed labels.

    Source: Zhu, Lafferty & Ghahramani 2003, (2), Δ = D − W. Its value at a node is the mean label
    that a random walk from there meets first. A negative weight turns the sign of what lies behind
    it, and degrees D are sums of ``|W|``. It is the limit of `RegularizedLaplacian` with the
    `GaussianNoise` likelihood as σ → ∞ and γ → 0.

    Parameters
    ----------
    graph : Graph
    labelled : array_like of int, shape (J,)
        Indices of the labelled nodes.
    values : array_like, shape (J,) or (J, K)
        Labels −1 and +1, or any numbers; for more classes their indicators.

    Returns
    -------
    numpy.ndarray, shape (N,) or (N, K)
        Values at all nodes; 0 in components without a label.

    Raises
    ------
    InvalidInput
        If there are no labels, a node does not exist or is given twice, or values are not finite.

    Warns
    -----
    DisconnectedGraphWarning
        If there are components without a label.

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
        warn_user(
            f"{int((~seen).sum())} node(s) are in components without a label and have the value 0",
            DisconnectedGraphWarning,
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


def _solved(degrees: np.ndarray, weights: Weights, right: np.ndarray) -> np.ndarray:
    """Solve ``(D − W) x = right`` on the unlabelled nodes."""
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
            warn_user(
                f"conjugate gradients did not reach {TOLERANCE:g} in {MAX_ITERATIONS} steps; use a "
                "denser graph",
                NotConvergedWarning,
            )
        columns.append(x)
    return np.stack(columns, axis=1).reshape(right.shape)


def _checked(labelled: ArrayLike, values: ArrayLike, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    nodes = numbers_among(labelled, n_nodes, "labelled")
    given = np.asarray(values, dtype=np.float64)
    require(
        given.ndim in (1, 2) and len(given) == len(nodes),
        "values",
        f"shape {given.shape} for {len(nodes)} labelled nodes",
        "give one value a label, or one row",
    )
    require(np.isfinite(given).all(), "values", "NaN or infinite", "give numbers")
    return nodes, given
