"""Nearest neighbours among distinct rows, for features that many rows share."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from graphuq.graphs.inputs import Features
from graphuq.graphs.neighbors import Neighbors, nearest_neighbors

ROUNDING = 1e-6  # distance that may be a rounding error between equal rows, as a share of lengths


class _Groups(NamedTuple):
    """Rows by their features.

    Attributes
    ----------
    rows : numpy.ndarray or scipy.sparse.csr_array, shape (P, d)
        The distinct rows.
    of_row : numpy.ndarray of int, shape (N,)
        Group of each row.
    sizes : numpy.ndarray of int, shape (P,)
    members : numpy.ndarray of int, shape (N,)
        Rows, one group after the other, in random order within each.
    starts : numpy.ndarray of int, shape (P,)
        Place of the first member of each group in ``members``.
    """

    rows: Features
    of_row: Int[np.ndarray, " N"]
    sizes: Int[np.ndarray, " P"]
    members: Int[np.ndarray, " N"]
    starts: Int[np.ndarray, " P"]


def among_distinct_rows(
    features: Features,
    neighbors: Neighbors,
    metric: str,
    search: str = "auto",
    always: bool = False,
) -> Neighbors | None:
    """Find other neighbours if more than a quarter of those of some row are equal to it.

    Then at most half of the k neighbours of a row are rows equal to it. The others are the nearest
    rows with distinct features, one of each group of equal rows, or several if there are at most
    k groups. With plain nearest neighbours the graph would fall apart into groups of equal rows.

    Which members of a group are taken is random, with a fixed seed, because the order of the
    table may follow the classes. Steps between equal rows grow geometrically, so that few of them
    lead from each to each, in a group of any size.

    Parameters
    ----------
    features : numpy.ndarray or scipy.sparse.csr_array, shape (N, d)
    neighbors : Neighbors
        The k nearest neighbours of each row.
    metric : {"euclidean", "cosine", "precomputed"}
    search : {"auto", "exact", "approximate"}, default "auto"
        See `nearest_neighbors`.
    always : bool, default False
        Find them even if fewer are equal.

    Returns
    -------
    Neighbors, or None if the nearest ones will do, distances are given or all rows are equal
    """
    if metric == "precomputed":
        return None
    k, length = neighbors.indices.shape[1], 1.0
    if metric == "euclidean":
        length = max(features.max(), -features.min()) * features.shape[1] ** 0.5
    close = (neighbors.distances[:, k // 4] <= ROUNDING * length).any()
    if not (always or close):
        return None
    groups = _groups_of(features)
    n_groups, often = len(groups.sizes), groups.sizes.max() - 1 > k // 4
    if n_groups == 1 or not (always or often):
        return None
    near = nearest_neighbors(groups.rows, min(k, n_groups - 1), metric, search=search)
    group, step, distance = (part[groups.of_row] for part in lists_of_groups(groups.sizes, near, k))
    rank = np.empty(len(groups.members), np.int64)
    rank[groups.members] = np.arange(len(rank)) - groups.starts[groups.of_row[groups.members]]
    places = groups.starts[group] + (rank[:, None] + step) % groups.sizes[group]
    return Neighbors(distance, groups.members[places], near.recall)


def _groups_of(features: Features) -> _Groups:
    """Return the groups of equal rows."""
    if sparse.issparse(features):
        canonical = sparse.csr_array(features, copy=True)
        canonical.sum_duplicates()
        canonical.eliminate_zeros()
        columns, values = canonical.indices, canonical.data
        parts = [slice(*ends) for ends in pairwise(canonical.indptr)]
        keys = np.array([columns[p].tobytes() + values[p].tobytes() for p in parts], object)
    else:
        rows = np.ascontiguousarray(features) + 0.0  # −0 becomes 0
        keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, of_row, sizes = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.random.default_rng(0).permutation(len(of_row))
    members = order[np.argsort(of_row[order], kind="stable")]
    return _Groups(features[first], of_row, sizes, members, np.cumsum(sizes) - sizes)


def lists_of_groups(
    sizes: Int[np.ndarray, " P"], near: Neighbors, k: int
) -> tuple[Int[np.ndarray, "p k"], Int[np.ndarray, "p k"], Float[np.ndarray, "p k"]]:
    """Return the groups of the k neighbours of a group's members, their steps and distances.

    They are those of the first p groups, of which ``near`` has the neighbours.

    The neighbour of the member of rank i has the rank i + step, modulo the size of its group.
    Candidates come in order of preference, and the first k that exist are taken.
    """
    n_groups, n_near = near.indices.shape
    half = k // 2
    ranks = np.arange(half)
    spread = np.floor(sizes[:n_groups, None] ** (ranks / max(half, 1))).astype(np.int64)
    spread = np.maximum(spread, ranks + 1)  # distinct, and below the size if that exceeds k / 2
    own = np.arange(n_groups)[:, None]
    candidates: list[tuple[Any, Any, Any]] = [(own, spread, 0.0), (near.indices, 0, near.distances)]
    if n_near < k:
        candidates += [(near.indices, number, near.distances) for number in range(1, k)]
        more = np.tile(np.arange(1, k + 1), (n_groups, 1))
        more[(more[:, :, None] == spread[:, None, :]).any(axis=2)] = sizes.max()  # taken above
        candidates.append((own, more, 0.0))
    parts = [np.broadcast_arrays(*one) for one in candidates]
    group, step, distance = (np.concatenate(one, axis=1) for one in zip(*parts, strict=True))
    taken = np.argsort(step >= sizes[group], axis=1, kind="stable")[:, :k]
    by_distance = np.argsort(np.take_along_axis(distance, taken, axis=1), axis=1, kind="stable")
    taken = np.take_along_axis(taken, by_distance, axis=1)
    group, step, distance = (np.take_along_axis(one, taken, 1) for one in (group, step, distance))
    return group, step, distance
