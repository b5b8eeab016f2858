"""The only door to a nearest-neighbour library."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from graphuq.errors import InvalidInput, require

Features = Any
"""A matrix, one row a node, dense or a `scipy.sparse.csr_array`; or distances of all pairs."""


def check_features(features: Any, argument: str = "X") -> Any:
    """Turn features into a finite float64 matrix with one row a node; a sparse one stays sparse.

    Raises
    ------
    InvalidInput
        If they are not a non-empty, numeric, finite matrix.
    """
    try:
        if sparse.issparse(features):
            matrix = sparse.csr_array(features, dtype=np.float64)
        else:
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
        min(matrix.shape) > 0,
        argument,
        f"empty (shape {matrix.shape})",
        "give at least 2 rows and 1 column",
    )
    values = matrix.data if sparse.issparse(matrix) else matrix
    if not np.isfinite(values).all():
        finite = np.isfinite(matrix.toarray() if sparse.issparse(matrix) else matrix).all(axis=1)
        bad_rows = np.flatnonzero(~finite)
        raise InvalidInput(
            argument,
            f"NaN or infinite values in {len(bad_rows)} row(s), first row {bad_rows[:1].tolist()}",
            "impute or drop them",
        )
    return matrix


def check_space(X: Any, weight: Any, argument: str = "X") -> Any:
    """Features that suit a weight function: checked, and scaled as it says.

    Raises
    ------
    InvalidInput
        As `check_features`; if distances are not square, symmetric and non-negative with a zero
        diagonal; if scales are not one a feature; if a row is zero, which has no cosine.
    """
    features = check_features(X, argument)
    if weight.metric == "precomputed":
        return _check_distances(features, argument)
    if weight.metric == "cosine":
        lengths = (
            np.sqrt(np.asarray(abs(features).power(2).sum(axis=1)).ravel())
            if (sparse.issparse(features))
            else np.linalg.norm(features, axis=1)
        )
        zero = np.flatnonzero(lengths == 0)
        require(
            len(zero) == 0,
            argument,
            f"{len(zero)} row(s) of zeros, first row {zero[:1].tolist()}, which have no cosine",
            "drop them",
        )
    return in_scale(features, weight, argument)


def in_scale(features: Features, weight: Any, argument: str = "X") -> Features:
    """Features divided by the scales of a weight function that has one for each."""
    scales = getattr(weight, "feature_scales", None)
    if scales is None:
        return features
    require(
        len(scales) == features.shape[1] and not sparse.issparse(features),
        "scale",
        f"{len(scales)} scales of {features.shape[1]} features",
        "give one a feature, of a dense matrix",
    )
    return features / np.asarray(scales)


def _check_distances(distances: Any, argument: str) -> Float[np.ndarray, "N N"]:
    require(
        not sparse.issparse(distances) and distances.shape[0] == distances.shape[1],
        argument,
        f"{'sparse ' if sparse.issparse(distances) else ''}distances of shape {distances.shape}",
        "give a dense matrix of the distances of all pairs",
    )
    require(
        bool((distances >= 0).all()),
        argument,
        f"negative distances, the smallest {distances.min():.3g}",
        "a distance must be >= 0",
    )
    largest = float(distances.max())
    difference = float(abs(distances - distances.T).max())
    require(
        difference <= 1e-8 * largest,
        argument,
        f"asymmetric distances (largest difference {difference:.2g})",
        "pass (D + D.T) / 2",
    )
    require(
        not distances.diagonal().any(),
        argument,
        f"distances of nodes to themselves, up to {distances.diagonal().max():.3g}",
        "set the diagonal to 0",
    )
    return (distances + distances.T) / 2


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
    features: Features,
    n_neighbors: int,
    metric: str,
    queries: Features | None = None,
) -> tuple[Float[np.ndarray, "R k"], Int[np.ndarray, "R k"]]:
    """Exact nearest neighbours of each query, nearest first.

    Without ``queries``, of each row of ``features`` among the *other* rows.

    Returns
    -------
    distances, indices : numpy.ndarray, shape (number of queries, n_neighbors)
    """
    index = NearestNeighbors(
        n_neighbors=n_neighbors, metric=metric, algorithm=_algorithm(features, metric)
    )
    index.fit(features)
    distances, indices = index.kneighbors(queries)
    return distances, indices.astype(np.int64)


def neighbors_within(
    features: Features, radius: float, metric: str, queries: Features | None = None
) -> sparse.csr_array:
    """Distances, stored where they are at most ``radius``; those of a row to itself left out."""
    index = NearestNeighbors(radius=radius, metric=metric, algorithm=_algorithm(features, metric))
    index.fit(features)
    distances, indices = index.radius_neighbors(queries)
    counts = np.array([len(own) for own in indices])
    pointers = np.concatenate([[0], np.cumsum(counts)])
    columns = np.concatenate(indices).astype(np.int64) if counts.sum() else np.arange(0)
    values = np.concatenate(distances) if counts.sum() else np.zeros(0)
    return sparse.csr_array(
        (values.astype(np.float64), columns, pointers), shape=(len(counts), features.shape[0])
    )


def _algorithm(features: Features, metric: str) -> str:
    """Trees win in few dimensions; brute force in blocks of matrix products elsewhere."""
    few = metric == "euclidean" and not sparse.issparse(features) and features.shape[1] <= 8
    return "kd_tree" if few else "brute"


def all_distances(
    features: Features, metric: str, queries: Features | None = None
) -> Float[np.ndarray, "R N"]:
    """Distances from each query (by default each row) to every row of ``features``."""
    if metric == "precomputed":
        return np.array(features if queries is None else queries)
    distances: np.ndarray = pairwise_distances(
        features if queries is None else queries, features, metric=metric
    )
    if queries is None:
        np.fill_diagonal(distances, 0.0)
        distances = (distances + distances.T) / 2
    return distances
