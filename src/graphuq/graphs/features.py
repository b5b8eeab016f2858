"""What features, distances and scales must be before a graph is made of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from graphuq.errors import InvalidInput, require

SINGLE = (np.float32, np.float16, np.int8, np.uint8, np.int16, np.uint16)  # which it holds exactly
BLOCK_ELEMENTS = 4_000_000  # numbers held at once: 32 MB

Features = Any
"""A matrix, one row a node, dense or a `scipy.sparse.csr_array`; or distances of all pairs."""


def check_features(features: Any, argument: str = "X") -> Any:
    """Turn features into a finite matrix with one row a node; a sparse one stays sparse.

    What single precision holds exactly stays or becomes single, all else double; a memory map of
    either stays on disk.

    Raises
    ------
    InvalidInput
        If they are not a non-empty, numeric, finite matrix.
    """
    try:
        if sparse.issparse(features):
            matrix = sparse.csr_array(features, dtype=np.float64)
        else:
            single = isinstance(features, np.ndarray) and features.dtype in SINGLE
            matrix = np.ascontiguousarray(features, dtype=np.float32 if single else np.float64)
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
    bad_rows = _not_finite(matrix)
    require(
        len(bad_rows) == 0,
        argument,
        f"NaN or infinite values in {len(bad_rows)} row(s), first row {bad_rows[:1].tolist()}",
        "impute or drop them",
    )
    return matrix


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Rows, as many at a time as fit a block of a few megabytes."""
    size = max(64, BLOCK_ELEMENTS // max(1, width))
    for begin in range(0, n_rows, size):
        yield slice(begin, min(begin + size, n_rows))


def _not_finite(matrix: Any) -> Int[np.ndarray, " R"]:
    """Rows that hold a NaN or an infinity."""
    if sparse.issparse(matrix):
        bad = np.flatnonzero(~np.isfinite(matrix.data))
        return np.unique(np.searchsorted(matrix.indptr, bad, side="right") - 1)
    found = [
        part.start + np.flatnonzero(~np.isfinite(matrix[part]).all(axis=1))
        for part in row_blocks(*matrix.shape)
    ]
    return np.concatenate(found)


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
        check_lengths(features, argument)
    return in_scale(features, weight, argument)


def check_lengths(features: Features, argument: str = "X") -> None:
    """Demand that every row has a direction."""
    if sparse.issparse(features):
        lengths = np.sqrt(np.asarray(abs(features).power(2).sum(axis=1)).ravel())
    else:
        lengths = np.linalg.norm(features, axis=1)
    zero = np.flatnonzero(lengths == 0)
    require(
        len(zero) == 0,
        argument,
        f"{len(zero)} row(s) of zeros, first row {zero[:1].tolist()}, which have no cosine",
        "drop them",
    )


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
    scaled: np.ndarray = features / np.asarray(scales, dtype=features.dtype)
    return scaled


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
