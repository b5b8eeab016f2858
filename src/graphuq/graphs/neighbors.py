"""Nearest neighbours; no other module calls a nearest-neighbour library directly."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.spatial import KDTree

from graphuq.errors import GraphuqWarning, require
from graphuq.graphs import neighbors_faiss, ties
from graphuq.graphs.features import row_blocks
from graphuq.graphs.inputs import Features
from graphuq.graphs.row_distances import distances_to
from graphuq.utils.arrays import has_accelerator, safe_openmp
from graphuq.utils.extras import has_extra
from graphuq.utils.lazy_imports import paused_collection
from graphuq.utils.progress import Progress
from graphuq.utils.user_warnings import warn_user

FEW_ROWS = 4096  # below this scikit-learn is fast, and it computes in double precision
TREE_COLUMNS = 4  # with many rows, a tree is fastest up to this number of features
FEW_ROWS_TREE_COLUMNS = 8  # with few rows, a tree is fastest up to this number of features
CENTER_ROWS = 1000  # number of rows whose mean is the center of a search in single precision
EXACT_ROWS = 50_000  # up to this number of dense rows the default search is exact
FEW_QUERIES = 4_096  # exact ones take as long as training the index of an approximate search
EXACT_ROWS_ACCELERATOR = 500_000  # and up to this one on an accelerator
SEARCHES = ("auto", "exact", "approximate")


class SinglePrecision(NamedTuple):
    """Rows whose Euclidean distances order them like the metric does.

    Attributes
    ----------
    rows : numpy.ndarray of float32, shape (N, d)
    center : numpy.ndarray, shape (d,), or None
        What was subtracted from each row.
    """

    rows: Float[np.ndarray, "N d"]
    center: Float[np.ndarray, " d"] | None

    @staticmethod
    def of(features: Features, metric: str) -> "SinglePrecision":
        """Return the rows about a center that suits them."""
        center = _center(features, metric)
        return SinglePrecision(_to_single(features, metric, center), center)


class Neighbors(NamedTuple):
    """The k nearest neighbours of each row, nearest first.

    Attributes
    ----------
    distances, indices : numpy.ndarray, shape (R, k)
    recall : float
        Share of the true neighbours that were found: 1 for an exact search, else an estimate
        from a sample of rows.
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
    single: Callable[[], SinglePrecision] | None = None,
    numbers: tuple[Int[np.ndarray, " R"], int] | None = None,
) -> Neighbors:
    """Find the nearest neighbours of each query, or of each row among the *other* rows.

    SciPy's tree is used for at most four features, and for eight below 4,096 rows. Scikit-learn is
    used for more features below 4,096 rows, and for sparse features and distances. In all other
    cases faiss searches in single precision, and distances are recomputed in double precision. The
    search is then exact for at most 50,000 rows or 4,096 queries, else by inverted lists, unless
    ``search`` says otherwise. On an accelerator, exact neighbours are found by matrix products
    instead, by default for at most 500,000 rows. Without faiss (extra ``graphuq[neighbors]``)
    scikit-learn compares all pairs in single precision, however many.

    Parameters
    ----------
    features : numpy.ndarray or scipy.sparse.csr_array, shape (N, d)
    n_neighbors : int
        Number k of neighbours.
    metric : {"euclidean", "cosine", "precomputed"}
    queries : numpy.ndarray or scipy.sparse.csr_array, shape (R, d), optional
        By default the rows themselves, none of which is its own neighbour.
    search : {"auto", "exact", "approximate"}, default "auto"
    progress : callable, optional
        See `graphuq.utils.progress`.
    single : callable, optional
        Returns the rows in single precision, made before.
    numbers : tuple of numpy.ndarray and int, optional
        Numbers of the queries, and of the first row, in a larger table: see `graphs.ties`.

    Returns
    -------
    Neighbors

    Raises
    ------
    InvalidInput
        If the search is unknown.
    MissingPackage
        If ``search="approximate"`` and faiss is not installed.

    Warns
    -----
    GraphuqWarning
        If all pairs of more than 50,000 rows are compared, because faiss is not installed.
    """
    require(
        search in SEARCHES, "search", f"{search!r} is unknown", f"use one of {', '.join(SEARCHES)}"
    )
    with safe_openmp():
        n_others = features.shape[0] - (queries is None)
        spare = 0 if features.shape[0] > EXACT_ROWS or search == "approximate" else ties.SPARE
        more = min(n_neighbors + spare, n_others)
        found = _nearest(features, more, metric, queries, search, progress, single)
        of_more = (features, queries, found.distances, found.indices)
        near = ties.without_chance(*of_more, n_neighbors, metric, numbers)
        return Neighbors(*near, found.recall)


