"""Nearest neighbours by faiss: all pairs in blocks, or the nearest of a number of lists."""

import os
from collections.abc import Callable

import faiss
import numpy as np
from jaxtyping import Float, Int

QUERIES = 65_536  # at once
TRAINING = 32  # rows a list
SAMPLE = 400  # rows whose true neighbours are found, to know the recall
LEAST_RECALL = 0.99
FIRST_PROBES = 8


def nearest(
    features: Float[np.ndarray, "N d"],
    queries: Float[np.ndarray, "R d"] | None,
    n_neighbors: int,
    exact: bool,
) -> tuple[Int[np.ndarray, "R k"], float]:
    """Indices of the nearest rows, a row itself among them, and the share of true ones.

    Approximate: rows are shared out among lists by k-means, and of each query as many of the
    nearest lists are searched, a power of two, as find 99 % of the true neighbours of 400 rows.
    Same input, same answer.
    """
    faiss.omp_set_num_threads(os.cpu_count() or 1)
    asked = features if queries is None else queries
    if exact:
        return _in_blocks(lambda x: faiss.knn(x, features, n_neighbors)[1], asked), 1.0
    rng = np.random.default_rng(0)
    sample = asked[np.sort(rng.choice(len(asked), min(SAMPLE, len(asked)), replace=False))]
    truth = faiss.knn(sample, features, n_neighbors)[1]
    index = _index(features, rng)
    index.nprobe = FIRST_PROBES
    while True:
        found = index.search(sample, n_neighbors)[1]
        recall = np.mean([np.isin(a, b).mean() for a, b in zip(truth, found, strict=True)])
        if recall >= LEAST_RECALL or index.nprobe >= index.nlist:
            break
        index.nprobe = min(2 * index.nprobe, index.nlist)
    return _in_blocks(lambda x: index.search(x, n_neighbors)[1], asked), float(recall)


def _index(features: Float[np.ndarray, "N d"], rng: np.random.Generator) -> "faiss.IndexIVFFlat":
    """Lists of rows, about twice as many as rows in each."""
    n_rows, width = features.shape
    n_lists = max(1, int(2 * np.sqrt(n_rows)))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(width), width, n_lists)
    index.cp.niter, index.cp.seed, index.cp.min_points_per_centroid = 8, 0, 1
    index.cp.max_points_per_centroid = TRAINING
    training = np.sort(rng.choice(n_rows, min(n_rows, TRAINING * n_lists), replace=False))
    index.train(np.ascontiguousarray(features[training]))
    for begin in range(0, n_rows, QUERIES):
        index.add(features[begin : begin + QUERIES])
    return index


def _in_blocks(
    search: Callable[[np.ndarray], np.ndarray], asked: Float[np.ndarray, "R d"]
) -> Int[np.ndarray, "R k"]:
    parts = [search(asked[begin : begin + QUERIES]) for begin in range(0, len(asked), QUERIES)]
    return np.concatenate(parts)
