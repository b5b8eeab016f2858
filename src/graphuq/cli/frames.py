"""Tables of pandas from files, and their columns as text."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from graphuq.results.formats import Csv, table_formats
from graphuq.utils.gate import reading


def read_frame(path: Path, text_columns: Sequence[str]) -> pd.DataFrame:
    """Read a table of any format, with some columns as text; any other suffix is that of a CSV."""
    found = table_formats().get(path.suffix.lower(), Csv())
    with reading(path, f"{path.suffix[1:]} file"):
        return found.read(path, text_columns)


def as_text(column: pd.Series) -> np.ndarray:
    """Return classes or ids as text: empty where missing, and 3.0 as 3."""
    if pd.api.types.is_float_dtype(column):
        whole = column.dropna()
        if (whole == whole.round()).all():
            column = column.astype("Int64")
    return np.array(["" if pd.isna(v) else str(v).strip() for v in column], dtype=str)
