"""Nearest neighbours by faiss: all pairs in blocks, or the nearest of a number of lists."""

import os
from collections.abc import Callable

import faiss
import numpy as np
from jaxtyping import Float, Int

from graphuq.utils.progress import Progress

QUERIES = 65_536  # at once
TRAINING = 32  # rows a list
SAMPLE = 400  # rows whose true neighbours are found, to know the recall
MIN_RECALL = 0.99
FIRST_PROBES = 8


def nearest(
    features: Float[np.ndarray, "N d"],
    queries: Float[np.ndarray, "R d"] | None,
    n_neighbors: int,
    exact: bool,
    progress: Progress | None = None,
) -> tuple[Int[np.ndarray, "R k"], float]:
    """Indices of the nearest rows, a row itself among them, and the share of true ones.

    Approximate: rows are shared out among lists by k-means, and of each query as many of the
    nearest lists are searched, a power of two, as find 99 % of the true neighbours of 400 rows.
    Same input, same answer.
    """
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    asked = features if queries is None else queries
    if exact:
        found = _in_blocks(
            lambda x: faiss.knn(x, features, n_neighbors)[1], asked, progress=progress
        )
        return found, 1.0
    rng = np.random.default_rng(0)
    sample = asked[np.sort(rng.choice(len(asked), min(SAMPLE, len(asked)), replace=False))]
    truth = faiss.knn(sample, features, n_neighbors)[1]
    index = _index(features, rng)
    index.nprobe = FIRST_PROBES
    while True:
        found = index.search(sample, n_neighbors)[1]
        recall = np.mean([np.isin(a, b).mean() for a, b in zip(truth, found, strict=True)])
        if recall >= MIN_RECALL or index.nprobe >= index.nlist:
            break
        index.nprobe = min(2 * index.nprobe, index.nlist)
    lists = _in_blocks(lambda x: index.quantizer.search(x, 1)[1], asked).ravel()
    order = np.argsort(lists, kind="stable")
    found = _in_blocks(lambda x: index.search(x, n_neighbors)[1], asked, order, progress)
    short = np.flatnonzero((found < 0).any(axis=1))  # their lists held fewer rows than asked for
    if len(short):
        found[short] = _in_blocks(lambda x: faiss.knn(x, features, n_neighbors)[1], asked[short])
    return found, float(recall)


def _index(features: Float[np.ndarray, "N d"], rng: np.random.Generator) -> "faiss.IndexIVFFlat":
    """Lists of rows, about four times as many as the root of their number."""
    n_rows, width = features.shape
    n_lists = max(1, min(int(4 * np.sqrt(n_rows)), n_rows))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(width), width, n_lists)
    index.cp.niter, index.cp.seed, index.cp.min_points_per_centroid = 8, 0, 1
    index.cp.max_points_per_centroid = TRAINING
    training = np.sort(rng.choice(n_rows, min(n_rows, TRAINING * n_lists), replace=False))
    index.train(np.ascontiguousarray(features[training]))
    for begin in range(0, n_rows, QUERIES):
        index.add(features[begin : begin + QUERIES])
    return index


def _in_blocks(
    search: Callable[[np.ndarray], np.ndarray],
    asked: Float[np.ndarray, "R d"],
    order: Int[np.ndarray, " R"] | None = None,
    progress: Progress | None = None,
) -> Int[np.ndarray, "R k"]:
    """Answers to all queries, asked in an order in which like ones meet in the cache."""
    found, n_rows = None, len(asked)
    for begin in range(0, n_rows, QUERIES):
        part = slice(begin, min(begin + QUERIES, n_rows))
        places = np.arange(n_rows)[part] if order is None else order[part]
        near = search(asked[part] if order is None else asked[places])
        if found is None:
            found = np.empty((n_rows, near.shape[1]), np.int32)
        found[places] = near
        if progress is not None:
            progress("neighbours", part.stop, n_rows, np.nan)
    assert found is not None
    return found
