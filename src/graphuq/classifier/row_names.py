"""Columns of numbers that are names of rows: they number the rows, or are named like an id."""

import re
from collections.abc import Callable, Sequence
from shlex import quote
from typing import Any

import numpy as np

from graphuq.errors import GraphuqWarning
from graphuq.utils.user_warnings import warn_user

MIN_ROWS = 10  # of a column that numbers them
MIN_IDS = 20  # different whole numbers of a column that is named like an id
ID = re.compile(
    r"(.*[ ._-])?(id|ids|idx|index|key|uid|guid|uuid|nr|no|number)|row[ ._-]?names?", re.IGNORECASE
)
CAMEL = re.compile(r".*[a-z](ID|Id)")


def warn_of_row_names(names: Sequence[str] | np.ndarray, column: Callable[[int], Any]) -> None:
    """Warn of columns of features that seem to be names of rows.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    column : callable
        Returns the values of the column of a number.

    Warns
    -----
    GraphuqWarning
        If a column is n, n + 1, n + 2 and so on; or if it is named like an id and has many
        different whole numbers.
    """
    counting, like_ids, repeated = [], [], []
    for place, name in enumerate(map(str, names)):
        values = np.asarray(column(place))
        if len(values) < MIN_ROWS or values.dtype.kind not in "iuf":
            continue
        if (np.diff(values) == 1).all():
            counting.append(name)
        elif ID.fullmatch(name) or CAMEL.fullmatch(name):
            numbers = values[np.isfinite(values)] if values.dtype.kind == "f" else values
            n_different = len(np.unique(numbers))
            if n_different >= MIN_IDS and (numbers == np.floor(numbers)).all():
                like_ids.append(name)
                repeated += [name] if n_different < len(values) else []
    found = [*counting, *like_ids]
    if not found:
        return
    words = [_listed(counting, "numbers", "number") + " the rows"] if counting else []
    words += [_listed(like_ids, "is", "are") + " named like an id"] if like_ids else []
    unique = [name for name in found if name not in repeated]
    other = f", or make it names of the rows: --id-column {quote(unique[0])}" if unique else ""
    drops = " ".join(f"--drop {quote(name)}" for name in found)
    warn_user(
        f"X: {', and '.join(words)}; if that is no feature, leave it out ({drops}){other}",
        GraphuqWarning,
    )


def _listed(names: Sequence[str], one: str, several: str) -> str:
    return f"{', '.join(map(repr, names))} {one if len(names) == 1 else several}"
