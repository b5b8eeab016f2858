"""What makes a graph of the rows of an estimator, and features for the nodes of a ready graph."""

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from graphuq.errors import require
from graphuq.graphs.feature_space import FeatureSpace
from graphuq.graphs.features import check_space
from graphuq.graphs.graph import Graph
from graphuq.graphs.inputs import MatrixLike
from graphuq.graphs.neighbors import nearest_neighbors
from graphuq.graphs.weights import SelfTuning, WeightFunction

N_NEIGHBORS = 15  # nodes to which a new row is joined
SHARPNESS = 4.0  # of the weights of a new row


class GraphBuilder(ABC):
    """A value for ``graph=`` of an estimator that makes the graph of its rows.

    A subclass is a frozen dataclass. Its fields are numbers, which searches reach by nested names
    such as ``graph__radius``, and which a file stores. Defined or imported by the program, it can
    also be named in text: ``graph="Epsilon(radius=0.4)"``. See ``examples/own_graph.py``.

    Attributes
    ----------
    takes_weights : bool, default False
        Whether `build` uses ``weights`` and ``metric`` of the estimator; otherwise they are
        refused.
    """

    takes_weights: ClassVar[bool] = False

    @abstractmethod
    def build(self, X: MatrixLike, weights: Any = None) -> Graph:
        """Return the graph, with one node a row.

        A graph without features, as of `from_adjacency`, receives those of X; see
        `with_features`.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (N, d)
            Finite features.
        weights : WeightFunction, optional
            Weight function of the estimator, if the builder takes one and it is not "auto".
        """


def with_features(
    graph: Graph,
    X: MatrixLike,
    n_neighbors: int = N_NEIGHBORS,
    weights: WeightFunction | None = None,
) -> Graph:
    """Return a graph with features of its nodes, by which new rows are joined to it.

    Edges stay as they are. A new row is joined to its nearest nodes, as in `knn_graph`. The
    features also enter the default model of `GraphClassifier`.

    Parameters
    ----------
    graph : Graph
        Of N nodes.
    X : array_like or sparse matrix, shape (N, d)
        Finite features, one row a node.
    n_neighbors : int, default 15
        Nodes to which a new row is joined; at most N − 1.
    weights : WeightFunction, optional
        Weights of a new row; by default self-tuning with sharpness 4.

    Returns
    -------
    Graph

    Raises
    ------
    InvalidInput
        If the features are not finite numbers, or there is another number of rows.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> ring = gq.graphs.with_features(gq.graphs.ring_graph(6), np.eye(6))
    >>> ring.features.shape
    (6, 6)
    """
    weight = SelfTuning(SHARPNESS) if weights is None else weights
    features = check_space(X, weight)
    require(
        features.shape[0] == graph.n_nodes,
        "X",
        f"{features.shape[0]} rows, and the graph has {graph.n_nodes} nodes",
        "give one row a node",
    )
    k = min(n_neighbors, graph.n_nodes - 1)
    scales = nearest_neighbors(features, k, weight.metric).distances[:, -1]
    return dataclasses.replace(graph, feature_space=FeatureSpace.of(features, weight, scales, k))
