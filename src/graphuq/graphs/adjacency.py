"""A graph from weights that the user already has."""

from typing import Any

import numpy as np
from scipy import sparse

from graphuq.errors import InvalidInput
from graphuq.graphs.graph import Graph, make_graph


def from_adjacency(adjacency: Any) -> Graph:
    """Take a ready-made weighted graph.

    Parameters
    ----------
    adjacency : scipy.sparse matrix or array, array_like of shape (N, N), or networkx.Graph
        Symmetric weights >= 0. A sparse matrix stays sparse. A NetworkX graph's nodes are
        numbered in its own order and its ``weight`` attribute is used (1 where absent).

    Returns
    -------
    Graph

    Raises
    ------
    InvalidInput
        If the weights are negative, NaN, infinite, not square or clearly asymmetric.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> gq.graphs.from_adjacency(np.array([[0, 1, 0], [1, 0, 2], [0, 2, 0]]))
    Graph(3 nodes, 2 edges, 1 component)
    """
    settings = {"graph": "adjacency"}
    if hasattr(adjacency, "adjacency") and hasattr(adjacency, "nodes"):  # NetworkX
        import networkx  # only a caller who has it comes here

        adjacency = networkx.to_scipy_sparse_array(adjacency, format="csr", dtype=np.float64)
    if sparse.issparse(adjacency):
        return make_graph(sparse.csr_array(adjacency), argument="adjacency", settings=settings)
    try:
        dense = np.asarray(adjacency, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            "adjacency", f"not numeric ({error})", "give a matrix of weights"
        ) from None
    return make_graph(dense, argument="adjacency", settings=settings)
