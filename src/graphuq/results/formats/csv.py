"""Comma-separated values."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from graphuq.errors import StorageError
from graphuq.results.formats.base import TableFormat
from graphuq.utils.gate import reading

if TYPE_CHECKING:
    import pandas as pd


class Csv(TableFormat):
    """Comma-separated values; numbers are written with six significant digits.

    A text that a spreadsheet would run as a formula has an apostrophe before it.
    """

    suffix: ClassVar[str] = ".csv"

    def read(self, path: Path, text_columns: Sequence[str] = ()) -> "pd.DataFrame":
        """Return the table of a file; empty cells are empty texts."""
        import pandas as pd

        from graphuq.utils.text_numbers import read_csv

        with reading(path, f"{path.suffix[1:]} file"), warnings.catch_warnings():
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # users of cells check them
            frame = read_csv(path, dtype=dict.fromkeys(text_columns, str), keep_default_na=False)
        check_last_line(path, frame.shape[1])
        return frame

    def write(self, table: "pd.DataFrame", path: Path) -> None:
        """Write a table to a new file."""
        from graphuq.utils.csv_files import write_csv

        write_csv(table, path)


def check_last_line(path: Path, n_columns: int) -> None:
    """Raise `StorageError` if the file ends within a row, which the CSV reader would fill."""
    with open(path, "rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - 1_000_000))
        lines = file.read().decode(errors="replace").splitlines()
    last = next((line for line in reversed(lines) if line.strip()), "")
    if '"' not in last and last.count(",") + 1 < n_columns:
        raise StorageError(f"the last row of '{path}' has too few fields; it may be truncated")
