"""The only door to a nearest-neighbour library."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from graphuq.errors import InvalidInput, require


def check_features(features: Any, argument: str = "X") -> Float[np.ndarray, "N d"]:
    """Turn features into a finite float64 matrix with one row a node.

    Raises
    ------
    InvalidInput
        If they are not a non-empty, numeric, finite matrix.
    """
    try:
        matrix = np.ascontiguousarray(features, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(argument, f"not numeric ({error})", "give numbers only") from None
    require(
        matrix.ndim == 2,
        argument,
        f"{matrix.ndim} dimension(s)",
        "give a matrix with one row a node and one column a feature",
    )
    require(
        matrix.size > 0,
        argument,
        f"empty (shape {matrix.shape})",
        "give at least 2 rows and 1 column",
    )
    bad_rows = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    require(
        len(bad_rows) == 0,
        argument,
        f"NaN or infinite values in {len(bad_rows)} row(s), first row {bad_rows[:1].tolist()}",
        "impute or drop them",
    )
    return matrix


def check_neighbor_count(n_neighbors: int, n_nodes: int) -> None:
    """Demand ``1 <= n_neighbors < n_nodes``."""
    require(n_neighbors >= 1, "n_neighbors", f"{n_neighbors} is not positive", "use 1 or more")
    require(
        n_neighbors < n_nodes,
        "n_neighbors",
        f"{n_neighbors} neighbours asked of {n_nodes} rows",
        f"use at most {n_nodes - 1}",
    )


def nearest_neighbors(
    features: Float[np.ndarray, "N d"],
    n_neighbors: int,
    metric: str,
    queries: Float[np.ndarray, "M d"] | None = None,
) -> tuple[Float[np.ndarray, "R k"], Int[np.ndarray, "R k"]]:
    """Exact nearest neighbours of each query, nearest first.

    Without ``queries``, of each row of ``features`` among the *other* rows.

    Returns
    -------
    distances, indices : numpy.ndarray, shape (number of queries, n_neighbors)
    """
    # Trees win in few dimensions; brute force in blocks of matrix products elsewhere.
    algorithm = "kd_tree" if metric == "euclidean" and features.shape[1] <= 8 else "brute"
    index = NearestNeighbors(n_neighbors=n_neighbors, metric=metric, algorithm=algorithm)
    index.fit(features)
    distances, indices = index.kneighbors(queries)
    return distances, indices.astype(np.int64)


def all_distances(
    features: Float[np.ndarray, "N d"], metric: str, queries: Float[np.ndarray, "M d"] | None = None
) -> Float[np.ndarray, "R N"]:
    """Distances from each query (by default each row) to every row of ``features``."""
    distances: np.ndarray = pairwise_distances(
        features if queries is None else queries, features, metric=metric
    )
    if queries is None:
        np.fill_diagonal(distances, 0.0)
        distances = (distances + distances.T) / 2
    return distances
