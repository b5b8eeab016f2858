"""Graphs of nearest neighbours."""

from typing import Literal

import numpy as np
from scipy import sparse

from graphuq.errors import InvalidInput, require
from graphuq.graphs.distances import graph_of_distances
from graphuq.graphs.equal_rows import among_distinct_rows
from graphuq.graphs.feature_space import FeatureSpace
from graphuq.graphs.features import between, check_neighbor_count, check_space, has_direction
from graphuq.graphs.graph import Graph, make_graph
from graphuq.graphs.inputs import Features, MatrixLike
from graphuq.graphs.neighbor_lists import is_neighbor_lists
from graphuq.graphs.neighbors import Neighbors, add_rows, nearest_neighbors
from graphuq.graphs.pairs import NodePairs
from graphuq.graphs.principal import Axes, main_axes
from graphuq.graphs.weights import Scale, WeightFunction, weight_function
from graphuq.utils.checks import describe
from graphuq.utils.progress import Progress


def knn_graph(
    X: MatrixLike,
    n_neighbors: int = 20,
    weights: str | WeightFunction = "self-tuning",
    *,
    scale: Scale | None = None,
    symmetrize: str = "union",
    metric: str | None = None,
    search: str = "auto",
    n_components: int | Literal["auto"] | None = None,
    progress: Progress | None = None,
) -> Graph:
    """Join each node to its K nearest neighbours.

    If more than a quarter of the neighbours of some row are equal to it, as in tables of few
    distinct rows, equal rows count once: at most half of the neighbours of each node are equal
    to it, and the others are the nearest *distinct* rows. Otherwise the graph would fall apart
    into groups of equal rows. This is not done for given distances.

    Parameters
    ----------
    X : array_like or sparse matrix, shape (N, d)
        Finite features, one row per node; with ``metric="precomputed"`` the distances of all
        pairs, shape (N, N), or a sparse matrix of the distances to at least K neighbours, as
        for `from_distances`.
    n_neighbors : int, default 20
        Number K of neighbours, excluding the node itself; 1 <= K < N.
    weights : {"self-tuning", "gaussian", "unweighted", "cosine"} or WeightFunction
        See `graphuq.graphs.weights`; "self-tuning" by default. With ``"cosine"`` neighbours are
        also found by the cosine.
    scale : float or array_like of shape (d,), optional
        Length scale of the ``"gaussian"`` weights, or one per feature.
    symmetrize : {"union", "average"}, default "union"
        ``"union"``: two nodes are joined at full weight if either has the other among its K
        neighbours (the definition of Bertozzi et al. 2018, §5.1.3). ``"average"``:
        ``(A + Aᵀ)/2``, which halves the weight of edges that are directed in A.
    metric : {"euclidean", "cosine", "precomputed"}, optional
        By default the metric of the weight function: cosine for "cosine", else Euclidean. Rows of
        zeros, such as texts without a known word, have no cosine and so no neighbours.
    search : {"auto", "exact", "approximate"}, default "auto"
        "approximate" searches inverted lists until 99 % of the true neighbours of a sample are
        found; ``settings["recall"]`` is the share that was found. "auto" is approximate for more
        than 50,000 rows with more than four dense features, else exact.
    n_components : int, "auto" or None, default None
        Number of principal components of the features, 1 to d, in which distances are measured.
        None: distances of the features themselves. "auto", which `GraphClassifier` uses, is 50 for
        more than 100 dense features with Euclidean distances and without scales of their own, else
        None.
    progress : callable, optional
        Called with "neighbours", rows done, N, and NaN; see `graphuq.utils.progress`.

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
    if symmetrize not in ("union", "average"):
        raise InvalidInput("symmetrize", f"{symmetrize!r} is unknown", "use 'union' or 'average'")
    if weight.metric == "precomputed" and (sparse.issparse(X) or is_neighbor_lists(X)):
        return graph_of_distances(X, n_neighbors, weight, symmetrize, "X")
    features = check_space(X, weight)
    check_neighbor_count(n_neighbors, features.shape[0])

    require(
        progress is None or callable(progress),
        "progress",
        f"{describe(progress)} is not a function",
        "give a callback, or leave it out",
    )
    axes = main_axes(features, weight, n_components)
    points = features if axes is None else axes.scores(features)
    neighbors = nearest_neighbors(
        points, n_neighbors, weight.metric, search=search, progress=progress
    )
    distinct = among_distinct_rows(points, neighbors, weight.metric, search)
    return _graph_of_neighbors(features, weight, neighbors, symmetrize, distinct, axes)


def grown_graph(graph: Graph, X: MatrixLike) -> Graph:
    """Add nodes to a graph of nearest neighbours; they follow the nodes that it has.

    The result is the graph that `knn_graph` makes of all rows (with ``search="exact"``, if the
    given graph is exact). The neighbours of the new rows are found, and the new rows enter the
    neighbour lists of the old ones. This takes ``N M`` distances instead of ``(N + M)²``.
    Principal components in which distances are measured stay those of the given graph.

    Parameters
    ----------
    graph : Graph
        Graph made by `knn_graph` from features.
    X : array_like or sparse matrix, shape (M, d)
        Features of the new nodes.

    Returns
    -------
    Graph

    Raises
    ------
    InvalidInput
        If the graph is of another kind, or the features are not finite or differ in number.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> path = gq.graphs.knn_graph(np.arange(5.0)[:, None], n_neighbors=2)
    >>> gq.graphs.grown_graph(path, [[5.0], [6.0]])
    Graph(7 nodes, 8 edges, 1 component)
    """
    require(
        hasattr(graph, "feature_space"),
        "graph",
        f"{describe(graph)} is not a graph",
        "call grown_graph(graph, X) with a graph made by knn_graph",
    )
    space = graph.feature_space
    if space is None or space.neighbors is None:
        raise InvalidInput(
            "graph",
            f"no rows can be added to a graph of kind {graph.settings.get('graph', 'adjacency')!r}",
            "make a graph of all rows, or use knn_graph with features",
        )
    more, metric = space.in_space(X), space.weight.metric
    points, neighbors = add_rows(space.points, space.neighbors, space.measured(more), metric)
    features = points if space.axes is None else np.concatenate([space.features, more])
    neighbors = neighbors._replace(recall=min(neighbors.recall, graph.settings["recall"]))
    always = "distinct" in graph.settings
    distinct = among_distinct_rows(points, neighbors, metric, "exact", always)
    symmetrize = graph.settings["symmetrize"]
    return _graph_of_neighbors(features, space.weight, neighbors, symmetrize, distinct, space.axes)


def _graph_of_neighbors(
    features: Features,
    weight: WeightFunction,
    nearest: Neighbors,
    symmetrize: str,
    distinct: Neighbors | None,
    axes: Axes | None,
) -> Graph:
    """Make the graph that joins each node to its nearest neighbours, or nearest distinct ones."""
    neighbors = nearest if distinct is None else distinct
    pairs = NodePairs.of_neighbors(neighbors.distances, neighbors.indices)
    values = pairs.weights(weight)
    if symmetrize == "average":
        values = np.where(pairs.mutual, values, values / 2)
    n_neighbors = neighbors.indices.shape[1]
    space = FeatureSpace.of(
        features, weight, pairs.local_scales, n_neighbors, neighbors=neighbors.indices, axes=axes
    )
    known = has_direction(features, weight.metric)
    return make_graph(
        between(pairs.adjacency(values), known, known),
        argument="X",
        feature_space=space,
        settings={
            "graph": "knn",
            "n_neighbors": n_neighbors,
            "weights": repr(weight),
            "symmetrize": symmetrize,
            "metric": weight.metric,
            "recall": round(neighbors.recall, 4),
            **({} if axes is None else {"n_components": axes.directions.shape[1]}),
            **({} if distinct is None else {"distinct": True}),
        },
    )
