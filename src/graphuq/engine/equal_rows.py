"""Nearest neighbours among distinct rows, for tables in which many rows are equal.

They are those of `graphuq.graphs.equal_rows`. Equal rows are nearest to one centre, so that they
are in one list and one part. Distinct rows are searched as a table of their own, part by part.
"""

import numpy as np
from jaxtyping import Int

from graphuq.engine.store import Stage
from graphuq.engine.tasks import Tasks
from graphuq.graphs.equal_rows import lists_of_groups
from graphuq.graphs.neighbors import Neighbors

FRACTION = 4  # of the neighbours: if more of some row are equal to it, distinct rows are found


def are_many(stage: Stage, n_parts: int, n_neighbors: int, tasks: Tasks) -> bool:
    """Return whether more than a quarter of the neighbours of some row are equal to it."""
    arguments = [(stage, p, n_neighbors // FRACTION) for p in range(n_parts)]
    return any(tasks.map(_has_equal_part, arguments))


def _has_equal_part(stage: Stage, p: int, place: int) -> bool:
    return bool((stage.load("distance", p)[:, place] == 0).any())


def find_distinct(distinct: Stage, rows: Stage, tasks: Tasks) -> int:
    """Write the distinct rows as a table of their own, if it is not there; return their number.

    The stage then holds what the search needs: for part p ``features-p``, and ``centres`` and
    ``list_starts``; ``sizes-p`` and ``first-p``, the number of rows in each group and the place of
    its first member in ``members``; for the rows of part p ``group-p``, ``rank-p`` and
    ``members-p``, the places of the rows, group by group, in random order within each.
    """
    starts = rows.record["starts"]
    if not distinct.is_done:
        n_rows, parts = starts[-1], range(len(starts) - 1)
        place = np.empty(n_rows, np.int64)
        place[np.random.default_rng(0).permutation(n_rows)] = np.arange(n_rows)
        distinct.save("order", None, place)
        arguments = [(distinct, rows, starts, p) for p in parts]
        counts = np.sum(tasks.map(_group_part, arguments, "neighbours"), axis=0)
        distinct.save("centres", None, np.asarray(rows.load("centres")))
        distinct.save("list_starts", None, np.append(0, np.cumsum(counts)))
        sizes = [len(distinct.load("sizes", p)) for p in parts]
        distinct.finish({"starts": np.append(0, np.cumsum(sizes)).tolist()})
    return int(distinct.record["starts"][-1])


def _group_part(distinct: Stage, rows: Stage, starts: list[int], p: int) -> Int[np.ndarray, " C"]:
    """Write the groups of equal rows of a part; return the number of groups in each list."""
    features = np.ascontiguousarray(rows.load("features", p)) + 0.0  # −0 becomes 0
    keys = features.view(np.dtype((np.void, features.dtype.itemsize * features.shape[1]))).ravel()
    _, first, group, sizes = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    in_order = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[in_order] = np.arange(len(first))
    group, sizes, first = number[group], sizes[in_order], first[in_order]
    begin = np.cumsum(sizes) - sizes
    order = np.lexsort((distinct.load("order")[rows.load("row", p)], group))
    rank = np.empty(len(features), np.int64)
    rank[order] = np.arange(len(features)) - begin[group[order]]
    for name, array in (
        ("features", features[first]), ("sizes", sizes), ("first", starts[p] + begin),
        ("group", group), ("rank", rank), ("members", starts[p] + order),
    ):  # fmt: skip
        distinct.save(name, p, array)
    list_starts = rows.load("list_starts")
    lists = np.searchsorted(list_starts, starts[p] + first, side="right") - 1
    return np.bincount(lists, minlength=len(list_starts) - 1)


def replace_neighbors(
    stage: Stage, distinct: Stage, near: Stage, starts: list[int], n_neighbors: int, tasks: Tasks
) -> None:
    """Write the neighbours of all rows in place of plain ones, given those of distinct rows."""
    arguments = [(stage, distinct, near, starts, p, n_neighbors) for p in range(len(starts) - 1)]
    tasks.map(_replace_part, arguments, "neighbours")


def _replace_part(
    stage: Stage, distinct: Stage, near: Stage, starts: list[int], p: int, n_neighbors: int
) -> None:
    groups = distinct.record["starts"]
    own, others = np.arange(groups[p], groups[p + 1]), np.asarray(near.load("near", p))
    outside = np.setdiff1d(others, own)
    known = np.append(own, outside)
    sizes, first = (distinct.parts(name, groups).take(known) for name in ("sizes", "first"))
    local = np.where(
        (others >= groups[p]) & (others < groups[p + 1]),
        others - groups[p],
        len(own) + np.searchsorted(outside, others),
    )
    found = Neighbors(near.load("distance", p).astype(np.float64), local, 1.0)
    of_row, rank = distinct.load("group", p), distinct.load("rank", p)
    group, step, distance = (part[of_row] for part in lists_of_groups(sizes, found, n_neighbors))
    places = first[group] + (rank[:, None] + step) % sizes[group]
    members = distinct.parts("members", starts).take(places.ravel()).reshape(places.shape)
    stage.save("near", p, members)
    stage.save("scale", p, distance[:, -1])
    stage.save("distance", p, distance.astype(np.float32))
