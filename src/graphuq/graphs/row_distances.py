"""Distances between rows of features in double precision."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from graphuq.graphs.features import row_blocks
from graphuq.graphs.inputs import Features

TREE_COLUMNS = 8  # up to this number, squares are summed in the order of scikit-learn's tree


def distances_to(
    features: Features, queries: Features, indices: Int[np.ndarray, "R k"], metric: str
) -> Float[np.ndarray, "R k"]:
    """Return the distances of each query to rows of its own; a row of zeros is at a right angle.

    Of dense rows they are sums over features, one after the other, so that rows at equal distances
    have equal numbers wherever they are computed.
    """
    if metric == "precomputed":
        return np.take_along_axis(np.asarray(queries), indices, axis=1)
    distances = np.empty(indices.shape)
    for part in row_blocks(len(indices), indices.shape[1] * features.shape[1]):
        if sparse.issparse(features):
            whole = all_distances(features, metric, queries[part])
            distances[part] = np.take_along_axis(whole, indices[part], axis=1)
            continue
        asked = np.asarray(queries[part], dtype=np.float64)[:, None]
        near = features[indices[part].ravel()].reshape(*indices[part].shape, -1)
        if metric == "cosine":
            lengths = np.linalg.norm(asked, axis=2) * np.linalg.norm(near, axis=2)
            products = (asked * near).sum(axis=2)
            cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
            distances[part] = np.maximum(1 - cosines, 0.0)
        else:
            distances[part] = np.sqrt(_squared_lengths(near - asked))
    return distances


def _squared_lengths(rows: Float[np.ndarray, "R k d"]) -> Float[np.ndarray, "R k"]:
    """Return ``|x|²`` of each row x."""
    width = rows.shape[2]
    if width <= TREE_COLUMNS:  # summed in the order of scikit-learn's tree: same rounding
        squares: Any = sum(rows[..., j] ** 2 for j in range(width))
    else:
        squares = np.einsum("rkd,rkd->rk", rows, rows)
    return np.asarray(squares)


def all_distances(
    features: Features, metric: str, queries: Features | None = None
) -> Float[np.ndarray, "R N"]:
    """Return the distances from each query (by default each row) to every row of ``features``."""
    if metric == "precomputed":
        return np.array(features if queries is None else queries)
    from sklearn.metrics import pairwise_distances

    distances: np.ndarray = pairwise_distances(
        features if queries is None else queries, features, metric=metric
    )
    if queries is None:
        np.fill_diagonal(distances, 0.0)
        distances = (distances + distances.T) / 2
    return distances
