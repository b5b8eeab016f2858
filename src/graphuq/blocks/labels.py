"""Labels of a table in blocks: those of a column, or of a dict."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int

from graphuq.blocks.sources import Block, Source
from graphuq.blocks.tasks import Tasks
from graphuq.errors import require


def given_labels(
    table: Source, labels: str | Mapping[int, Any], missing_label: Any, tasks: Tasks
) -> tuple[Int[np.ndarray, " J"], Int[np.ndarray, " J"], list[Any]]:
    """Return the labelled rows, their codes, and the classes.

    Raises
    ------
    InvalidInput
        If a row does not exist, or there are fewer than two classes.
    """
    if isinstance(labels, str):
        found = tasks.map(Block.texts, [(block, labels) for block in table.blocks])
        pieces = [rows + begin for (rows, _), begin in zip(found, table.starts, strict=False)]
        rows = np.concatenate(pieces).astype(np.int64)
        values: list[Any] = [text for _, texts in found for text in texts]
        missing_label = None if missing_label is None else str(missing_label)
    else:
        rows, values = _checked_rows(list(labels), table.n_rows), list(labels.values())
    kept = [k for k, value in enumerate(values) if value is not None and value != missing_label]
    rows, values = rows[kept], [values[k] for k in kept]
    classes, codes = np.unique(np.array(values), return_inverse=True)
    require(
        len(classes) >= 2,
        "labels",
        f"{len(classes)} class(es) among {len(values)} labels",
        "label rows of two or more classes",
    )
    return rows, codes, classes.tolist()


def _checked_rows(rows: list[Any], n_rows: int) -> Int[np.ndarray, " J"]:
    """Return row numbers, all of which exist."""
    good = all(isinstance(row, int | np.integer) for row in rows)
    require(good, "labels", "a row that is no integer", "number rows from 0")
    numbers = np.array(rows, dtype=np.int64)
    outside = (numbers < 0) | (numbers >= n_rows)
    require(
        not outside.any(),
        "labels",
        f"row {numbers[outside][:1].tolist()} of a table of {n_rows}",
        "number rows from 0",
    )
    return numbers
