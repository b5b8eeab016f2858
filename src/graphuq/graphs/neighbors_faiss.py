"""Nearest neighbours by faiss, exact or approximate by inverted lists."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from graphuq.utils.extras import require_extra
from graphuq.utils.progress import Progress

if TYPE_CHECKING:
    import faiss

QUERIES = 65_536  # number of queries in a block, between calls of the progress callback
TRAINING = 32  # number of rows per list that train the k-means of the lists
SWEEPS = 8  # iterations of that k-means
SAMPLE = 400  # number of rows whose true neighbours are found to estimate the recall
MIN_RECALL = 0.99  # share of true neighbours from which on no further lists are searched
FIRST_PROBES = 8  # number of lists searched per query at first; doubled until the recall suffices


def nearest(
    features: Float[np.ndarray, "N d"],
    queries: Float[np.ndarray, "R d"] | None,
    n_neighbors: int,
    exact: bool,
    progress: Progress | None = None,
) -> tuple[Int[np.ndarray, "R k"], float]:
    """Find the nearest rows of each query; a row counts as its own neighbour.

    The approximate search distributes the rows among lists by k-means. For each query it searches
    the nearest lists. Their number is doubled until 99 % of the true neighbours of 400 sampled
    rows are found. The result is deterministic.

    Parameters
    ----------
    features : numpy.ndarray of float32, shape (N, d)
    queries : numpy.ndarray of float32, shape (R, d), or None
        None for the rows themselves.
    n_neighbors : int
        Number k of neighbours.
    exact : bool
        Whether to compare all pairs.
    progress : callable, optional
        See `graphuq.utils.progress`.

    Returns
    -------
    numpy.ndarray of int, shape (R, k)
        Indices of the nearest rows.
    float
        Share of the true neighbours among them.

    Raises
    ------
    MissingPackage
        If the extra ``graphuq[neighbors]`` is not installed.
    """
    require_extra("neighbors")
    import faiss

    faiss.omp_set_num_threads(os.cpu_count() or 1)
    asked = features if queries is None else queries
    if exact:
        indices = _search_in_blocks(
            lambda x: faiss.knn(x, features, n_neighbors)[1], asked, progress=progress
        )
        return indices, 1.0
    rng = np.random.default_rng(0)
    sample = asked[np.sort(rng.choice(len(asked), min(SAMPLE, len(asked)), replace=False))]
    truth = faiss.knn(sample, features, n_neighbors)[1]
    index = _inverted_lists(features, rng)
    index.nprobe = FIRST_PROBES
    while True:
        indices = index.search(sample, n_neighbors)[1]
        recall = np.mean([np.isin(a, b).mean() for a, b in zip(truth, indices, strict=True)])
        if recall >= MIN_RECALL or index.nprobe >= index.nlist:
            break
        index.nprobe = min(2 * index.nprobe, index.nlist)
    # Queries of the same list are searched together, so that its rows stay in the CPU cache.
    lists = _search_in_blocks(lambda x: index.quantizer.search(x, 1)[1], asked).ravel()
    order = np.argsort(lists, kind="stable")
    indices = _search_in_blocks(lambda x: index.search(x, n_neighbors)[1], asked, order, progress)
    # Lists with fewer than k rows leave negative indices.
    short = np.flatnonzero((indices < 0).any(axis=1))
    if len(short):
        indices[short] = _search_in_blocks(
            lambda x: faiss.knn(x, features, n_neighbors)[1], asked[short]
        )
    return indices, float(recall)


def _inverted_lists(
    features: Float[np.ndarray, "N d"], rng: np.random.Generator
) -> "faiss.IndexIVFFlat":
    """Build an index of ``4 √N`` lists of rows."""
    import faiss

    n_rows, width = features.shape
    n_lists = max(1, min(int(4 * np.sqrt(n_rows)), n_rows))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(width), width, n_lists)
    index.cp.niter, index.cp.seed, index.cp.min_points_per_centroid = SWEEPS, 0, 1
    index.cp.max_points_per_centroid = TRAINING
    training = np.sort(rng.choice(n_rows, min(n_rows, TRAINING * n_lists), replace=False))
    index.train(np.ascontiguousarray(features[training]))
    for begin in range(0, n_rows, QUERIES):
        index.add(features[begin : begin + QUERIES])
    return index


def _search_in_blocks(
    search: Callable[[np.ndarray], np.ndarray],
    asked: Float[np.ndarray, "R d"],
    order: Int[np.ndarray, " R"] | None = None,
    progress: Progress | None = None,
) -> Int[np.ndarray, "R k"]:
    """Search for the neighbours of all queries, in blocks and in a given order."""
    indices, n_rows = None, len(asked)
    for begin in range(0, n_rows, QUERIES):
        part = slice(begin, min(begin + QUERIES, n_rows))
        places = np.arange(n_rows)[part] if order is None else order[part]
        near = search(asked[part] if order is None else asked[places])
        if indices is None:
            indices = np.empty((n_rows, near.shape[1]), np.int32)
        indices[places] = near
        if progress is not None:
            progress("neighbours", part.stop, n_rows, np.nan)
    assert indices is not None
    return indices
