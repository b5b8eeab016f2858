"""k-nearest-neighbour graph."""

from typing import Any

import numpy as np
from scipy import sparse

from graphuq.errors import InvalidInput
from graphuq.graphs.feature_space import FeatureSpace
from graphuq.graphs.graph import Graph, make_graph
from graphuq.graphs.neighbors import check_features, check_neighbor_count, nearest_neighbors
from graphuq.graphs.weights import WeightFunction, weight_function


def knn_graph(
    X: Any,
    n_neighbors: int = 20,
    weights: str | WeightFunction = "self-tuning",
    *,
    scale: float | None = None,
    symmetrize: str = "union",
) -> Graph:
    """Join each node to its K nearest neighbours (exact).

    Parameters
    ----------
    X : array_like, shape (N, d)
        Finite features, one row a node.
    n_neighbors : int, default 20
        K, the node itself not counted; 1 <= K < N.
    weights : {"self-tuning", "gaussian", "unweighted", "cosine"} or WeightFunction
        See `graphuq.graphs.weights`; ``"cosine"`` also measures nearness by the cosine.
    scale : float, optional
        Length of the ``"gaussian"`` weights.
    symmetrize : {"union", "average"}, default "union"
        ``"union"``: an edge where either end has the other among its K neighbours, at full
        weight (the definition of Bertozzi et al. 2018, §5.1.3). ``"average"``:
        ``(A + Aᵀ)/2``, which halves the edges that only one end chose.

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
    features = check_features(X)
    weight = weight_function(weights, scale)
    check_neighbor_count(n_neighbors, len(features))
    if symmetrize not in ("union", "average"):
        raise InvalidInput("symmetrize", f"{symmetrize!r} is unknown", "use 'union' or 'average'")

    distances, indices = nearest_neighbors(features, n_neighbors, weight.metric)
    local_scales = distances[:, -1]
    values = weight.weight(distances, local_scales[:, None], local_scales[indices])
    rows = np.repeat(np.arange(len(features)), n_neighbors)
    directed = sparse.csr_array(
        (values.ravel(), (rows, indices.ravel())), shape=(len(features), len(features))
    )
    if symmetrize == "union":
        adjacency = sparse.csr_array(directed.maximum(directed.T))
    else:
        adjacency = sparse.csr_array((directed + directed.T) / 2)
    return make_graph(
        adjacency,
        argument="X",
        feature_space=FeatureSpace(features, weight, local_scales, n_neighbors, complete=False),
        settings={
            "graph": "knn",
            "n_neighbors": n_neighbors,
            "weights": repr(weight),
            "symmetrize": symmetrize,
        },
    )