def _nearest(
    features: Features,
    n_neighbors: int,
    metric: str,
    queries: Features | None,
    search: str,
    progress: Progress | None,
    single: Callable[[], SinglePrecision] | None,
) -> Neighbors:
    n_rows = features.shape[0]
    few = n_rows < FEW_ROWS and search != "approximate"
    tree_columns = FEW_ROWS_TREE_COLUMNS if few else TREE_COLUMNS
    if search != "approximate" and _suits_tree(features, metric, tree_columns):
        return _by_tree(features, n_neighbors, queries)
    if few or sparse.issparse(features) or metric == "precomputed":
        return _by_scikit_learn(features, n_neighbors, metric, queries)
    limit = EXACT_ROWS_ACCELERATOR if has_accelerator() else EXACT_ROWS
    few_queries = queries is not None and queries.shape[0] <= FEW_QUERIES
    exact = search == "exact" or (search == "auto" and (n_rows <= limit or few_queries))
    if search == "auto" and not exact and not has_extra("neighbors"):
        warn_user(
            f"all pairs of {n_rows:,} rows are compared, which takes long; for a faster search run "
            "pip install 'graphuq[neighbors]'",
            GraphuqWarning,
        )
        exact = True
    made = SinglePrecision.of(features, metric) if single is None else single()
    return _in_single_precision(features, made, n_neighbors, metric, queries, exact, progress)


def _by_scikit_learn(
    features: Features, n_neighbors: int, metric: str, queries: Features | None
) -> Neighbors:
    """Find exact neighbours in double precision, by all distances."""
    index = _index(n_neighbors=n_neighbors, metric=metric, algorithm="brute")
    asked = None if queries is None else queries.astype(np.float64)
    distances, indices = index.fit(features.astype(np.float64)).kneighbors(asked)
    return Neighbors(distances, indices.astype(np.int64))


def _index(**options: Any) -> Any:
    """Return scikit-learn's index of neighbours, whose import takes a tenth of a second."""
    with paused_collection():
        from sklearn.neighbors import NearestNeighbors
    return NearestNeighbors(**options)


def _in_single_precision(
    features: Features,
    single: SinglePrecision,
    n_neighbors: int,
    metric: str,
    queries: Features | None,
    exact: bool,
    progress: Progress | None,
) -> Neighbors:
    """Search in single precision, then recompute the distances in double precision."""
    space = single.rows
    alike = None if queries is None else _to_single(queries, metric, single.center)
    n_asked = n_neighbors + (queries is None)  # a row finds itself, too
    if exact and has_accelerator():
        from graphuq.graphs import neighbors_jax

        indices, recall = neighbors_jax.nearest(space, alike, n_asked, progress), 1.0
    elif exact and not has_extra("neighbors"):
        index = _index(n_neighbors=n_asked, algorithm="brute").fit(space)
        found = index.kneighbors(space if alike is None else alike, return_distance=False)
        indices, recall = found, 1.0
    else:
        indices, recall = neighbors_faiss.nearest(space, alike, n_asked, exact, progress)
    indices = _without_self(indices) if queries is None else indices
    return _distances_in_double(
        features, features if queries is None else queries, indices, metric, recall
    )


def add_rows(
    features: Features, lists: Int[np.ndarray, "N k"], more: Features, metric: str
) -> tuple[Features, Neighbors]:
    """Add rows and update the nearest neighbours of the rows that were there before.

    The result is exact if the lists are. With sparse features, all neighbours are searched again.

    Parameters
    ----------
    features : numpy.ndarray or scipy.sparse.csr_array, shape (N, d)
    lists : numpy.ndarray of int, shape (N, k)
        Indices of the nearest neighbours of each row.
    more : numpy.ndarray or scipy.sparse.csr_array, shape (M, d)
    metric : {"euclidean", "cosine"}

    Returns
    -------
    numpy.ndarray or scipy.sparse.csr_array, shape (N + M, d)
        All rows, the added ones last.
    Neighbors
        Nearest neighbours of each of them.
    """
    n_old, k = lists.shape
    if sparse.issparse(features):
        both = sparse.csr_array(sparse.vstack([features, more]))
        return both, nearest_neighbors(both, k, metric, search="exact")
    both = np.concatenate([features, more.astype(features.dtype)])
    n_more = len(both) - n_old
    more, old = both[n_old:], np.arange(n_old)
    new = np.arange(n_old, len(both))
    with_self = nearest_neighbors(both, k + 1, metric, more, search="exact", numbers=(new, 0))
    closest = nearest_neighbors(
        more, min(k, n_more), metric, features, search="exact", numbers=(old, n_old)
    )
    candidates = np.concatenate([lists, closest.indices + n_old], axis=1)
    of_new = _without_self(with_self.indices, n_old)
    found = [
        ties.nearest_of(distances_to(both, rows, near, metric), near, own, 0, k)
        for rows, near, own in ((features, candidates, old), (more, of_new, new))
    ]
    distances, indices = (np.concatenate(part) for part in zip(*found, strict=True))
    return both, Neighbors(distances, indices)


