"""What a format of tables is, and which format the suffix of a file names."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from graphuq.errors import InvalidInput, require

if TYPE_CHECKING:
    import pandas as pd


class TableFormat(ABC):
    """A format of tables that commands read, and in which predictions are written.

    A subclass registers by its definition; see ``examples/own_format.py``.

    Attributes
    ----------
    suffix : str
        End of names of files, such as ".csv".
    other_suffixes : tuple of str
        Further ends of names of files that are read in this format.
    """

    suffix: ClassVar[str]
    other_suffixes: ClassVar[tuple[str, ...]] = ()

    @property
    def decimal(self) -> str | None:
        """Decimal mark that the file showed."""
        return None

    @property
    def repeated(self) -> Sequence[str]:
        """Names of columns that occurred more than once."""
        return ()

    def for_file(
        self, path: Path, options: Mapping[str, str] | None = None, decimal: str | None = None
    ) -> "TableFormat":
        """Return the format with what a file shows of how it holds its table.

        Parameters
        ----------
        path : path
        options : dict of str to str, optional
            What the user says of it; only a file of text has a choice.
        decimal : {".", ","}, optional
            Decimal mark where a file of text does not tell.
        """
        require(not options, "--read", f"given beside '{path.name}'", "leave it out")
        return self

    def without(self, cells: Sequence[str]) -> "TableFormat":
        """Return the format that takes some texts as empty cells, if the file has no types."""
        return self

    def settings(self) -> dict[str, Any]:
        """Return what the file showed."""
        return {}

    def __str__(self) -> str:
        """Return what the file showed, in a few words."""
        return ""

    @abstractmethod
    def read(self, path: Path, text_columns: Sequence[str] = ()) -> "pd.DataFrame":
        """Return the table of a file, with one row a node.

        Parameters
        ----------
        path : path
        text_columns : sequence of str
            Columns of labels and names, which are better read as text if the file has no types.

        Raises
        ------
        StorageError
            If the file cannot be read. An error of another type is shown in one line.
        """

    @abstractmethod
    def write(self, table: "pd.DataFrame", path: Path) -> None:
        """Write a table to a new file."""


def table_formats() -> dict[str, TableFormat]:
    """Return all formats by their suffixes: those of graphuq, and imported ones."""
    found: dict[str, type[TableFormat]] = {}
    waiting: list[Any] = [TableFormat]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            if inspect.isabstract(kind):
                continue
            other = found.get(kind.suffix, kind)
            require(
                other.__qualname__ == kind.__qualname__
                and _is_built_in(other) == _is_built_in(kind),
                "suffix",
                f"{kind.suffix!r} of {kind.__name__} is that of {other.__name__}",
                "choose another one",
            )
            found[kind.suffix] = kind  # of a class that was defined again, the last one counts
    return {suffix: kind() for suffix, kind in found.items()}


def _is_built_in(kind: type[TableFormat]) -> bool:
    """Return whether a format is one of graphuq's."""
    return kind.__module__.partition(".")[0] == "graphuq"


def formats_of_reading() -> dict[str, TableFormat]:
    """Return all formats by the suffixes of files that are read; own suffixes come first."""
    known = table_formats()
    others = {suffix: one for one in known.values() for suffix in one.other_suffixes}
    return known | {suffix: one for suffix, one in others.items() if suffix not in known}


def format_of(path: str | Path, argument: str = "path") -> TableFormat:
    """Return the format that the suffix of a file names.

    Raises
    ------
    InvalidInput
        If it names none.
    """
    known = table_formats()
    suffix = Path(path).suffix.lower()
    if suffix not in known:
        raise InvalidInput(argument, f"'{path}'", f"use a name that ends in {_words(known)}")
    return known[suffix]


def _words(known: dict[str, TableFormat]) -> str:
    """Return suffixes with "or" before the last."""
    *others, last = known
    return f"{', '.join(others)} or {last}" if others else last
