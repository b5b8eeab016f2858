"""Nearest neighbours of the rows of each part, searched in the lists near their own list.

Each row searches the lists whose centres are nearest to it. No row is searched for at more than one
place, because a task reads the lists that it needs.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.engine import equal_rows
from graphuq.engine.store import Stage
from graphuq.engine.tasks import Tasks

MIN_RECALL = 0.998  # share of true neighbours for which the number of searched lists is chosen
NEAR_LISTS = 6  # lists that the rows of a list choose from, relative to those that each searches
ROWS = 4096  # rows whose distances are computed together
SAMPLE = 400  # rows that choose it, and as many others that estimate the recall


def search(stage: Stage, rows: Stage, n_neighbors: int, exact: bool, tasks: Tasks) -> None:
    """Find the neighbours of all rows; equal rows count once where they would hide others.

    The stage then holds, for part p, ``near-p``, the places of the neighbours of each row, nearest
    first, ``distance-p``, and ``scale-p``, the distance of the last one.
    """
    starts = rows.record["starts"]
    record = _search(stage, rows, n_neighbors, exact, tasks)
    if not stage.has("equal"):  # the answer is another one once neighbours have been replaced
        are_many = equal_rows.are_many(stage, len(starts) - 1, n_neighbors, tasks)
        stage.save("equal", None, np.array(are_many))
    if stage.load("equal"):
        distinct, near = (Stage(str(stage.path(name, suffix=""))) for name in ("distinct", "near"))
        n_distinct = equal_rows.find_distinct(distinct, rows, tasks)
        if n_distinct > 1:
            fewer = min(n_neighbors, n_distinct - 1)
            record = _search(near, distinct, fewer, exact, tasks) | {"n_distinct": n_distinct}
            equal_rows.replace_neighbors(stage, distinct, near, starts, n_neighbors, tasks)
        for some in (distinct, near):
            some.remove_all()
    stage.finish(record)


def _search(
    stage: Stage, rows: Stage, n_neighbors: int, exact: bool, tasks: Tasks
) -> dict[str, Any]:
    """Find the nearest rows of all rows; return the record of the search."""
    starts = rows.record["starts"]
    n_lists = len(rows.load("list_starts")) - 1
    n_searched, recall = n_lists, 1.0
    if not exact:
        n_searched, recall = _choose(rows, starts, n_neighbors, tasks)
    arguments = [
        (stage, rows, starts, p, n_neighbors, n_searched)
        for p in range(len(starts) - 1)
        if not stage.has("distance", p)
    ]
    tasks.map(_search_part, arguments, "neighbours")
    return {"recall": recall, "n_searched": n_searched, "n_lists": n_lists}


def _choose(rows: Stage, starts: list[int], k: int, tasks: Tasks) -> tuple[int, float]:
    """Return how many lists to search, and the share of true neighbours that these hold.

    The true neighbours of a sample tell at which place, among the lists in the order of their
    distance from the row, that of each neighbour is, and so how many must be searched.
    """
    features = rows.parts("features", starts)
    list_starts, centres = rows.load("list_starts"), rows.load("centres")
    rng = np.random.default_rng(1)
    n_sampled = min(2 * SAMPLE, len(features))
    sample = rng.permutation(rng.choice(len(features), n_sampled, replace=False))
    asked = features.take(sample)
    parts = [(rows, p, asked, starts[p], k + 1) for p in range(len(starts) - 1)]
    found = tasks.map(nearest_in_part, parts)
    distance = np.concatenate([some for some, _ in found], axis=1)
    nearest = np.concatenate([some for _, some in found], axis=1)
    order = np.argsort(distance, axis=1, kind="stable")
    nearest = np.take_along_axis(nearest, order, axis=1)
    lists = list_of(nearest[:, 1 : k + 1], list_starts)
    own = list_of(sample, list_starts)
    of_row, of_list = np.empty((2, *lists.shape), np.int64)
    for i in range(len(sample)):
        of_row[i] = _ranks(centres, asked[i])[lists[i]]
        of_list[i] = _ranks(centres, centres[own[i]])[lists[i]]
    half = max(1, len(sample) // 2)
    needed = np.maximum(of_row, of_list // NEAR_LISTS) + 1
    ordered = np.sort(needed[:half].ravel())
    n_searched = int(ordered[int(np.ceil(MIN_RECALL * len(ordered))) - 1])
    return n_searched, float((needed[-half:] <= n_searched).mean())


def _ranks(centres: Float[np.ndarray, "C d"], point: Float[np.ndarray, " d"]) -> np.ndarray:
    """Return the place of each centre in the order of distances from a point."""
    ranks = np.empty(len(centres), np.int64)
    order = np.argsort(((centres - point) ** 2).sum(axis=1), kind="stable")
    ranks[order] = np.arange(len(centres))
    return ranks


def nearest_in_part(
    rows: Stage, p: int, asked: Float[np.ndarray, "R d"], start: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return distances and places of the nearest rows of a part."""
    import faiss

    faiss.omp_set_num_threads(1)
    features = rows.load("features", p)
    distance, index = faiss.knn(asked, features, min(k, len(features))) if len(features) else (
        np.zeros((len(asked), 0), np.float32),
        np.zeros((len(asked), 0), np.int64),
    )  # fmt: skip
    return distance, index + start


