"""k-nearest-neighbour graph."""

from typing import Any

import numpy as np

from graphuq.errors import InvalidInput
from graphuq.graphs.feature_space import FeatureSpace
from graphuq.graphs.features import check_lengths, check_neighbor_count, check_space
from graphuq.graphs.graph import Graph, make_graph
from graphuq.graphs.neighbors import Neighbors, nearest_neighbors, with_more
from graphuq.graphs.pairs import NodePairs
from graphuq.graphs.weights import WeightFunction, weight_function
from graphuq.utils.progress import Progress


def knn_graph(
    X: Any,
    n_neighbors: int = 20,
    weights: str | WeightFunction = "self-tuning",
    *,
    scale: Any = None,
    symmetrize: str = "union",
    metric: str | None = None,
    search: str = "auto",
    progress: Progress | None = None,
) -> Graph:
    """Join each node to its K nearest neighbours.

    Parameters
    ----------
    X : array_like or sparse matrix, shape (N, d)
        Finite features, one row a node; with ``metric="precomputed"`` the distances of all pairs,
        shape (N, N).
    n_neighbors : int, default 20
        K, the node itself not counted; 1 <= K < N.
    weights : {"self-tuning", "gaussian", "unweighted", "cosine"} or WeightFunction
        See `graphuq.graphs.weights`; ``"cosine"`` also measures nearness by the cosine.
    scale : float or array_like, optional
        Length of the ``"gaussian"`` weights, or one a feature.
    symmetrize : {"union", "average"}, default "union"
        ``"union"``: an edge where either end has the other among its K neighbours, at full
        weight (the definition of Bertozzi et al. 2018, §5.1.3). ``"average"``:
        ``(A + Aᵀ)/2``, which halves the edges that only one end chose.
    metric : {"euclidean", "cosine", "precomputed"}, optional
        By default the weight function's, which is Euclidean but for "cosine".
    search : {"auto", "exact", "approximate"}, default "auto"
        "approximate": by inverted lists, of which so many are searched that 99 % of the true
        neighbours of a sample are found; ``settings["recall"]`` says which share was. "auto": so
        beyond 50,000 rows of more than four dense features, else exact.
    progress : callable, optional
        Called with "neighbours", rows done, N, and NaN.

    Returns
    -------
    Graph

    Raises
    ------
    InvalidInput
        If features are not finite numbers, an option is unknown, or N <= K.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> gq.graphs.knn_graph(square, n_neighbors=2)
    Graph(4 nodes, 4 edges, 1 component)
    """
    weight = weight_function(weights, scale, metric)
    features = check_space(X, weight)
    check_neighbor_count(n_neighbors, features.shape[0])
    if symmetrize not in ("union", "average"):
        raise InvalidInput("symmetrize", f"{symmetrize!r} is unknown", "use 'union' or 'average'")

    near = nearest_neighbors(features, n_neighbors, weight.metric, search=search, progress=progress)
    return _of_lists(features, weight, near, symmetrize)


def grown_graph(graph: Graph, X: Any) -> Graph:
    """A graph of nearest neighbours with further nodes, put after those that it has.

    The same graph as `knn_graph` makes of all rows (with ``search="exact"``, if the first was
    exact): the neighbours of the further rows are sought, and they take their places in the lists
    of the others. ``N M`` distances instead of ``(N + M)²``.

    Parameters
    ----------
    graph : Graph
        Made by `knn_graph` of features.
    X : array_like or sparse matrix, shape (M, d)
        Features of the further nodes.

    Returns
    -------
    Graph

    Raises
    ------
    InvalidInput
        If the graph is of another kind, or features are not finite or of another number.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> path = gq.graphs.knn_graph(np.arange(5.0)[:, None], n_neighbors=2)
    >>> gq.graphs.grown_graph(path, [[5.0], [6.0]])
    Graph(7 nodes, 8 edges, 1 component)
    """
    space = graph.feature_space
    if space is None or space.neighbors is None:
        raise InvalidInput(
            "graph",
            f"of the kind {graph.settings.get('graph', 'ready-made')!r}, which rows cannot join",
            "make it anew with all rows; knn_graph of features is the one that grows",
        )
    more, metric = space.in_space(X), space.weight.metric
    if metric == "cosine":
        check_lengths(more)
    features, near = with_more(space.features, space.neighbors, more, metric)
    near = near._replace(recall=min(near.recall, graph.settings["recall"]))
    return _of_lists(features, space.weight, near, graph.settings["symmetrize"])


def _of_lists(features: Any, weight: Any, near: Neighbors, symmetrize: str) -> Graph:
    """The graph of everyone's nearest neighbours."""
    pairs = NodePairs.of_neighbors(near.distances, near.indices)
    values = pairs.weights(weight)
    if symmetrize == "average":
        values = np.where(pairs.mutual, values, values / 2)
    n_neighbors = near.indices.shape[1]
    space = FeatureSpace.of(
        features, weight, pairs.local_scales, n_neighbors, neighbors=near.indices
    )
    return make_graph(
        pairs.adjacency(values),
        argument="X",
        feature_space=space,
        settings={
            "graph": "knn",
            "n_neighbors": n_neighbors,
            "weights": repr(weight),
            "symmetrize": symmetrize,
            "metric": weight.metric,
            "recall": round(near.recall, 4),
        },
    )
