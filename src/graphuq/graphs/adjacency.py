"""Graph of weights that the user already has: a matrix, a graph object or a list of edges."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from graphuq.errors import GraphRepairWarning, InvalidInput, require
from graphuq.graphs.directions import check_rule, symmetrized
from graphuq.graphs.graph import TOLERATED_ASYMMETRY, Graph, make_graph
from graphuq.graphs.graph_objects import Edges, edges_of, kind_of_graph, name_array
from graphuq.graphs.inputs import MatrixLike, to_matrix, weights_of
from graphuq.utils.user_warnings import warn_user

if TYPE_CHECKING:
    AdjacencyLike: TypeAlias = MatrixLike | Any
else:
    AdjacencyLike = Any  # graph objects are recognised by their attributes

MIN_NODES, SOME_NODES = 10, 60  # of a matrix that may hold distances, and those that are looked at
SPREAD = 4.0  # numbers within a factor of 4 keep the inequality whatever they are


def from_adjacency(
    adjacency: AdjacencyLike, *, weight: str | None = "weight", symmetrize: str | None = None
) -> Graph:
    """Make a graph of given weights.

    Parameters
    ----------
    adjacency : sparse matrix or array, array_like of shape (N, N), or graph object
        Symmetric weights; SciPy's sparse formats stay sparse. A negative weight says that two
        nodes are opposed, which two classes alone can use (docs/graphs.md). Or a graph of NetworkX,
        igraph, PyTorch Geometric (``Data``) or DGL, with its nodes in its own order, or an AnnData
        object with the neighbours of ``scanpy.pp.neighbors``. Weights of parallel edges are added.
        Names of nodes are kept in ``Graph.names``.
    weight : str or None, default "weight"
        Attribute of a graph object that holds weights of edges. An edge without it has weight 1.
        For NetworkX and igraph, an attribute ``sign`` (1 and −1, or "+" and "-") is the sign of
        the weight.
        For PyTorch Geometric, ``edge_weight`` or an ``edge_attr`` of one column is used if there
        is no attribute of this name. None: every edge has weight 1.
    symmetrize : {"union", "average", "random-walk", "shared-neighbors"}, optional
        What to do with a directed graph, whose edges lead from the row to the column. "union":
        W.maximum(W.T), an edge in either direction counts; of a negative weight the magnitude, and
        of two signs that contradict each other the mean. "average": (W + W.T) / 2.
        "random-walk": how often a random walk along the edges uses each of them, in either
        direction (Chung 2005). "shared-neighbors": how much two nodes lead to the same nodes or
        come from the same ones (Satuluri & Parthasarathy 2011). By default directed graph objects
        become their union, with a warning, and clearly asymmetric matrices are refused.

    Returns
    -------
    Graph

    Raises
    ------
    InvalidInput
        If the weights are NaN, infinite, not square or clearly asymmetric, the graph has several
        kinds of nodes, or negative weights cannot be made symmetric by this rule.

    Warns
    -----
    GraphRepairWarning
        If a directed graph is made symmetric by default, a matrix seems to hold distances, and in
        the cases of `make_graph`.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> gq.graphs.from_adjacency(np.array([[0, 1, 0], [1, 0, 2], [0, 2, 0]]))
    Graph(3 nodes, 2 edges, 1 component)
    >>> import networkx
    >>> club = gq.graphs.from_adjacency(networkx.krackhardt_kite_graph())
    >>> club.n_nodes, club.n_edges
    (10, 18)
    """
    check_rule(symmetrize)
    settings: dict[str, Any] = {"graph": "adjacency"}
    if symmetrize is not None:
        settings["symmetrize"] = symmetrize
    if kind_of_graph(adjacency) is None:
        weights = to_matrix(
            adjacency, "adjacency", "give a matrix, one row and one column per node, or a graph"
        )
        _warn_of_distances(weights)
        if symmetrize is not None and weights.ndim == 2 and weights.shape[0] == weights.shape[1]:
            weights = symmetrized(weights, symmetrize)
        return make_graph(weights, argument="adjacency", signed=True, settings=settings)
    edges = edges_of(adjacency, weight, "adjacency")
    matrix, names = edges.matrix(), edges.names
    return _graph_of(matrix, names, symmetrize, "adjacency", "a directed graph", settings)


def from_edges(
    source: Sequence[Any] | np.ndarray,
    target: Sequence[Any] | np.ndarray,
    weight: Any = None,
    *,
    nodes: Sequence[Any] | np.ndarray | None = None,
    symmetrize: str | None = None,
) -> Graph:
    """Make a graph of a list of edges between named nodes.

    Parameters
    ----------
    source, target : sequence of length E
        Names of the two nodes of each edge: texts, numbers or other values.
    weight : array_like, shape (E,), optional
        By default 1. Weights of repeated rows are added. An edge may be listed in one direction or
        in both, and counts once. A negative weight says that two nodes are opposed; see
        `from_adjacency`.
    nodes : sequence of length N, optional
        Names of all nodes, in their order. By default the names in the edges, in the order in
        which they first occur.
    symmetrize : {"union", "average", "random-walk", "shared-neighbors"}, optional
        What to do if the two directions of an edge have different weights: "union" takes the
        larger one, as the default does with a warning; "average" the mean, in which a missing
        direction counts 0. With these and the others, edges lead from source to target; see
        `from_adjacency`.

    Returns
    -------
    Graph
        With the names in ``Graph.names``.

    Raises
    ------
    InvalidInput
        If the columns differ in length, a name is missing or not among ``nodes``, a weight is NaN
        or infinite, or ``symmetrize`` is unknown or takes no negative weights.

    Warns
    -----
    GraphRepairWarning
        If the two directions of an edge have different weights.

    Examples
    --------
    >>> import graphuq as gq
    >>> graph = gq.graphs.from_edges(["ann", "bob", "cy"], ["bob", "cy", "ann"], [1.0, 2.0, 3.0])
    >>> graph
    Graph(3 nodes, 3 edges, 1 component)
    >>> graph.names.tolist()
    ['ann', 'bob', 'cy']
    """
    check_rule(symmetrize)
    sources, targets = list(source), list(target)
    require(
        len(sources) == len(targets),
        "target",
        f"{len(targets)} names for {len(sources)} of source",
        "give one target for each source",
    )
    require(len(sources) > 0, "source", "no edge", "give at least one edge")
    ends = [name for pair in zip(sources, targets, strict=True) for name in pair]
    missing = [k for k, name in enumerate(ends) if name is None or name != name or name == ""]
    if missing:
        side, row = ("source", "target")[missing[0] % 2], missing[0] // 2
        raise InvalidInput(side, f"no name in row {row}", "name both nodes of every edge")
    strange = next((name for name in ends if not isinstance(name, Hashable)), None)
    require(
        strange is None,
        "source",
        f"a name of type {type(strange).__name__}",
        "give texts, numbers or tuples as names",
    )
    names = list(dict.fromkeys(ends)) if nodes is None else list(nodes)
    place = {name: index for index, name in enumerate(names)}
    require(len(place) == len(names), "nodes", "names repeat", "give each node a name of its own")
    unknown = next((name for name in ends if name not in place), None)
    require(unknown is None, "nodes", f"{unknown!r} is missing", "name every node of the edges")
    codes = np.array([place[name] for name in ends], dtype=np.int64).reshape(-1, 2)
    numbers = weights_of(weight, len(codes), "edge")
    matrix = Edges(codes[:, 0], codes[:, 1], numbers, len(names), True).matrix()
    if symmetrize is None:  # an edge that is listed in one direction only is no asymmetry
        one_way = matrix - matrix.multiply((matrix.T != 0).astype(float))
        matrix = sparse.csr_array(matrix + one_way.T)
    what, settings = "edges with two weights", {"graph": "edges"}
    if symmetrize is not None:
        settings["symmetrize"] = symmetrize
    return _graph_of(matrix, name_array(names), symmetrize, "weight", what, settings)


def _warn_of_distances(weights: Any) -> None:
    """Warn if weights between all nodes keep the triangle inequality, as distances do.

    Weights of similarity do not: of three nodes two may be alike, and the third like neither. Roots
    of squared distances are distances, and roots of distances are distances too.
    """
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1] or weights.shape[0] < MIN_NODES:
        return
    some = np.random.default_rng(0).permutation(weights.shape[0])[:SOME_NODES]
    part = weights[some][:, some]
    part = np.array(part if isinstance(part, np.ndarray) else part.toarray(), dtype=np.float64)
    apart = part[~np.eye(len(part), dtype=bool)]
    if not (np.isfinite(apart).all() and 0 < SPREAD * apart.min() < apart.max()):
        return
    np.fill_diagonal(part, 0.0)
    roots = np.sqrt(part)
    through = (roots[:, :, None] + roots[None, :, :]).min(axis=1)
    if (roots <= through * (1 + 1e-9)).all():
        warn_user(
            "adjacency: numbers between all nodes that keep the triangle inequality, as distances "
            "do; weights are larger for nodes that are more alike. For distances use "
            "GraphClassifier(metric='precomputed'), or gq.graphs.from_distances",
            GraphRepairWarning,
        )


def _graph_of(
    weights: sparse.csr_array,
    names: np.ndarray | None,
    symmetrize: str | None,
    argument: str,
    what: str,
    settings: dict[str, Any],
) -> Graph:
    """Return the graph of weights; directed ones become symmetric, with a warning by default."""
    largest = abs(weights).max() if weights.nnz else 0.0
    asymmetry = abs(weights - weights.T).max() if weights.nnz else 0.0
    if symmetrize is None and asymmetry > TOLERATED_ASYMMETRY * largest:
        warn_user(
            f"{argument}: {what}; the larger of the weights of both directions is used "
            "(symmetrize='union', or 'average' for their mean)",
            GraphRepairWarning,
        )
        symmetrize = "union"
    if symmetrize is not None:
        weights = symmetrized(weights, symmetrize)
    return make_graph(weights, argument=argument, signed=True, settings=settings, names=names)
