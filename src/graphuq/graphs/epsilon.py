"""Graph of all pairs within a radius."""

import dataclasses
from typing import Any, ClassVar

from graphuq.errors import require
from graphuq.graphs.builder import GraphBuilder
from graphuq.graphs.feature_space import FeatureSpace
from graphuq.graphs.features import between, check_space, has_direction
from graphuq.graphs.graph import Graph, make_graph
from graphuq.graphs.inputs import MatrixLike
from graphuq.graphs.neighbors import neighbors_within
from graphuq.graphs.pairs import NodePairs
from graphuq.graphs.weights import (
    Scale,
    Unweighted,
    WeightFunction,
    uses_local_scales,
    weight_function,
)
from graphuq.utils.checks import require_positive


@dataclasses.dataclass(frozen=True)
class Epsilon(GraphBuilder):
    """Builder of `epsilon_graph`: ``GraphClassifier(gq.graphs.Epsilon(radius=0.4))``.

    Parameters
    ----------
    radius : float
        ε > 0, in units of the distance.
    """

    takes_weights: ClassVar[bool] = True

    radius: float

    def __post_init__(self) -> None:
        require_positive("radius", self.radius)

    def build(self, X: MatrixLike, weights: Any = None) -> Graph:
        """Return the graph of all pairs within the radius; see `epsilon_graph`."""
        return epsilon_graph(X, self.radius, Unweighted() if weights is None else weights)


def epsilon_graph(
    X: MatrixLike,
    radius: float,
    weights: str | WeightFunction = "unweighted",
    *,
    scale: Scale | None = None,
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
        See `graphuq.graphs.weights`. Self-tuning weights are refused, because their local scales
        are distances to the K-th neighbour.
    scale : float or array_like of shape (d,), optional
        Length scale of the ``"gaussian"`` weights, or one per feature.
    metric : {"euclidean", "cosine", "precomputed"}, optional
        By default the metric of the weight function: cosine for "cosine", else Euclidean. Rows of
        zeros have no cosine and so no neighbours.

    Returns
    -------
    Graph

    Raises
    ------
    InvalidInput
        If features are not finite numbers, an option is unknown, or no two nodes are within the
        radius.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> gq.graphs.epsilon_graph(np.array([[0.0], [1.0], [2.0], [2.5]]), radius=1.0)
    Graph(4 nodes, 3 edges, 1 component)
    """
    weight = weight_function(weights, scale, metric)
    require_positive("radius", radius)
    require(
        not uses_local_scales(weight),
        "weights",
        f"{weight!r} has no local scales here",
        "use knn_graph, or weights='unweighted'",
    )
    features = check_space(X, weight)
    pairs = NodePairs.of_directed(neighbors_within(features, float(radius), weight.metric))
    require(
        len(pairs.rows) > 0,
        "radius",
        f"no two of {features.shape[0]} nodes are within {radius!r}",
        "use a larger radius",
    )
    known = has_direction(features, weight.metric)
    return make_graph(
        between(pairs.adjacency(pairs.weights(weight)), known, known),
        argument="X",
        feature_space=FeatureSpace.of(features, weight, radius=float(radius)),
        settings={
            "graph": "epsilon",
            "radius": float(radius),
            "weights": repr(weight),
            "metric": weight.metric,
        },
    )
