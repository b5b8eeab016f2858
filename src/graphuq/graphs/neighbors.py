"""The only door to nearest-neighbour libraries."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.spatial import KDTree
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from graphuq.errors import require
from graphuq.graphs import neighbors_faiss, neighbors_jax
from graphuq.graphs.features import Features, row_blocks
from graphuq.utils.arrays import has_accelerator
from graphuq.utils.progress import Progress

FEW_ROWS = 4096  # below, any method is at once, and scikit-learn's is in double precision
TREE_COLUMNS = 4  # up to which a tree wins among many rows (8 among few)
EXACT_ROWS = 50_000  # of dense features, up to which neighbours are exact by default
SEARCHES = ("auto", "exact", "approximate")


class Neighbors(NamedTuple):
    """The k nearest of each row, nearest first.

    Attributes
    ----------
    distances, indices : numpy.ndarray, shape (R, k)
    recall : float
        Share of the true neighbours among them: 1 if exact, else measured on some rows.
    """

    distances: Float[np.ndarray, "R k"]
    indices: Int[np.ndarray, "R k"]
    recall: float = 1.0


def nearest_neighbors(
    features: Features,
    n_neighbors: int,
    metric: str,
    queries: Features | None = None,
    search: str = "auto",
    progress: Progress | None = None,
) -> Neighbors:
    """Nearest neighbours of each query; without ``queries``, of each row among the *other* rows.

    By scikit-learn below 4,096 rows and for sparse features or distances; by SciPy's tree in up to
    four dimensions; else by faiss, in single precision with distances computed again in double:
    exact up to 50,000 rows, and by inverted lists beyond, unless ``search`` says otherwise. On an
    accelerator exact ones come of matrix products there.
    """
    require(
        search in SEARCHES, "search", f"{search!r} is unknown", f"use one of {', '.join(SEARCHES)}"
    )
    n_rows, width = features.shape
    few = n_rows < FEW_ROWS and search != "approximate"
    if few or sparse.issparse(features) or metric == "precomputed":
        index = NearestNeighbors(
            n_neighbors=n_neighbors, metric=metric, algorithm=_algorithm(features, metric)
        )
        asked = None if queries is None else queries.astype(np.float64)
        distances, indices = index.fit(features.astype(np.float64)).kneighbors(asked)
        return Neighbors(distances, indices.astype(np.int64))
    exact = search == "exact" or (search == "auto" and n_rows <= EXACT_ROWS)
    if metric == "euclidean" and width <= TREE_COLUMNS and search != "approximate":
        return _by_tree(features, n_neighbors, queries)
    space = _in_single(features, metric)
    alike = None if queries is None else _in_single(queries, metric)
    more = n_neighbors + (queries is None)
    if exact and has_accelerator():
        found, recall = neighbors_jax.nearest(space, alike, more, progress), 1.0
    else:
        found, recall = neighbors_faiss.nearest(space, alike, more, exact, progress)
    indices = _others(found) if queries is None else found
    return _in_double(features, features if queries is None else queries, indices, metric, recall)


def with_more(
    features: Features, lists: Int[np.ndarray, "N k"], more: Features, metric: str
) -> tuple[Any, Neighbors]:
    """All rows once further ones have come, and the nearest of each: lists of the old, mended.

    Exact where the lists were. Of sparse features all are sought again.
    """
    n_old, k = lists.shape
    if sparse.issparse(features):
        both = sparse.csr_array(sparse.vstack([features, more]))
        return both, nearest_neighbors(both, k, metric, search="exact")
    both = np.concatenate([features, more.astype(features.dtype)])
    n_more = len(both) - n_old
    more = both[n_old:]
    near = nearest_neighbors(both, k + 1, metric, more, search="exact").indices
    own = _others(near, n_old)
    closest = nearest_neighbors(more, min(k, n_more), metric, features, search="exact").indices
    candidates = np.concatenate([lists, closest + n_old], axis=1)
    old = _in_double(both, features, candidates, metric, 1.0)
    new = _in_double(both, more, own, metric, 1.0)
    distances = np.concatenate([old.distances[:, :k], new.distances])
    return both, Neighbors(distances, np.concatenate([old.indices[:, :k], new.indices]))


def _by_tree(features: Features, n_neighbors: int, queries: Features | None) -> Neighbors:
    """By SciPy's tree, on all cores."""
    more = n_neighbors + (queries is None)
    asked = features if queries is None else queries
    _, indices = KDTree(features).query(asked, np.arange(1, more + 1), workers=-1)
    own = _others(indices) if queries is None else indices.astype(np.int64)
    return _in_double(features, asked, own, "euclidean", 1.0)


def _in_single(features: Features, metric: str) -> Float[np.ndarray, "R d"]:
    """Rows whose Euclidean distances are in the order wanted: of length one for the cosine."""
    if metric != "cosine":
        return np.ascontiguousarray(features, dtype=np.float32)
    out = np.empty(features.shape, np.float32)
    for part in row_blocks(*features.shape):
        rows = features[part]
        out[part] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return out


def _others(indices: Int[np.ndarray, "N m"], first: int = 0) -> Int[np.ndarray, "N k"]:
    """Neighbours of each row, from a first on, but itself; where it is not there, but the last."""
    own = indices == np.arange(first, first + len(indices))[:, None]
    own[~own.any(axis=1), -1] = True
    own &= np.cumsum(own, axis=1) == 1
    return indices[~own].reshape(len(indices), -1).astype(np.int64)


def _in_double(
    features: Features,
    queries: Features,
    indices: Int[np.ndarray, "R k"],
    metric: str,
    recall: float,
) -> Neighbors:
    """The same neighbours with distances in double precision, in their order."""
    distances = np.empty(indices.shape)
    for part in row_blocks(len(indices), indices.shape[1] * features.shape[1]):
        asked = np.asarray(queries[part], dtype=np.float64)[:, None]
        near = features[indices[part].ravel()].reshape(*indices[part].shape, -1)
        if metric == "cosine":
            lengths = np.linalg.norm(asked, axis=2) * np.linalg.norm(near, axis=2)
            distances[part] = 1 - (asked * near).sum(axis=2) / lengths
        else:
            apart = near - asked
            distances[part] = np.sqrt(np.einsum("rkd,rkd->rk", apart, apart))
    if metric == "cosine":
        np.maximum(distances, 0.0, out=distances)
    order = np.argsort(distances, axis=1, kind="stable")
    return Neighbors(
        np.take_along_axis(distances, order, axis=1),
        np.take_along_axis(indices, order, axis=1).astype(np.int64),
        recall,
    )


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
