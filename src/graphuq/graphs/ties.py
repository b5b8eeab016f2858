"""Which of several equally distant rows are neighbours: the same ones on every machine.

Features that are counts, grades or words have many equal distances. Where more rows are as far as
the last neighbour than there are places, a search keeps those that it met first, or those that
rounding errors favour, which differ with the number of threads. A number that is mixed from both
rows decides instead. It does not follow the order of the table, which may follow the classes.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt64

from graphuq.graphs.inputs import Features
from graphuq.graphs.row_distances import all_distances, distances_to

SPARE = 3  # more neighbours to search for, which show whether the last one has equals
MAX_COMPARED = 4096**2  # pairs of rows, up to which rows with equals beyond these are compared
ROWS = 256  # rows that are compared with all others at once
ROUNDING = 1e-6  # relative difference of distances below which they may be equal


def without_chance(
    features: Features,
    queries: Features | None,
    distances: Float[np.ndarray, "R m"],
    indices: Int[np.ndarray, "R m"],
    k: int,
    metric: str,
    numbers: tuple[Int[np.ndarray, " R"], int] | None = None,
) -> tuple[Float[np.ndarray, "R k"], Int[np.ndarray, "R k"]]:
    """Return the k nearest rows of each query, or of each row, of the m nearest ones.

    Where the last of these is as far as the k-th, others may be so, too: such rows are compared
    with all rows, unless they are too many. ``numbers`` are those of the queries and of the first
    row in a larger table, if they are of one.
    """
    n_asked, m = indices.shape
    n_rows = features.shape[0]
    own = np.arange(n_asked) if queries is None else np.full(n_asked, -1)
    own_numbers, first_number = (own, 0) if numbers is None else numbers
    near = nearest_of(distances, indices, own_numbers, first_number, k)
    kth, last = near[0][:, -1], distances.max(axis=1, initial=0.0)
    rows = np.flatnonzero(last <= kth * (1 + ROUNDING))
    has_all = m >= n_rows - (queries is None)
    if m == k or has_all or len(rows) * n_rows > MAX_COMPARED:
        return near
    asked: Any = features if queries is None else queries
    for first in range(0, len(rows), ROWS):
        part = rows[first : first + ROWS]
        whole = all_distances(features, metric, asked[part])
        inside = np.flatnonzero(own[part] >= 0)
        whole[inside, own[part][inside]] = np.inf
        found, distances = _as_near_as_the_last(whole, features, asked[part], k, metric)
        distances[found == own[part][:, None]] = np.inf
        near[0][part], near[1][part] = nearest_of(
            distances, found, own_numbers[part], first_number, k
        )
    return near


def _as_near_as_the_last(
    whole: Float[np.ndarray, "R N"], features: Features, queries: Features, k: int, metric: str
) -> tuple[Int[np.ndarray, "R m"], Float[np.ndarray, "R m"]]:
    """Return the rows that may be among the k nearest, and their distances without rounding."""
    kth = np.partition(whole, k - 1, axis=1)[:, k - 1]
    m = int((whole <= kth[:, None] * (1 + ROUNDING)).sum(axis=1).max())
    found = np.argpartition(whole, m - 1, axis=1)[:, :m]
    if metric == "precomputed":
        return found, np.take_along_axis(whole, found, axis=1)
    return found, distances_to(features, queries, found, metric)


def nearest_of(
    distances: Float[np.ndarray, "R m"],
    indices: Int[np.ndarray, "R m"],
    own: Int[np.ndarray, " R"],
    first: int,
    k: int,
) -> tuple[Float[np.ndarray, "R k"], Int[np.ndarray, "R k"]]:
    """Return the k nearest of m rows, nearest first; of equals, those with the smaller number.

    ``own`` are the numbers of the rows that search, and ``first`` that of the row of index 0.
    """
    number = _mixed(own[:, None], indices + first)
    order = np.lexsort((number, distances.astype(np.float32)), axis=1)
    order = order[:, :k]
    near = np.take_along_axis(distances, order, axis=1)
    order = np.take_along_axis(order, np.argsort(near, axis=1, kind="stable"), axis=1)
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(indices, order, axis=1)


def _mixed(rows: Int[np.ndarray, "*R"], others: Int[np.ndarray, "*R"]) -> UInt64[np.ndarray, "*R"]:
    """Return numbers without order from pairs of rows, the same for both orders of a pair.

    The row −1 stands for rows that have no number. The constants are those of SplitMix64 (Steele,
    Lea & Flood 2014).
    """
    a, b = (np.asarray(x).astype(np.uint64) + np.uint64(2) for x in (rows, others))
    z: Any = (a * b + (a ^ b)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)), dtype=np.uint64)