def _by_tree(features: Features, n_neighbors: int, queries: Features | None) -> Neighbors:
    """Find nearest neighbours by SciPy's tree, on all cores."""
    n_asked = n_neighbors + (queries is None)  # a row finds itself, too
    asked = features if queries is None else queries
    _, indices = KDTree(features).query(asked, np.arange(1, n_asked + 1), workers=-1)
    indices = _without_self(indices) if queries is None else indices.astype(np.int64)
    return _distances_in_double(features, asked, indices, "euclidean", 1.0)


def _center(features: Features, metric: str) -> Float[np.ndarray, " d"] | None:
    """Return a point amid rows that are far from the origin, None if they are around it.

    Faiss expands ``|x − y|²``, which in single precision needs rows that are not far from 0.
    """
    sample = np.asarray(features[:: max(1, len(features) // CENTER_ROWS)], dtype=np.float64)
    if metric == "cosine":
        sample = sample / np.linalg.norm(sample, axis=1, keepdims=True)
    center = sample.mean(axis=0)
    spread = ((sample - center) ** 2).sum(axis=1).mean()
    return center if center @ center > spread else None


def _to_single(
    features: Features, metric: str, center: Float[np.ndarray, " d"] | None
) -> Float[np.ndarray, "R d"]:
    """Return rows about a center whose Euclidean distances order them like the metric does."""
    if metric != "cosine" and center is None:
        return np.ascontiguousarray(features, dtype=np.float32)
    # Euclidean distances between rows of unit length order them like their cosines.
    rows = np.empty(features.shape, np.float32)
    for part in row_blocks(*features.shape):
        block = features[part]
        if metric == "cosine":
            block = block / np.linalg.norm(block, axis=1, keepdims=True)
        rows[part] = block if center is None else block - center
    return rows


def _without_self(indices: Int[np.ndarray, "N m"], first: int = 0) -> Int[np.ndarray, "N k"]:
    """Drop each row, counted from ``first``, from its own list of neighbours.

    If a row is not in its list, because others coincide with it, the last neighbour is dropped.
    """
    own = indices == np.arange(first, first + len(indices))[:, None]
    own[~own.any(axis=1), -1] = True
    own &= np.cumsum(own, axis=1) == 1
    return indices[~own].reshape(len(indices), -1).astype(np.int64)


def _distances_in_double(
    features: Features,
    queries: Features,
    indices: Int[np.ndarray, "R k"],
    metric: str,
    recall: float,
) -> Neighbors:
    """Compute the distances of neighbours in double precision, and sort neighbours by them."""
    distances = distances_to(features, queries, indices, metric)
    order = np.argsort(distances, axis=1, kind="stable")
    return Neighbors(
        np.take_along_axis(distances, order, axis=1),
        np.take_along_axis(indices, order, axis=1).astype(np.int64),
        recall,
    )


def neighbors_within(
    features: Features, radius: float, metric: str, queries: Features | None = None
) -> sparse.csr_array:
    """Return the distances that are at most ``radius`` as a sparse matrix.

    Without ``queries``, the distance of a row to itself is not stored.

    Parameters
    ----------
    features : numpy.ndarray or scipy.sparse.csr_array, shape (N, d)
    radius : float
        Largest distance.
    metric : {"euclidean", "cosine", "precomputed"}
    queries : numpy.ndarray or scipy.sparse.csr_array, shape (R, d), optional
        By default the rows themselves.

    Returns
    -------
    scipy.sparse.csr_array, shape (R, N)
    """
    tree = _suits_tree(features, metric, FEW_ROWS_TREE_COLUMNS)
    index = _index(radius=radius, metric=metric, algorithm="kd_tree" if tree else "brute")
    with safe_openmp():
        distances, indices = index.fit(features).radius_neighbors(queries)
    counts = np.array([len(row) for row in indices])
    pointers = np.concatenate([[0], np.cumsum(counts)])
    columns = np.concatenate(indices).astype(np.int64) if counts.sum() else np.arange(0)
    values = np.concatenate(distances) if counts.sum() else np.zeros(0)
    return sparse.csr_array(
        (values.astype(np.float64), columns, pointers), shape=(len(counts), features.shape[0])
    )


def _suits_tree(features: Features, metric: str, max_columns: int) -> bool:
    """Return whether a tree is faster than all distances: for few features."""
    dense = metric == "euclidean" and not sparse.issparse(features)
    return dense and features.shape[1] <= max_columns
