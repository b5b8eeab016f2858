"""Columns of a table: their empty cells, and their values in the one form of the encoder."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool

from graphuq.classifier.table_encoder.readings import Reading
from graphuq.classifier.table_encoder.refusals import not_finite
from graphuq.errors import require
from graphuq.graphs.containers import is_frame, is_polars, plain_table
from graphuq.utils.extras import require_extra
from graphuq.utils.written.gaps import is_gap_word
from graphuq.utils.written.numbers import number_in

if TYPE_CHECKING:
    import pandas as pd

BOOLEANS = {"TRUE": "True", "true": "True", "FALSE": "False", "false": "False"}


def frame_of(X: Any, argument: str = "X") -> "pd.DataFrame":
    """Return a table as a pandas DataFrame; a polars DataFrame is converted by columns.

    Raises
    ------
    InvalidInput
        If it is no table with names of columns, has no rows or no columns, or a name repeats
        or has a zero byte.
    MissingPackage
        If pandas is not installed (extra ``graphuq[tables]``).
    """
    X = plain_table(X, argument)
    require(
        is_frame(X) or is_polars(X),
        argument,
        f"a {type(X).__name__} has no names of columns",
        "give a pandas or polars DataFrame, or a table of Arrow",
    )
    require_extra("tables")
    import pandas as pd

    if is_polars(X):
        columns = {series.name: _polars_values(series) for series in X.get_columns()}
        X = pd.DataFrame({name: pd.Series(values) for name, values in columns.items()})
    names = [str(name) for name in X.columns]
    repeated = [name for name in names if names.count(name) > 1]
    require(not repeated, argument, f"two columns named {repeated[:1]}", "rename one of them")
    broken = [name for name in names if "\0" in name]  # scikit-learn would lose it
    require(not broken, argument, f"zero bytes in the name {broken[:1]}", "rename the column")
    require(min(X.shape) > 0, argument, f"shape {X.shape}", "give at least 1 row and 1 column")
    return X.set_axis(names, axis=1).reset_index(drop=True)


def _polars_values(series: Any) -> Any:
    """Return the values of a polars column: numbers as an array, all else as a list."""
    if series.dtype.is_numeric():
        return np.asarray(series.to_numpy(), dtype=np.float64)
    return np.array([*series.to_list(), None], dtype=object)[:-1]  # None keeps NumPy from guessing


def gaps_of(
    column: "pd.Series", missing_values: Collection[str] = (), with_words: bool = False
) -> Bool[np.ndarray, " N"]:
    """Return which cells are empty: NaN, None, NaT, "" and texts that mean a gap.

    Parameters
    ----------
    column : pandas.Series
    missing_values : collection of str
    with_words : bool, default False
        Whether words for "nothing" are such texts, as they are among numbers.
    """
    gaps = np.array(column.isna(), dtype=bool)
    if column.dtype.kind in "iuf":
        return gaps | np.isin(
            column,
            [
                number
                for text in missing_values
                if not np.isnan(number := number_in(text, ".").value)
            ],
        )
    if column.dtype.kind in "bmM":
        return gaps
    empty = {"", *missing_values}
    for row, value in enumerate(column):
        if isinstance(value, str):
            gaps[row] = value.strip() in empty or (with_words and is_gap_word(value))
    return gaps


def values_of(column: "pd.Series", gaps: Bool[np.ndarray, " N"], reading: Reading) -> np.ndarray:
    """Return the values of a column that is read in a known way.

    Returns
    -------
    numpy.ndarray, shape (N,)
        Numbers, and dates in days since 1970 (UTC), as float64, NaN where empty. Categories as
        texts, NaN where empty. Texts, "" where empty.

    Raises
    ------
    RefusedColumn
        If a cell cannot be read as this kind, or is infinite.
    """
    kind = reading.kind
    if kind in ("number", "date"):
        numbers = np.full(len(column), np.nan)
        numbers[~gaps] = reading.numbers(column[~gaps])
        wrong = np.flatnonzero(~np.isfinite(numbers) & ~gaps)
        if len(wrong):
            row = int(wrong[0])
            raise not_finite(str(column.name), str(column.iloc[row]), row, kind)
        return numbers
    texts = np.empty(len(column), dtype=object)
    for row, value in enumerate(column):
        texts[row] = _as_text(value)
    texts[gaps] = "" if kind == "text" else np.nan
    return texts


def _as_text(value: Any) -> str:
    """Return a category as text: 3.0 as 3, and true as True."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    text = str(value).strip()
    return BOOLEANS.get(text, text)
