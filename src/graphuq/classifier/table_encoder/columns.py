"""Columns of a table: what kind each is, and its values in the one form that the encoder takes."""

import datetime
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from graphuq.errors import InvalidInput, require
from graphuq.graphs.inputs import is_frame, is_polars
from graphuq.utils.extras import require_extra
from graphuq.utils.text_numbers import to_numbers

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("number", "date", "category", "text")
MIN_WORDS = 4.0  # mean number of words of a cell, from which a column is text
FEW = 20  # different values that are categories, however few rows have each
MAX_CATEGORIES = 1_000
SECONDS = 86_400.0  # of a day, the unit of dates
BOOLEANS = {"TRUE": "True", "true": "True", "FALSE": "False", "false": "False"}
SAY_KIND = "leave it out, or say what it is: kinds={{{0!r}: 'category'}} (--kind {0}=category)"


def frame_of(X: Any, argument: str = "X") -> "pd.DataFrame":
    """Return a table as a pandas DataFrame; a polars DataFrame is converted by columns.

    Raises
    ------
    InvalidInput
        If it is no table with names of columns, has no rows or no columns, or a name repeats.
    MissingPackage
        If pandas is not installed (extra ``graphuq[tables]``).
    """
    require(
        is_frame(X) or is_polars(X),
        argument,
        f"a {type(X).__name__} has no names of columns",
        "give a pandas or polars DataFrame",
    )
    require_extra("tables")
    import pandas as pd

    if is_polars(X):
        columns = {series.name: _polars_values(series) for series in X.get_columns()}
        X = pd.DataFrame({name: pd.Series(values) for name, values in columns.items()})
    names = [str(name) for name in X.columns]
    repeated = [name for name in names if names.count(name) > 1]
    require(not repeated, argument, f"two columns named {repeated[:1]}", "rename one of them")
    require(min(X.shape) > 0, argument, f"shape {X.shape}", "give at least 1 row and 1 column")
    return X.set_axis(names, axis=1).reset_index(drop=True)


def _polars_values(series: Any) -> Any:
    """Return the values of a polars column: numbers as an array, all else as a list."""
    if series.dtype.is_numeric():
        return np.asarray(series.to_numpy(), dtype=np.float64)
    return np.array([*series.to_list(), None], dtype=object)[:-1]  # None keeps NumPy from guessing


def gaps_of(column: "pd.Series", missing_values: Collection[str] = ()) -> Bool[np.ndarray, " N"]:
    """Return which cells are empty: NaN, None, NaT, "" and texts that mean a gap."""
    gaps = np.array(column.isna(), dtype=bool)
    if column.dtype.kind in "biufmM":
        return gaps
    empty = {"", *missing_values}
    for row, value in enumerate(column):
        if isinstance(value, str) and value.strip() in empty:
            gaps[row] = True
    return gaps


def kind_of(column: "pd.Series", gaps: Bool[np.ndarray, " N"]) -> str:
    """Return the kind of a column: "number", "date", "category" or "text".

    Texts are numbers or dates (ISO 8601) if all of them can be read as such. They are text if
    cells have four words or more and most are different; otherwise categories.

    Raises
    ------
    InvalidInput
        If the column holds something else, or nearly as many different texts as rows.
    """
    import pandas as pd

    name, kind = str(column.name), column.dtype.kind
    if kind == "b" or isinstance(column.dtype, pd.CategoricalDtype):
        return "category"
    if kind in "iuf":
        return "number"
    if kind == "M":
        return "date"
    filled = column[~gaps]
    require(len(filled) > 0, "X", f"column {name!r} has no value in any row", "leave it out")
    types = {type(value) for value in filled}
    if kind == "O" or types <= {str}:
        if types <= {bool, np.bool_}:
            return "category"
        if all(issubclass(one, datetime.date) for one in types):
            return "date"
        if all(issubclass(one, int | float | np.number | str) for one in types):
            return _kind_of_texts(name, filled.astype(str).str.strip())
    raise InvalidInput(
        "X",
        f"column {name!r} ({column.dtype}) holds values such as {filled.iloc[0]!r}",
        "convert it to numbers, texts or dates, or leave it out",
    )


