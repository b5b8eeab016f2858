"""Complete graph, with an edge between every two nodes."""

import numpy as np

from graphuq.errors import InvalidInput
from graphuq.graphs.feature_space import FeatureSpace
from graphuq.graphs.features import between, check_neighbor_count, check_space, has_direction
from graphuq.graphs.graph import Graph, make_graph
from graphuq.graphs.inputs import MatrixLike
from graphuq.graphs.row_distances import all_distances
from graphuq.graphs.weights import Scale, WeightFunction, uses_local_scales, weight_function

MAX_NODES = 20_000  # one N×N matrix of doubles then takes 3.2 GB


def complete_graph(
    X: MatrixLike,
    weights: str | WeightFunction = "self-tuning",
    *,
    scale: Scale | None = None,
    n_neighbors: int = 10,
    metric: str | None = None,
) -> Graph:
    """Join every two nodes.

    Parameters
    ----------
    X : array_like or sparse matrix, shape (N, d)
        Finite features, N <= 20,000 because the weights fill an N×N matrix. With
        ``metric="precomputed"`` the distances of all pairs, shape (N, N).
    weights : {"self-tuning", "gaussian", "unweighted", "cosine"} or WeightFunction
        See `graphuq.graphs.weights`; "self-tuning" by default.
    scale : float or array_like of shape (d,), optional
        Length scale of the ``"gaussian"`` weights, or one per feature. It is 1.25 for the voting
        records of Bertozzi et al. 2018, §5.1.2.
    n_neighbors : int, default 10
        K of the self-tuning local scale (two moons of Bertozzi et al. 2018, §5.1.1).
    metric : {"euclidean", "cosine", "precomputed"}, optional
        By default the metric of the weight function: cosine for "cosine", else Euclidean. Rows of
        zeros have no cosine and so no neighbours.

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
    if not uses_local_scales(weight):
        # Without local scales a small graph needs no K neighbours.
        n_neighbors = min(n_neighbors, n_nodes - 1)
    check_neighbor_count(n_neighbors, n_nodes)
    distances = all_distances(features, weight.metric)
    # Column 0 of the sorted distances is the node itself.
    local_scales = np.partition(distances, n_neighbors, axis=1)[:, n_neighbors]
    adjacency = weight.weight(distances, local_scales[:, None], local_scales[None, :])
    np.fill_diagonal(adjacency, 0.0)
    known = has_direction(features, weight.metric)
    return make_graph(
        between(adjacency, known, known),
        argument="X",
        feature_space=FeatureSpace.of(features, weight, local_scales, n_neighbors, complete=True),
        settings={
            "graph": "complete",
            "n_neighbors": n_neighbors,
            "weights": repr(weight),
            "metric": weight.metric,
        },
    )
