"""Graph of distances to nearest neighbours that were computed elsewhere."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from graphuq.errors import GraphRepairWarning, require
from graphuq.graphs.features import check_neighbor_count
from graphuq.graphs.graph import Graph, make_graph
from graphuq.graphs.inputs import MatrixLike, to_matrix
from graphuq.graphs.neighbor_lists import is_neighbor_lists, matrix_of_lists
from graphuq.graphs.pairs import NodePairs
from graphuq.graphs.weights import Scale, WeightFunction, weight_function
from graphuq.utils.user_warnings import warn_user

ROUNDING = 1e-5  # relative difference of the two directions of a distance in single precision


def from_distances(
    distances: MatrixLike,
    n_neighbors: int | None = None,
    weights: str | WeightFunction = "self-tuning",
    *,
    scale: Scale | None = None,
    symmetrize: str = "union",
) -> Graph:
    """Make a graph of nearest neighbours from their distances, by the weights of `knn_graph`.

    Such distances are ``adata.obsp["distances"]`` of scanpy, and what scikit-learn's
    ``kneighbors_graph(mode="distance")`` and ``KNeighborsTransformer`` return. Most searches return
    a pair of arrays.

    Parameters
    ----------
    distances : sparse matrix, shape (N, N), or tuple of two arrays, shape (N, K) each
        Row i stores the distances from node i to its neighbours, in any order. Stored zeros
        are distances of coincident nodes; the diagonal is ignored. Or row numbers and distances of
        the neighbours of each node, in either order, with −1 for a neighbour that was not found.
    n_neighbors : int, optional
        Number K of nearest stored neighbours to use, at most; all by default. The local scale of
        self-tuning weights is the distance to the last one that is used.
    weights : {"self-tuning", "gaussian", "unweighted"} or WeightFunction, default "self-tuning"
    scale : float, optional
        Length scale of the ``"gaussian"`` weights.
    symmetrize : {"union", "average"}, default "union"
        As for `knn_graph`.

    Returns
    -------
    Graph

    Raises
    ------
    InvalidInput
        If the distances are dense, not square, negative, NaN or infinite, or an option is unknown.

    Warns
    -----
    GraphRepairWarning
        If the two directions of a pair have different distances; the smaller one is used.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> from sklearn.neighbors import kneighbors_graph
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> graph = gq.graphs.from_distances(kneighbors_graph(X, 15, mode="distance"))
    >>> bool(abs(graph.weights - gq.graphs.knn_graph(X, 15).weights).max() < 1e-9)
    True
    """
    weight = weight_function(weights, scale, "precomputed")
    require(
        symmetrize in ("union", "average"),
        "symmetrize",
        f"{symmetrize!r} is unknown",
        "use 'union' or 'average'",
    )
    return graph_of_distances(distances, n_neighbors, weight, symmetrize, "distances")


def graph_of_distances(
    distances: MatrixLike,
    n_neighbors: int | None,
    weight: WeightFunction,
    symmetrize: str,
    argument: str,
) -> Graph:
    """Make the graph of `from_distances` with a weight function; see there."""
    if is_neighbor_lists(distances):
        distances = matrix_of_lists(distances, argument)
    stored = _checked(to_matrix(distances, argument, "give a sparse matrix"), argument)
    if n_neighbors is not None:
        check_neighbor_count(n_neighbors, stored.shape[0])
    nearest, scales, k = _nearest(stored, n_neighbors)
    pairs = NodePairs.of_directed(nearest, scales)
    values = pairs.weights(weight)
    if symmetrize == "average":
        values = np.where(pairs.mutual, values, values / 2)
    settings = {
        "graph": "knn",
        "n_neighbors": k,
        "weights": repr(weight),
        "symmetrize": symmetrize,
        "metric": "precomputed",
        "recall": 1.0,
    }
    return make_graph(pairs.adjacency(values), argument=argument, settings=settings)


def _checked(distances: Any, argument: str) -> sparse.csr_array:
    """Return sparse distances without a diagonal, the two directions of each pair equal."""
    require(
        sparse.issparse(distances),
        argument,
        f"a dense matrix of shape {distances.shape}",
        "give a sparse matrix of neighbours, or knn_graph(D, metric='precomputed')",
    )
    require(
        distances.shape[0] == distances.shape[1],
        argument,
        f"shape {distances.shape} is not square",
        "give one row and one column per node",
    )
    bad = ~(np.isfinite(distances.data) & (distances.data >= 0))
    require(
        not bad.any(),
        argument,
        f"{int(bad.sum())} distance(s) negative, NaN or infinite",
        "give finite distances >= 0",
    )
    rows, columns, values = _entries(distances)
    return _equal_directions(rows, columns, values, distances.shape[0], argument)


def _entries(
    matrix: sparse.csr_array,
) -> tuple[Int[np.ndarray, " E"], Int[np.ndarray, " E"], Float[np.ndarray, " E"]]:
    """Return rows, columns and values of stored entries off the diagonal, zeros included."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    columns = matrix.indices.astype(np.int64)
    different = rows != columns
    return rows[different], columns[different], matrix.data[different]


def _equal_directions(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, n_nodes: int, argument: str
) -> sparse.csr_array:
    """Give both directions of a pair the smaller distance; warn if that is more than rounding."""
    key = np.minimum(rows, columns) * n_nodes + np.maximum(rows, columns)
    _, pair = np.unique(key, return_inverse=True)
    smallest = np.full(int(pair.max(initial=-1)) + 1, np.inf)
    np.minimum.at(smallest, pair, values)
    equal = smallest[pair]
    differs = values - equal > ROUNDING * values
    if differs.any():
        warn_user(
            f"{argument}: {int(differs.sum())} pair(s) of nodes have a distance in each direction "
            "that differs from the other; the smaller one is used",
            GraphRepairWarning,
        )
    order = np.lexsort((equal, rows))
    pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_nodes))])
    shape = (n_nodes, n_nodes)
    return sparse.csr_array((equal[order], columns[order], pointers), shape=shape)


def _nearest(
    distances: sparse.csr_array, n_neighbors: int | None
) -> tuple[sparse.csr_array, Float[np.ndarray, " N"], int]:
    """Return the nearest stored neighbours, the local scales, and the largest number of a row.

    Rows are sorted by distance already. The local scale of a node that stores no neighbour is the
    distance to the farthest node that has it as a neighbour.
    """
    counts = np.diff(distances.indptr)
    rank = np.arange(len(distances.data)) - np.repeat(distances.indptr[:-1], counts)
    kept = rank < (counts.max(initial=0) if n_neighbors is None else n_neighbors)
    counts = np.minimum(counts, counts.max(initial=0) if n_neighbors is None else n_neighbors)
    pointers = np.concatenate([[0], np.cumsum(counts)])
    data, columns = distances.data[kept], distances.indices[kept]
    scales = np.zeros(len(counts))
    np.maximum.at(scales, columns, data)
    has = counts > 0
    scales[has] = data[pointers[1:][has] - 1]
    nearest = sparse.csr_array((data, columns, pointers), shape=distances.shape)
    return nearest, scales, int(counts.max(initial=0))
