"""Tables are written as CSV files, which a spreadsheet opens without running a cell."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv

from graphuq.utils.frames import made_frame
from graphuq.utils.spreadsheets import without_formulas

BATCH_ROWS = 65_536  # rows that are written together
DIGITS = 6  # significant digits of numbers in a CSV file


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV with six significant digits, some rows at a time.

    Texts that a spreadsheet would run are changed; see `without_formulas`.
    """
    frame = without_formulas(frame)
    with open(path, "wb") as file:
        file.write((",".join(_quoted(str(name)) for name in frame.columns) + "\n").encode())
        for begin in range(0, len(frame), BATCH_ROWS):
            rows = frame.iloc[begin : begin + BATCH_ROWS]
            columns = {name: _printable(rows[name].to_numpy()) for name in frame.columns}
            file.write(_lines(columns))


def _lines(columns: dict[Any, np.ndarray]) -> bytes:
    """Return rows as lines of a CSV file.

    Texts that are no Unicode, such as names of files, are the bytes that they were made of.
    """
    try:
        arrays = {str(name): pa.array(v, from_pandas=True) for name, v in columns.items()}
    except UnicodeEncodeError:
        frame = made_frame(columns)
        return frame.to_csv(index=False, header=False).encode("utf-8", "surrogateescape")
    try:
        return _written(arrays, "none")
    except pa.ArrowInvalid:  # a text needs quotes; then all texts have them, which is slower
        return _written(arrays, "needed")


def _written(arrays: dict[str, pa.Array], quoting: str) -> bytes:
    """Return lines whose texts have quotes or not; raise `pa.ArrowInvalid` if they need them."""
    lines = pa.BufferOutputStream()
    options = pa_csv.WriteOptions(include_header=False, quoting_style=quoting)
    pa_csv.write_csv(pa.table(arrays), lines, options)
    return bytes(lines.getvalue())


def _quoted(name: str) -> str:
    """Return a column name, in quotes where CSV requires them."""
    return '"' + name.replace('"', '""') + '"' if any(c in name for c in ',"\n\r') else name


def _printable(values: np.ndarray) -> np.ndarray:
    """Return numbers rounded to `DIGITS` digits, and truth values as True and False."""
    if values.dtype == bool:
        return np.where(values, "True", "False")
    if values.dtype.kind != "f":
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        places = DIGITS - 1 - np.floor(np.log10(np.abs(values.astype(np.float64))))
        places = np.clip(np.nan_to_num(places, nan=0, posinf=0, neginf=0), -300, 300)
        factor = 10.0 ** np.abs(places)
        return np.where(
            places >= 0, np.round(values * factor) / factor, np.round(values / factor) * factor
        )
