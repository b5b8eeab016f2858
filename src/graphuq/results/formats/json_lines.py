"""Files of JSON lines: each line is an object, whose names are the columns."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from graphuq.errors import StorageError
from graphuq.results.formats.base import TableFormat
from graphuq.utils.extras import require_extra
from graphuq.utils.gate import reading

if TYPE_CHECKING:
    import pandas as pd


class JsonLines(TableFormat):
    """JSON lines: an object on each line. A list or object inside it is read as its JSON text."""

    suffix: ClassVar[str] = ".jsonl"
    other_suffixes: ClassVar[tuple[str, ...]] = (".ndjson",)

    def read(self, path: Path, text_columns: Sequence[str] = ()) -> "pd.DataFrame":
        """Return all names that occur as columns, missing where a line lacks one."""
        require_extra("tables")
        import pandas as pd

        objects = read_objects(path)
        names = list(dict.fromkeys(name for found in objects for name in found))
        values = {name: [_flat(found.get(name)) for found in objects] for name in names}
        return pd.DataFrame(values)

    def write(self, table: "pd.DataFrame", path: Path) -> None:
        """Write a table to a new file; missing values are null."""
        write_objects((dict(row) for row in _rows_of(table)), path)


def read_objects(path: Path) -> list[dict[str, Any]]:
    """Return the objects of the lines of a file; blank lines are left out.

    Raises
    ------
    StorageError
        If the file cannot be read, a line is no object, or there is none.
    """
    with reading(path, "JSONL file"):
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise StorageError(
                f"line {number} of '{path}' is no JSON ({error}); repair it, or give a CSV file"
            ) from None
        if not isinstance(value, dict):
            raise StorageError(
                f"line {number} of '{path}' is no object; write each row as {{name: value, …}}"
            )
        found.append(value)
    if not found:
        raise StorageError(f"'{path}' has no line; give a file with one object a line")
    return found


def write_objects(objects: Iterator[dict[str, Any]], path: Path) -> None:
    """Write one object a line to a new file."""
    with path.open("w", encoding="utf-8", errors="surrogateescape") as file:
        for found in objects:
            file.write(json.dumps(found, ensure_ascii=False, allow_nan=False) + "\n")


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _rows_of(table: "pd.DataFrame") -> Iterator[dict[str, Any]]:
    """Yield rows as values for JSON."""
    names = [str(name) for name in table.columns]
    columns = [[plain(value) for value in table[name].tolist()] for name in table.columns]
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def plain(value: Any) -> Any:
    """Return a cell of a table as JSON holds it: a number, a text, true, false or null."""
    import pandas as pd

    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, float):
        return value if value - value == 0 else None  # NaN and infinity
    return value if isinstance(value, bool | int | str) else str(value)
