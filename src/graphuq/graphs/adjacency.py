"""Graph of weights that the user already has."""

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphuq.graphs.graph import Graph, make_graph
from graphuq.graphs.inputs import MatrixLike, is_networkx, to_matrix

if TYPE_CHECKING:
    import networkx

    AdjacencyLike: TypeAlias = MatrixLike | networkx.Graph
else:
    AdjacencyLike = Any  # NetworkX is not a dependency


def from_adjacency(adjacency: AdjacencyLike) -> Graph:
    """Make a graph of given weights.

    Parameters
    ----------
    adjacency : scipy.sparse matrix or array, array_like of shape (N, N), or networkx.Graph
        Symmetric weights >= 0. A sparse matrix stays sparse. The nodes of a NetworkX graph are
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
    if is_networkx(adjacency):
        import networkx  # the caller has a NetworkX graph, so it is installed

        adjacency = networkx.to_scipy_sparse_array(adjacency, format="csr", dtype=np.float64)
    weights = to_matrix(adjacency, "adjacency", "give a matrix, one row and one column per node")
    return make_graph(weights, argument="adjacency", settings={"graph": "adjacency"})
