"""Graph of all pairs within a radius."""

from typing import Any

from graphuq.errors import require
from graphuq.graphs.feature_space import FeatureSpace
from graphuq.graphs.features import check_space
from graphuq.graphs.graph import Graph, make_graph
from graphuq.graphs.neighbors import neighbors_within
from graphuq.graphs.pairs import NodePairs
from graphuq.graphs.weights import SelfTuning, WeightFunction, weight_function


def epsilon_graph(
    X: Any,
    radius: float,
    weights: str | WeightFunction = "unweighted",
    *,
    scale: Any = None,
    metric: str | None = None,
) -> Graph:
    """Join every two nodes that are at most ``radius`` apart (Zhu et al. 2003, §3).

    Parameters
    ----------
    X : array_like or sparse matrix, shape (N, d)
        Finite features; with ``metric="precomputed"`` the distances of all pairs, shape (N, N).
    radius : float
        ε > 0, in units of the distance.
    weights : {"unweighted", "gaussian", "cosine"} or WeightFunction, default "unweighted"
        See `graphuq.graphs.weights`; not self-tuning, whose local scales are those of neighbours.
    scale : float or array_like, optional
        Length of the ``"gaussian"`` weights, or one a feature.
    metric : {"euclidean", "cosine", "precomputed"}, optional
        By default the weight function's, which is Euclidean but for "cosine".

    Returns
    -------
    Graph

    Raises
    ------
    InvalidInput
        If features are not finite numbers, an option is unknown, or no two nodes are so near.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> gq.graphs.epsilon_graph(np.array([[0.0], [1.0], [2.0], [2.5]]), radius=1.0)
    Graph(4 nodes, 3 edges, 1 component)
    """
    weight = weight_function(weights, scale, metric)
    require(radius > 0, "radius", f"{radius!r} is not positive", "use a number > 0")
    require(
        not isinstance(weight, SelfTuning),
        "weights",
        "self-tuning has no local scales here",
        "use knn_graph, or 'unweighted'",
    )
    features = check_space(X, weight)
    near = neighbors_within(features, float(radius), weight.metric)
    pairs = NodePairs.of_directed(near)
    require(
        len(pairs.rows) > 0,
        "radius",
        f"no two of {features.shape[0]} nodes are within {radius!r}",
        "use a larger one",
    )
    return make_graph(
        pairs.adjacency(pairs.weights(weight)),
        argument="X",
        feature_space=FeatureSpace.of(features, weight, radius=float(radius)),
        settings={
            "graph": "epsilon",
            "radius": float(radius),
            "weights": repr(weight),
            "metric": weight.metric,
        },
    )
