"""Tables of pandas from files, and their columns as text."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from graphuq.cli.columns import check_column
from graphuq.errors import GraphuqWarning, require
from graphuq.results.formats import Csv, TableFormat, formats_of_reading
from graphuq.utils.checks import text_array
from graphuq.utils.gate import reading
from graphuq.utils.user_warnings import warn_user

GAPS = ("", "NA", "N/A", "n/a", "NaN", "nan", "None", "null", "NULL", "<NA>", "#N/A")
"""Cells of a file of text that are empty, besides those that ``--missing-value`` names."""

ENDS = (("source", "target"), ("src", "dst"))  # of edges, as columns of features
OF_EDGES = ("weight", "sign", "type")  # further columns of edges

MAX_INTEGER = 2**63  # a larger whole number is written as a power of ten

UNNAMED = "Unnamed: 0"  # first column of a file of text, if it has no name


class Frame(NamedTuple):
    """Columns of features of a file, those of other use as text, and how the file was read.

    Attributes
    ----------
    features : pandas.DataFrame
    columns : dict of str to numpy.ndarray
        Labels, ids and so on, by the names of their columns.
    ids : numpy.ndarray of str, or None
        Names of the rows that are the index of a table of pandas, or a first column without name.
    format : TableFormat
    """

    features: pd.DataFrame
    columns: dict[str, np.ndarray]
    ids: np.ndarray | None
    format: TableFormat


def format_of_file(
    path: Path, options: Mapping[str, str] | None = None, decimal: str | None = None
) -> TableFormat:
    """Return the format of a file with what it shows; any other suffix is that of a CSV file."""
    found = formats_of_reading().get(path.suffix.lower(), Csv())
    return found.for_file(path, options, decimal)


def read_frame(
    path: Path, text_columns: Sequence[str], found: TableFormat | None = None
) -> pd.DataFrame:
    """Read a table of any format, with some columns as text."""
    found = format_of_file(path) if found is None else found
    with reading(path, f"{path.suffix[1:]} file"):
        return found.read(path, text_columns)


def read_columns(
    path: Path,
    special: Sequence[str],
    dropped: Sequence[str],
    found: TableFormat,
    text_columns: Sequence[str] = (),
) -> Frame:
    """Read a table, and take apart what has another use than as a feature.

    Raises
    ------
    InvalidInput
        If a column is missing, or one with a name of its own is not the only one of this name.
    """
    frame = read_frame(path, [*special, *text_columns], found)
    if frame.index.name in special:
        frame = frame.reset_index()
    frame, ids = _without_names(frame, [*special, *dropped])
    present = [str(name) for name in frame.columns]
    for column in (*special, *dropped):
        check_column(column, present)
        require(
            column not in found.repeated,
            "column",
            f"two columns of '{path.name}' are named '{column}'",
            "rename one of them",
        )
    columns = {column: as_text(frame[column]) for column in special}
    _warn_of_edges([name for name in present if name not in (*special, *dropped)])
    return Frame(frame.drop(columns=[*special, *dropped]), columns, ids, found)


def _without_names(
    frame: pd.DataFrame, used: Sequence[str]
) -> tuple[pd.DataFrame, np.ndarray | None]:
    """Return a table without the names of its rows, and these, None if it has none.

    They are the index of a table of pandas, or a first column without a name, as R and pandas
    write one.
    """
    index = frame.index
    plain = isinstance(index, pd.RangeIndex) and (index.start, index.step) == (0, 1)
    names = None if plain or isinstance(index, pd.MultiIndex) else names_in(pd.Series(index))
    if names is not None:
        return frame.reset_index(drop=True), names
    first = str(frame.columns[0]) if frame.shape[1] else ""
    names = names_in(frame[first]) if first == UNNAMED and first not in used else None
    if names is None:
        return frame, None
    return frame.drop(columns=first), names if (names != "").all() else None


def names_in(column: pd.Series) -> np.ndarray | None:
    """Return the cells of a column as text, or None if two are equal."""
    names = as_text(column)
    return names if len(set(names.tolist())) == len(names) else None


def _warn_of_edges(features: Sequence[str]) -> None:
    """Warn if the columns of features are those of a list of edges, whose rows are no items.

    Warns
    -----
    GraphuqWarning
        If they are source and target, and at most weight, sign and type.
    """
    names = {name.casefold(): name for name in features}
    ends = next((pair for pair in ENDS if set(pair) <= set(names)), None)
    if ends and set(names) <= {*ends, *OF_EDGES}:
        shown = ",".join(names[one] for one in (*ends, "weight", "sign") if one in names)
        warn_user(
            f"X: the columns are those of a list of edges; if each row is an edge, add "
            f"--edges {shown}",
            GraphuqWarning,
        )


def as_text(column: pd.Series) -> np.ndarray:
    """Return classes or ids as text: empty where missing, and 3.0 as 3.

    Raises
    ------
    InvalidInput
        If one ends with a zero byte.
    """
    missing = column.isna().to_numpy(dtype=bool)
    known = column[~missing]
    if pd.api.types.is_float_dtype(column) and (known == known.round()).all():
        known = pd.Series([int(v) if abs(v) < MAX_INTEGER else v for v in known], dtype=object)
    texts = np.full(len(column), "", dtype=object)
    texts[~missing] = [str(value).strip() for value in known]
    return text_array(texts, "ids" if column.name is None else f"column {str(column.name)!r}")