def _kind_of_texts(name: str, texts: "pd.Series") -> str:

    if to_numbers(texts).notna().all():
        return "number"
    if texts.str.match(r"\d{4}-\d\d?-\d\d?").all() and _as_dates(texts).notna().all():
        return "date"
    n_different, share = texts.nunique(), texts.nunique() / len(texts)
    if share > 0.5 and texts.str.count(r"\S+").mean() >= MIN_WORDS:
        return "text"
    require(
        n_different <= FEW or share <= 0.5,
        "X",
        f"column {name!r} has {n_different} different texts in {len(texts)} rows, such as "
        f"{texts.iloc[0][:20]!r}, like names",
        SAY_KIND.format(name),
    )
    require(
        n_different <= MAX_CATEGORIES,
        "X",
        f"column {name!r} has {n_different} different texts",
        f"leave it out, or join them to at most {MAX_CATEGORIES} categories",
    )
    return "category"


def _as_dates(texts: Any) -> Any:
    import pandas as pd

    return pd.to_datetime(texts, errors="coerce", utc=True, format="ISO8601")


def values_of(column: "pd.Series", gaps: Bool[np.ndarray, " N"], kind: str) -> np.ndarray:
    """Return the values of a column of a known kind.

    Returns
    -------
    numpy.ndarray, shape (N,)
        Numbers, and dates in days since 1970 (UTC), as float64, NaN where empty. Categories as
        texts, NaN where empty. Texts, "" where empty.

    Raises
    ------
    InvalidInput
        If a cell cannot be read as this kind, or is infinite.
    """
    if kind in ("number", "date"):
        numbers = _numbers(column) if kind == "number" else _days(column)
        numbers[gaps] = np.nan
        wrong = np.flatnonzero(~np.isfinite(numbers) & ~gaps)
        if len(wrong):
            row = int(wrong[0])
            raise InvalidInput(
                "X",
                f"column {str(column.name)!r} holds {str(column.iloc[row])[:30]!r} in row {row}, "
                f"which is no finite {kind}",
                "correct it, or empty the cell",
            )
        return numbers
    texts = np.empty(len(column), dtype=object)
    for row, value in enumerate(column):
        texts[row] = _as_text(value)
    texts[gaps] = "" if kind == "text" else np.nan
    return texts


def _numbers(column: "pd.Series") -> Float[np.ndarray, " N"]:

    numbers = to_numbers(column)
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)


def _days(column: "pd.Series") -> Float[np.ndarray, " N"]:
    import pandas as pd

    dates = column if column.dtype.kind == "M" else _as_dates(column.astype(str).str.strip())
    if getattr(dates.dtype, "tz", None) is None:
        dates = dates.dt.tz_localize("UTC")
    since = dates - pd.Timestamp(0, tz="UTC")
    return since.dt.total_seconds().to_numpy(dtype=np.float64, copy=True) / SECONDS


def _as_text(value: Any) -> str:
    """Return a category as text: 3.0 as 3, and true as True."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    text = str(value).strip()
    return BOOLEANS.get(text, text)


def check_kinds(kinds: Mapping[str, str] | None, names: Collection[str]) -> dict[str, str]:
    """Return the kinds that the user names, by column.

    Raises
    ------
    InvalidInput
        If a column is not in the table, or a kind is unknown.
    """
    for name, kind in (kinds or {}).items():
        require(name in names, "kinds", f"no column {name!r}", f"use one of {list(names)[:8]}")
        require(kind in KINDS, "kinds", f"{kind!r} of {name!r}", f"use one of {', '.join(KINDS)}")
    return dict(kinds or {})
