"""Checks of features, distances and scales before a graph is made of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from graphuq.errors import require
from graphuq.graphs.inputs import Features, MatrixLike, to_matrix
from graphuq.graphs.weights import WeightFunction, feature_scales
from graphuq.utils.checks import require_integer

BLOCK_ELEMENTS = 4_000_000  # numbers held in memory together: 32 MB of doubles
MAX_FEATURE = {np.dtype(np.float32): 1e16, np.dtype(np.float64): 1e100}
MIN_FEATURE = 1e-100  # of the largest one; squares of distances stay within single or double
MAX_ASYMMETRY = 1e-8  # largest asymmetry of distances, relative to the largest distance
MATRIX_REMEDY = "give a matrix with one row per node and one column per feature"
SHAPE_REMEDIES = {
    1: f"{MATRIX_REMEDY}; for one feature, X.reshape(-1, 1)",
    3: f"{MATRIX_REMEDY}; for images, X.reshape(len(X), -1)",
}


def check_features(features: MatrixLike, argument: str = "X") -> Features:
    """Convert features to a finite matrix with one row per node; a sparse one stays sparse.

    Values that single precision holds exactly stay or become single, all others double. A memory
    map of either stays on disk.

    Raises
    ------
    InvalidInput
        If the features are not a non-empty, numeric, finite matrix.
    """
    matrix = to_matrix(features, argument, MATRIX_REMEDY)
    require(
        matrix.ndim == 2,
        argument,
        f"{matrix.ndim} dimension(s)",
        SHAPE_REMEDIES.get(matrix.ndim, MATRIX_REMEDY),
    )
    require(
        min(matrix.shape) > 0,
        argument,
        f"empty (shape {matrix.shape})",
        "give at least 2 rows and 1 column",
    )
    bad_rows = _rows_not_finite(matrix)
    require(
        len(bad_rows) == 0,
        argument,
        f"NaN or infinite values in {len(bad_rows)} row(s), first row {bad_rows[:1].tolist()}",
        "impute or drop them",
    )
    check_size(matrix, argument)
    return matrix


def check_size(matrix: Any, argument: str) -> None:
    """Raise `InvalidInput` if squares of the numbers are not finite, or all vanish."""
    if isinstance(matrix, np.ndarray):
        parts = (matrix[part] for part in row_blocks(*matrix.shape))
        largest = max(float(max(part.max(), -part.min())) for part in parts)
    else:
        largest = float(abs(matrix.data).max()) if matrix.nnz else 0.0
    most = MAX_FEATURE.get(matrix.dtype, MAX_FEATURE[np.dtype(np.float64)])
    require(
        largest == 0 or MIN_FEATURE <= largest <= most,
        argument,
        f"numbers of size {largest:.3g}, whose squares computers cannot represent",
        f"rescale the features to sizes between {MIN_FEATURE:.0e} and {most:.0e}",
    )


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield slices of rows, each as large as fits a block of a few megabytes."""
    size = max(64, BLOCK_ELEMENTS // max(1, width))
    for begin in range(0, n_rows, size):
        yield slice(begin, min(begin + size, n_rows))


def _rows_not_finite(matrix: Features) -> Int[np.ndarray, " R"]:
    """Return the indices of rows that hold a NaN or an infinity."""
    if not isinstance(matrix, np.ndarray):
        bad = np.flatnonzero(~np.isfinite(matrix.data))
        return np.unique(np.searchsorted(matrix.indptr, bad, side="right") - 1)
    rows = [
        part.start + np.flatnonzero(~np.isfinite(matrix[part]).all(axis=1))
        for part in row_blocks(*matrix.shape)
    ]
    return np.concatenate(rows)


def check_space(X: MatrixLike, weight: WeightFunction, argument: str = "X") -> Features:
    """Check features, or distances, for a weight function and divide them by its scales.

    Raises
    ------
    InvalidInput
        As `check_features`. Also if distances are not square, symmetric and non-negative with a
        zero diagonal; or if the numbers of scales and features differ.
    """
    features = check_features(X, argument)
    if weight.metric == "precomputed":
        return _check_distances(features, argument)
    return divide_by_scales(features, weight, argument)


def has_direction(features: Features, metric: str) -> Bool[np.ndarray, " N"]:
    """Return whether each row has a cosine with others: all but rows of zeros, if the metric asks.

    A row of zeros, such as a text without a known word, has no neighbours.
    """
    if metric != "cosine":
        return np.ones(features.shape[0], dtype=bool)
    if sparse.issparse(features):
        return np.asarray(abs(features).max(axis=1).todense()).ravel() > 0
    parts = row_blocks(*features.shape)
    return np.concatenate([(features[part] != 0).any(axis=1) for part in parts])


def between(weights: Any, rows: Bool[np.ndarray, " M"], columns: Bool[np.ndarray, " N"]) -> Any:
    """Return a matrix of weights with zeros outside these rows and columns."""
    if rows.all() and columns.all():
        return weights
    if not sparse.issparse(weights):
        return weights * np.multiply.outer(rows, columns)
    left, right = (sparse.diags_array(kept.astype(np.float64)) for kept in (rows, columns))
    kept = sparse.csr_array(left @ weights @ right)
    kept.eliminate_zeros()
    return kept


def divide_by_scales(features: Features, weight: WeightFunction, argument: str = "X") -> Features:
    """Divide features by the scales of a weight function that has one per feature.

    Raises
    ------
    InvalidInput
        If the number of scales is not that of the features, or the features are sparse.
    """
    scales = feature_scales(weight)
    if scales is None:
        return features
    require(
        len(scales) == features.shape[1] and not sparse.issparse(features),
        "scale",
        f"{len(scales)} scales of {features.shape[1]} features",
        "give one scale per feature, and a dense matrix",
    )
    scaled: np.ndarray = features / np.asarray(scales, dtype=features.dtype)
    return scaled


def _check_distances(distances: Features, argument: str) -> Float[np.ndarray, "N N"]:
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
        "give distances >= 0",
    )
    largest = float(distances.max())
    difference = float(abs(distances - distances.T).max())
    require(
        difference <= MAX_ASYMMETRY * largest,
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
    """Raise `InvalidInput` unless ``1 <= n_neighbors < n_nodes``."""
    require_integer("n_neighbors", n_neighbors, 1)
    require(
        n_neighbors < n_nodes,
        "n_neighbors",
        f"{n_neighbors} neighbours asked of {n_nodes} rows",
        f"use at most {n_nodes - 1}",
    )
