"""Ranges of the columns of a table, from those of its parts."""

from typing import Any

import numpy as np

from graphuq.engine.store import Stage
from graphuq.engine.tasks import Tasks
from graphuq.graphs.column_ranges import ColumnRanges

ARRAYS = ("low", "high", "mean")


def ranges_of(stage: Stage, parts: Stage, tasks: Tasks) -> ColumnRanges:
    """Return the ranges of all rows, which are computed if they are not in the store."""
    if not stage.is_done:
        numbers = range(len(parts.record["starts"]) - 1)
        found = tasks.map(_of_part, [(parts, p) for p in numbers], "functions")
        ranges = ColumnRanges.joined([some for some in found if some is not None])
        for name in ARRAYS:
            stage.save(name, None, getattr(ranges, name))
        stage.finish({"n_rows": ranges.n_rows, "squares": ranges.squares})
        return ranges
    arrays: dict[str, Any] = {name: np.array(stage.load(name)) for name in ARRAYS}
    return ColumnRanges(**arrays, **stage.record)


def _of_part(parts: Stage, p: int) -> ColumnRanges | None:
    """Return the ranges of a part, or None if it has no rows."""
    rows = parts.load("features", p)
    return ColumnRanges.of(rows) if len(rows) else None