def list_of(places: Int[np.ndarray, "*R"], list_starts: Int[np.ndarray, " C"]) -> np.ndarray:
    """Return the list that each place belongs to."""
    return np.asarray(np.searchsorted(list_starts, places, side="right") - 1)


def _search_part(
    stage: Stage, rows: Stage, starts: list[int], p: int, k: int, n_searched: int
) -> None:
    from graphuq.engine.list_search import search_lists  # imports Numba

    begin, end = starts[p], starts[p + 1]
    list_starts, centres = np.asarray(rows.load("list_starts")), np.asarray(rows.load("centres"))
    sizes, features = np.diff(list_starts), rows.parts("features", starts)
    own = np.flatnonzero((list_starts[:-1] >= begin) & (list_starts[1:] <= end) & (sizes > 0))
    near = _near_lists(centres, own, n_searched)
    asked = np.asarray(features.part(p))
    used = np.unique(near)
    if sizes[used].sum() <= k:
        used = np.arange(len(centres))
    ranges = _merged(list_starts, used)
    places = np.concatenate([np.arange(*some) for some in ranges] or [np.arange(0)])
    others = np.concatenate([features.range(*some) for some in ranges] or [asked])
    number = np.full(len(centres), -1)
    number[used] = np.arange(len(used))
    index = np.full((end - begin, k + 1), -1)
    search_lists(
        asked,
        np.append(list_starts[own] - begin, end - begin),
        centres[own],
        number[near],
        others,
        np.append(0, np.cumsum(sizes[used])),
        centres[used],
        n_searched,
        index,
    )
    _search_again(index, asked, others, k + 1)
    found, distance = np.empty((end - begin, k), np.int64), np.empty((end - begin, k), np.float32)
    for first in range(0, end - begin, ROWS):
        some = slice(first, min(first + ROWS, end - begin))
        itself = np.arange(begin + some.start, begin + some.stop)
        found[some], distance[some] = _without_itself(
            asked[some], others, places, index[some], itself
        )
    stage.save("near", p, found)
    stage.save("scale", p, distance[:, -1].astype(np.float64))
    stage.save("distance", p, distance)


def _near_lists(
    centres: Float[np.ndarray, "C d"],
    own: Int[np.ndarray, " a"],
    n_searched: int,
) -> Int[np.ndarray, "a M"]:
    """Return the lists near each list, nearest first, among which its rows choose."""
    import faiss

    faiss.omp_set_num_threads(1)
    near: np.ndarray = faiss.knn(centres[own], centres, min(NEAR_LISTS * n_searched, len(centres)))[
        1
    ]
    return near


def _search_again(index: np.ndarray, asked: np.ndarray, others: np.ndarray, k: int) -> None:
    """Compare rows whose lists held too few rows with all rows of the lists of their part."""
    import faiss

    short = np.flatnonzero((index < 0).any(axis=1))
    if len(short):
        index[short] = faiss.knn(asked[short], others, k)[1]


def _merged(list_starts: np.ndarray, lists: Int[np.ndarray, " c"]) -> list[tuple[int, int]]:
    """Return the ranges of places of lists, with neighbouring ones joined."""
    if len(lists) == 0:
        return []
    first = np.flatnonzero(np.append(True, np.diff(lists) > 1))
    last = np.append(first[1:], len(lists)) - 1
    ends = zip(list_starts[lists[first]], list_starts[lists[last] + 1], strict=True)
    return [(int(a), int(b)) for a, b in ends if a < b]


def _without_itself(
    asked: np.ndarray,
    others: np.ndarray,
    places: Int[np.ndarray, " m"],
    index: Int[np.ndarray, "R k"],
    itself: Int[np.ndarray, " R"],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbours of rows other than themselves, and distances, sorted by these.

    Distances are computed again in double precision. If a row is not among its neighbours,
    because others coincide with it, the last one is dropped.
    """
    found = places[index]
    own = found == itself[:, None]
    own[~own.any(axis=1), -1] = True
    kept = ~own
    found, index = found[kept].reshape(len(own), -1), index[kept].reshape(len(own), -1)
    difference = others[index].astype(np.float64) - asked[:, None].astype(np.float64)
    distance = np.sqrt(np.einsum("rkd,rkd->rk", difference, difference))
    order = np.argsort(distance, axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(distance, order, axis=1)
