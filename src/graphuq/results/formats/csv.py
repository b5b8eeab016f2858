"""Tables of text, such as comma-separated values."""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from graphuq.errors import StorageError
from graphuq.results.formats.base import TableFormat
from graphuq.utils.gate import reading

if TYPE_CHECKING:
    import pandas as pd

    from graphuq.utils.written.dialect import Dialect


@dataclasses.dataclass(frozen=True)
class Csv(TableFormat):
    """Comma-separated values; numbers are written with six significant digits.

    Separator, encoding, decimal mark and header of a file that is read are found from its rows. A
    text that a spreadsheet would run as a formula is written with an apostrophe before it.

    Parameters
    ----------
    dialect : Dialect, optional
        How the file to read holds its table; by default as the file shows.
    missing : sequence of str
        Cells that are NaN, but for columns of text; by default empty cells are empty texts.
    """

    suffix: ClassVar[str] = ".csv"
    other_suffixes: ClassVar[tuple[str, ...]] = (".tsv", ".tab", ".txt", ".data", ".dat")

    dialect: "Dialect | None" = None
    missing: Sequence[str] = ()

    def for_file(
        self, path: Path, options: Mapping[str, str] | None = None, decimal: str | None = None
    ) -> "Csv":
        """Return the format with the dialect of a file, some parts of which may be given."""
        from graphuq.utils.written.dialect import dialect_of

        with reading(path, f"{path.suffix[1:]} file"):
            return dataclasses.replace(self, dialect=dialect_of(path, options, decimal))

    def without(self, cells: Sequence[str]) -> "Csv":
        """Return the format that takes some texts as empty cells."""
        return dataclasses.replace(self, missing=tuple(cells))

    def settings(self) -> dict[str, Any]:
        """Return what the file showed."""
        return {} if self.dialect is None else self.dialect.settings()

    def __str__(self) -> str:
        """Return what the file showed, in a few words."""
        return "" if self.dialect is None else str(self.dialect)

    @property
    def decimal(self) -> str | None:
        """Decimal mark that the file showed."""
        return None if self.dialect is None else self.dialect.decimal

    @property
    def repeated(self) -> Sequence[str]:
        """Names that occurred more than once."""
        return () if self.dialect is None else self.dialect.repeated

    def read(self, path: Path, text_columns: Sequence[str] = ()) -> "pd.DataFrame":
        """Return the table of a file; empty cells are empty texts, unless they are missing."""
        import pandas as pd

        from graphuq.utils.text_numbers import read_csv

        dialect = self.dialect or self.for_file(path).dialect
        assert dialect is not None
        names = list(dialect.columns)
        gaps = {name: list(self.missing) for name in names if name not in text_columns}
        with reading(path, f"{path.suffix[1:]} file"), warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # it would drop cells
            try:
                frame = read_csv(
                    path,
                    sep=r"\s+" if dialect.separator == " " else dialect.separator,
                    encoding=dialect.encoding,
                    decimal=dialect.decimal,
                    quotechar=dialect.quote,
                    header=None,
                    names=names,
                    index_col=False,
                    skiprows=dialect.lines,
                    dtype=dict.fromkeys(text_columns, str),
                    keep_default_na=False,
                    na_values=gaps if self.missing else None,
                    low_memory=False,
                )
            except pd.errors.ParserWarning:
                raise StorageError(
                    f"rows of '{path}' have more cells than the {len(names)} columns ({dialect}); "
                    "correct it, or say by --read how it is to be read"
                ) from None
        check_last_line(path, dialect)
        return _without_blank_columns(frame)

    def write(self, table: "pd.DataFrame", path: Path) -> None:
        """Write a table to a new file."""
        from graphuq.utils.csv_files import write_csv

        write_csv(table, path)


def _without_blank_columns(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table without columns that have neither name nor cells: separators at the end."""
    blank = [
        name
        for name in frame.columns
        if name.startswith("Unnamed: ") and (frame[name].isna() | (frame[name] == "")).all()
    ]
    return frame.drop(columns=blank)


def check_last_line(path: Path, dialect: "Dialect") -> None:
    """Raise `StorageError` if the file ends within a row, which the CSV reader would fill."""
    if dialect.encoding.startswith("utf-16") or dialect.separator == " ":
        return
    with open(path, "rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - 1_000_000))
        lines = file.read().decode(errors="replace").splitlines()
    last = next((line for line in reversed(lines) if line.strip()), "")
    n_cells = last.count(dialect.separator) + 1
    if dialect.quote not in last and n_cells < len(dialect.columns):
        raise StorageError(f"the last row of '{path}' has too few fields; it may be truncated")
