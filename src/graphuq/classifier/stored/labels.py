"""Labels of a table in blocks: those of a column, of a dict, or of an array."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from graphuq.classifier.labels import check_classes, is_matrix, split_labels
from graphuq.engine.sources import Block, Source
from graphuq.engine.tasks import Tasks
from graphuq.errors import require
from graphuq.utils.checks import text_array


class GivenLabels(NamedTuple):
    """Labels by row of the table, in the order of the rows.

    Attributes
    ----------
    rows : numpy.ndarray of int, shape (J,)
    values : numpy.ndarray, shape (J,)
        Classes by name.
    """

    rows: Int[np.ndarray, " J"]
    values: np.ndarray

    @property
    def coded(self) -> tuple[np.ndarray, Int[np.ndarray, " J"]]:
        """Classes in ascending order, and the class of each label as an index."""
        classes, codes = np.unique(self.values, return_inverse=True)
        return classes, codes

    def changed(self, rows: Any, values: Any, given: Any) -> "GivenLabels":
        """Return the labels with others of some rows; those that are not ``given`` go."""
        kept = ~np.isin(self.rows, rows)
        own, new = self.values[kept], np.asarray(values)[given]
        found = np.append(self.rows[kept], np.asarray(rows, np.int64)[given])
        names = np.concatenate([own, new]) if len(new) else own
        order = np.argsort(found, kind="stable")
        return GivenLabels(found[order], names[order])


def given_labels(table: Source, y: Any, missing_label: Any, tasks: Tasks) -> GivenLabels:
    """Return the labels that are given.

    Parameters
    ----------
    table : Source
    y : str, dict or array_like
        Name of a column, whose classes are texts; classes by row number; or one for each row.
    missing_label : object
    tasks : Tasks

    Raises
    ------
    InvalidInput
        If a row does not exist, or there are fewer than two classes.
    """
    if isinstance(y, str):
        found = tasks.map(Block.texts, [(block, y) for block in table.blocks])
        pieces = [rows + begin for (rows, _), begin in zip(found, table.starts, strict=False)]
        rows = np.concatenate(pieces).astype(np.int64)
        values: Any = text_array((text for _, texts in found for text in texts), "y")
        missing_label = None if missing_label is None else str(missing_label)
    elif isinstance(y, Mapping):
        rows, values = _checked_rows(list(y), table.n_rows), list(y.values())
    else:
        require(not is_matrix(y), "y", "a matrix beside a store", "give one class a row")
        rows, values = np.arange(table.n_rows), y
    values, given = split_labels(values, missing_label)
    require(
        len(values) == len(rows), "y", f"{len(values)} values", f"the table has {len(rows)} rows"
    )
    order = np.argsort(rows[given], kind="stable")
    found_labels = GivenLabels(rows[given][order], values[given][order])
    check_classes(found_labels.coded[0], missing_label)
    return found_labels


def _checked_rows(rows: list[Any], n_rows: int) -> Int[np.ndarray, " J"]:
    """Return row numbers, all of which exist."""
    good = all(isinstance(row, int | np.integer) for row in rows)
    require(good, "y", "a row that is no integer", "number rows from 0")
    numbers = np.array(rows, dtype=np.int64)
    outside = (numbers < 0) | (numbers >= n_rows)
    require(
        not outside.any(),
        "y",
        f"row {numbers[outside][:1].tolist()} of a table of {n_rows}",
        "number rows from 0",
    )
    return numbers
