"""A graph whose weights are larger near the labelled nodes, for one or two labels a class."""

import dataclasses

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from graphuq.errors import NotConvergedWarning, require
from graphuq.graphs.graph import Graph, make_graph
from graphuq.graphs.signs import Weights, require_no_signs
from graphuq.utils.checks import describe, numbers_among
from graphuq.utils.user_warnings import warn_user

TOLERANCE = 1e-10  # of the residual of the Poisson equation, relative to its right-hand side
MAX_ITERATIONS = 10_000


def poisson_reweighted(graph: Graph, labelled: ArrayLike, *, floor: float = 1.0) -> Graph:
    r"""Return the graph with weights that grow towards the labelled nodes.

    The new weights are ``c γ_i w_ij γ_j``. γ solves the Poisson equation with a source at each
    labelled node, ``(D − W) γ = Σ_j (e_j − 1/N)`` (Miller & Calder 2023, after the properly
    weighted Laplacian of Calder & Slepčev 2020). On a large graph with few labels the usual
    Laplacian has nearly constant solutions with spikes at the labels. Large weights near the labels
    make spikes improbable, so that a label tells something of nodes far away.

    Use it with the unnormalised Laplacian. It gains most on a graph that was given without
    features, with one to five labels a class; on a graph of neighbours it gains next to nothing
    (docs/archive/few_labels.md). It depends on the labelled nodes, and not on their classes: with
    other labelled nodes make it again.

    Parameters
    ----------
    graph : Graph
    labelled : array_like of int, shape (J,)
        Labelled nodes, without repetition.
    floor : float, default 1.0
        > 0. γ is known up to a constant for each component. Its least value there is 0, to which
        ``floor`` times the mean of γ over all nodes is added. With a large floor the weights
        differ little from the given ones.

    Returns
    -------
    Graph
        With as large a sum of weights as the given graph, and its names and other graphs. Rows
        that are not nodes cannot be connected to it. In a component without a label γ is constant.

    Raises
    ------
    InvalidInput
        If a labelled node does not exist or occurs twice, there is none, ``floor`` is not positive,
        or weights are negative.

    Warns
    -----
    NotConvergedWarning
        If conjugate gradients do not solve the equation to a residual of 1e-10.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> path = np.diag(np.ones(4), 1) + np.diag(np.ones(4), -1)
    >>> graph = gq.graphs.poisson_reweighted(gq.graphs.from_adjacency(path), [0])
    >>> np.diag(graph.weights, 1).round(2)
    array([2.11, 1.06, 0.53, 0.3 ])
    """
    nodes = numbers_among(labelled, graph.n_nodes, "labelled")
    require_no_signs(graph.weights, "the Poisson equation takes none")
    usable = isinstance(floor, int | float) and 0 < floor < np.inf
    require(usable, "floor", describe(floor), "use a positive number")
    source = np.bincount(nodes, minlength=graph.n_nodes).astype(float)
    of_each, members = np.bincount(graph.components, source), np.bincount(graph.components)
    source -= (of_each / members)[graph.components]
    gamma = _solved(graph, source)
    least = np.full(graph.n_components, np.inf)
    np.minimum.at(least, graph.components, gamma)
    gamma -= least[graph.components]
    mean = float(gamma.mean())
    # All nodes of each component with a label have one: the weights stay as they are.
    gamma = gamma + floor * mean if mean > 0 else np.ones(graph.n_nodes)
    return dataclasses.replace(
        make_graph(
            _scaled(graph.weights, gamma),
            argument="graph",
            feature_space=graph.feature_space if graph.has_node_features else None,
            settings={**graph.settings, "reweighted": "poisson", "floor": float(floor)},
            names=graph.names,
        ),
        others=graph.others,
    )


def _solved(graph: Graph, source: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Return a solution of ``(D − W) γ = source``, whose sum is 0 over each component."""
    degrees = graph.degrees
    inverse = np.divide(1.0, degrees, out=np.ones_like(degrees), where=degrees > 0)
    shape, size = (graph.n_nodes,) * 2, float(np.linalg.norm(source))
    if size == 0:
        return source
    laplacian = LinearOperator(shape, matvec=lambda x: degrees * x - graph.weights @ x)
    scaling = LinearOperator(shape, matvec=lambda x: inverse * x)
    gamma, left = cg(laplacian, source, rtol=TOLERANCE, atol=0.0, maxiter=MAX_ITERATIONS, M=scaling)
    if left:
        residual = float(np.linalg.norm(source - laplacian.matvec(gamma))) / size
        warn_user(
            f"the Poisson equation is solved to a residual of {residual:.1e}, not {TOLERANCE:.0e}; "
            "use more neighbours, so that parts of the graph are better joined",
            NotConvergedWarning,
        )
    return np.asarray(gamma)


def _scaled(weights: Weights, gamma: Float[np.ndarray, " N"]) -> Weights:
    """Return ``γ_i w_ij γ_j``, scaled so that the sum of weights stays the same."""
    if isinstance(weights, np.ndarray):
        new = gamma[:, None] * weights * gamma[None, :]
        return np.asarray(new * (weights.sum() / new.sum()))
    scaling = sparse.diags_array(gamma)
    product = sparse.csr_array(scaling @ weights @ scaling)
    product = sparse.csr_array((product + product.T) / 2)  # exactly symmetric
    product.data *= weights.data.sum() / product.data.sum()
    product.sort_indices()
    return product
