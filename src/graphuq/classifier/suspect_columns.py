"""Columns of numbers that are likely no features: names of rows, codes for "no value", dates."""

import re
from collections.abc import Callable, Sequence
from shlex import quote
from typing import Any

import numpy as np

from graphuq.errors import GraphuqWarning
from graphuq.utils.user_warnings import warn_user

MIN_ROWS = 10  # of a column, or other numbers beside a code, or different days
CODES = (-9, -99, -999, -9999, -99999, -32768, 99, 999, 9999, 99999)  # that stand for "no value"
SHOWN = 5  # columns with codes in a warning
MIN_IDS = 20  # different whole numbers of a column that is named like an id
ID = re.compile(
    r"(.*[ ._-])?(id|ids|uid|guid|uuid)|idx|index|key|nr|no|"
    r"(row|sample|case|record|subject|patient)[ ._-]?(names?|no|nr|number|index)",
    re.IGNORECASE,
)
CAMEL = re.compile(r".*[a-z](ID|Id)")


def warn_of_suspects(names: Sequence[str] | np.ndarray, column: Callable[[int], Any]) -> None:
    """Warn of columns of features that seem to be something else.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    column : callable
        Returns the values of the column of a number.

    Warns
    -----
    GraphuqWarning
        If a column is n, n + 1, n + 2 and so on; if it is named like an id and has many different
        whole numbers; if -999 or the like is far from all other numbers; or if all numbers are
        days such as 20240131.
    """
    counting, like_ids, repeated, coded, days = [], [], [], [], []
    for place, name in enumerate(map(str, names)):
        values = np.asarray(column(place))
        if len(values) < MIN_ROWS or values.dtype.kind not in "iuf":
            continue
        if len(codes := codes_in(values)):
            coded.append(f"{', '.join(f'{code:g}' for code in codes)} of {name!r}")
        if _are_days(values):
            days.append(name)
        elif (np.diff(values) == 1).all():
            counting.append(name)
        elif ID.fullmatch(name) or CAMEL.fullmatch(name):
            numbers = values[np.isfinite(values)] if values.dtype.kind == "f" else values
            n_different = len(np.unique(numbers))
            if n_different >= MIN_IDS and (numbers == np.floor(numbers)).all():
                like_ids.append(name)
                repeated += [name] if n_different < len(values) else []
    if coded:
        more = f" and {len(coded) - SHOWN} more" if len(coded) > SHOWN else ""
        warn_user(
            f"X: {', '.join(coded[:SHOWN])}{more} {'is' if len(coded) == 1 else 'are'} far from "
            "all other numbers; if that means an empty cell, say so: TableEncoder(impute=True, "
            "missing_values=['-999']), or --impute --missing-value=-999 at the command line",
            GraphuqWarning,
        )
    if days:
        warn_user(
            f"X: the numbers of {', '.join(map(repr, days))} look like days; then say so: "
            f"TableEncoder(kinds={{{days[0]!r}: 'date %Y%m%d'}}), or --encode --kind "
            f"{quote(days[0] + '=date %Y%m%d')} at the command line",
            GraphuqWarning,
        )
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


def codes_in(values: np.ndarray) -> np.ndarray:
    """Return codes that occur at least twice, farther from others than these from each other."""
    found = [code for code in CODES if np.count_nonzero(values == code) > 1]
    others = values[~np.isin(values, found) & np.isfinite(values)]
    if not found or len(others) < MIN_ROWS:
        return np.empty(0)
    low, high = float(others.min()), float(others.max())
    return np.array([code for code in found if max(low - code, code - high) > high - low])


def _are_days(values: np.ndarray) -> bool:
    """Return whether all numbers are days of the years 1900 to 2099, written as 20240131."""
    values = values[np.isfinite(values)]
    if (values != np.floor(values)).any() or len(np.unique(values)) < MIN_ROWS:
        return False
    year, month, day = values // 10_000, values // 100 % 100, values % 100
    in_range = (year >= 1900) & (year < 2100) & (month >= 1) & (month <= 12)
    return bool((in_range & (day >= 1) & (day <= 31)).all())
