"""Complete graph: an edge between every two nodes."""

from typing import Any

import numpy as np

from graphuq.errors import InvalidInput
from graphuq.graphs.feature_space import FeatureSpace
from graphuq.graphs.features import check_neighbor_count, check_space
from graphuq.graphs.graph import Graph, make_graph
from graphuq.graphs.neighbors import all_distances
from graphuq.graphs.weights import SelfTuning, WeightFunction, weight_function

MAX_NODES = 20_000  # 3.2 GB for one N×N matrix of doubles


def complete_graph(
    X: Any,
    weights: str | WeightFunction = "self-tuning",
    *,
    scale: Any = None,
    n_neighbors: int = 10,
    metric: str | None = None,
) -> Graph:
    """Join every two nodes.

    Parameters
    ----------
    X : array_like or sparse matrix, shape (N, d)
        Finite features, N <= 20,000 (the weights fill an N×N matrix); with
        ``metric="precomputed"`` the distances of all pairs, shape (N, N).
    weights : {"self-tuning", "gaussian", "unweighted", "cosine"} or WeightFunction
        See `graphuq.graphs.weights`.
    scale : float or array_like, optional
        Length of the ``"gaussian"`` weights; 1.25 for the voting records of
        Bertozzi et al. 2018, §5.1.2. Or one a feature.
    n_neighbors : int, default 10
        K of the self-tuning local scale (two moons of Bertozzi et al. 2018, §5.1.1).
    metric : {"euclidean", "cosine", "precomputed"}, optional
        By default the weight function's, which is Euclidean but for "cosine".

    Returns
    -------
    Graph

    Raises
    ------
    InvalidInput
        If features are not finite numbers, an option is unknown, N <= K, or N is too large.
    """
    weight = weight_function(weights, scale, metric)
    features = check_space(X, weight)
    n_nodes = features.shape[0]
    if n_nodes > MAX_NODES:
        raise InvalidInput(
            "X",
            f"a complete graph of {n_nodes} nodes needs {8e-9 * n_nodes**2:.0f} GB",
            f"use knn_graph, or at most {MAX_NODES} rows",
        )
    if not isinstance(weight, SelfTuning):  # whose scales alone need so many
        n_neighbors = min(n_neighbors, n_nodes - 1)
    check_neighbor_count(n_neighbors, n_nodes)
    distances = all_distances(features, weight.metric)
    # Column 0 of the sorted distances is the node itself.
    local_scales = np.partition(distances, n_neighbors, axis=1)[:, n_neighbors]
    adjacency = weight.weight(distances, local_scales[:, None], local_scales[None, :])
    np.fill_diagonal(adjacency, 0.0)
    return make_graph(
        adjacency,
        argument="X",
        feature_space=FeatureSpace.of(features, weight, local_scales, n_neighbors, complete=True),
        settings={
            "graph": "complete",
            "n_neighbors": n_neighbors,
            "weights": repr(weight),
            "metric": weight.metric,
        },
    )
