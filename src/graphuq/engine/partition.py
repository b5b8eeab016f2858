"""Rows are copied into the store and put in an order in which near rows are close.

A sample of the rows trains lists by k-means, and each row belongs to the list of the nearest
centre. Bisection of the centres puts lists in order, and parts are consecutive lists. So a part is
a region of space, and few edges leave it.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from graphuq.engine.sources import Block, Source
from graphuq.engine.store import RowParts, Stage
from graphuq.engine.tasks import Tasks
from graphuq.errors import InvalidInput

LIST_ROWS = 64  # smallest mean number of rows of a list
LISTS = 4  # number of lists, relative to the root of the number of rows
TRAINING = 32  # rows per list that train the k-means of the lists
GATHERED = 1 << 28  # bytes of features that a task gathers in one pass over the rows
SWEEPS = 8  # iterations of that k-means


def n_lists_of(n_rows: int) -> int:
    """Return the number of lists: 4 √N, but at least 64 rows a list on average."""
    return max(1, min(int(LISTS * np.sqrt(n_rows)), n_rows // LIST_ROWS))


def copy_rows(stage: Stage, source: Source, tasks: Tasks) -> None:
    """Copy the features of all blocks into the store, in single precision."""
    arguments = [
        (stage, k, block, tuple(source.names), int(begin))
        for k, (block, begin) in enumerate(zip(source.blocks, source.starts, strict=False))
    ]
    tasks.map(_copy_block, arguments, "rows")
    stage.finish({"starts": source.starts.tolist()})


def _copy_block(stage: Stage, k: int, block: Block, names: tuple[str, ...], begin: int) -> None:
    if stage.has("rows", k):
        return
    found = block.features(names)
    rows = np.ascontiguousarray(found, dtype=np.float32)
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidInput(
            "source",
            f"row {begin + row} has a feature that is NaN, infinite or beyond single precision",
            "fill, scale or remove it",
        )
    stage.save("rows", k, rows)


def partition(stage: Stage, rows: Stage, n_parts: int, seed: int, tasks: Tasks) -> None:
    """Put the rows in order and divide them into parts.

    The stage then holds, for part p, ``features-p`` and ``row-p``, the number of each row in the
    source; for block k of the source ``place-k``, the place of each of its rows in the new order;
    and ``centres`` and ``list_starts`` of the lists in the new order.
    """
    block_starts = rows.record["starts"]
    blocks, n_blocks = rows.parts("rows", block_starts), len(block_starts) - 1
    n_rows = len(blocks)
    if not stage.has("unordered"):
        stage.save("unordered", None, _trained_centres(blocks, n_lists_of(n_rows), seed))
    tasks.map(_assign, [(stage, rows, k) for k in range(n_blocks)], "lists")
    centres = stage.load("unordered")
    counts = [np.bincount(stage.load("list", k), minlength=len(centres)) for k in range(n_blocks)]
    sizes = np.asarray(np.sum(counts, axis=0, dtype=np.int64))
    order = bisection(np.asarray(centres, dtype=np.float64), sizes)
    list_starts = np.append(0, np.cumsum(sizes[order]))
    stage.save("centres", None, centres[order])
    stage.save("list_starts", None, list_starts)
    begins = np.empty(len(order), np.int64)
    begins[order] = list_starts[:-1]
    stage.save("begins", None, begins + np.cumsum([0 * sizes, *counts[:-1]], axis=0))
    tasks.map(_place, [(stage, k) for k in range(n_blocks)], "lists")
    starts = part_starts(list_starts, n_parts)
    arguments = [
        (stage, rows, block_starts, list(parts), starts)
        for parts in _batches(starts, blocks.range(0, 1).shape[1])
    ]
    tasks.map(_gather, arguments, "parts")
    record = {"starts": starts.tolist(), "blocks": list(block_starts), "n_lists": len(order)}
    stage.finish(record, temporary=["list"])


def _trained_centres(blocks: RowParts, n_lists: int, seed: int) -> Float[np.ndarray, "C d"]:
    """Return the centres of lists, trained on a sample of the rows."""
    import faiss

    n_rows = len(blocks)
    rng = np.random.default_rng(seed)
    sample = np.unique(rng.integers(n_rows, size=min(n_rows, TRAINING * n_lists)))
    rows = np.ascontiguousarray(blocks.take(sample), dtype=np.float32)
    kmeans = faiss.Kmeans(
        rows.shape[1],
        n_lists,
        niter=SWEEPS,
        seed=seed,
        min_points_per_centroid=1,
        max_points_per_centroid=TRAINING,
    )
    kmeans.train(rows)
    return np.asarray(kmeans.centroids)


def _assign(stage: Stage, rows: Stage, k: int) -> None:
    if stage.has("list", k):
        return
    import faiss

    faiss.omp_set_num_threads(1)
    found = faiss.knn(rows.load("rows", k), stage.load("unordered"), 1)[1][:, 0]
    stage.save("list", k, found.astype(np.int32))


def _place(stage: Stage, k: int) -> None:
    if stage.has("place", k):
        return
    lists, begins = stage.load("list", k), stage.load("begins")[k]
    order = np.argsort(lists, kind="stable")
    ordered = lists[order]
    first = np.searchsorted(ordered, ordered)
    place = np.empty(len(lists), np.int64)
    place[order] = begins[ordered] + np.arange(len(lists)) - first
    stage.save("place", k, place)


def _batches(starts: Int[np.ndarray, " P"], width: int) -> Iterator[range]:
    """Yield consecutive parts that are gathered in one pass over the rows."""
    first, n_parts = 0, len(starts) - 1
    while first < n_parts:
        most = starts[first] + GATHERED // (4 * width)
        last = int(np.searchsorted(starts, most, side="right")) - 1
        yield range(first, min(max(last, first + 1), n_parts))
        first = max(last, first + 1)


def _gather(
    stage: Stage,
    rows: Stage,
    block_starts: list[int],
    parts: list[int],
    starts: Int[np.ndarray, " P"],
) -> None:
    """Write the features of some parts, and the numbers of their rows."""
    if all(stage.has("row", p) for p in parts):
        return
    begin, end = int(starts[parts[0]]), int(starts[parts[-1] + 1])
    features, numbers = None, np.empty(end - begin, np.int64)
    for k in range(len(block_starts) - 1):
        place, block = stage.load("place", k), rows.load("rows", k)
        if features is None:
            features = np.empty((end - begin, block.shape[1]), np.float32)
        own = np.flatnonzero((place >= begin) & (place < end))
        features[place[own] - begin] = block[own]
        numbers[place[own] - begin] = block_starts[k] + own
    assert features is not None
    for p in parts:
        part = slice(starts[p] - begin, starts[p + 1] - begin)
        stage.save("features", p, features[part])
        stage.save("row", p, numbers[part])


def bisection(centres: Float[np.ndarray, "C d"], sizes: Int[np.ndarray, " C"]) -> np.ndarray:
    """Return an order of centres in which near ones are close.

    Centres are split at the median row along their direction of largest variance, and each half
    again, down to single centres.
    """
    order = np.arange(len(centres))
    todo = [(0, len(order))]
    while todo:
        begin, end = todo.pop()
        if end - begin < 2:
            continue
        some = order[begin:end]
        inner = centres[some] - centres[some].mean(axis=0)
        axis = np.linalg.eigh(inner.T @ inner)[1][:, -1]
        axis = axis * np.sign(axis[np.abs(axis).argmax()])
        some = some[np.argsort(inner @ axis, kind="stable")]
        order[begin:end] = some
        rows = np.cumsum(sizes[some])
        cut = int(np.searchsorted(rows, rows[-1] / 2)) + 1
        cut = begin + min(max(cut, 1), end - begin - 1)
        todo += [(begin, cut), (cut, end)]
    return order


def part_starts(list_starts: Int[np.ndarray, " C"], n_parts: int) -> Int[np.ndarray, " P"]:
    """Return where parts of similar numbers of rows begin; a part may be empty."""
    wanted = np.linspace(0, list_starts[-1], n_parts + 1)
    nearest = np.searchsorted((list_starts[1:] + list_starts[:-1]) / 2, wanted)
    starts = list_starts[nearest]
    starts[0], starts[-1] = 0, list_starts[-1]
    return np.maximum.accumulate(starts)
