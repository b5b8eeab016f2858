"""Columns of a Parquet file: the index of a table of pandas, and names that repeat."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphuq.errors import require


def index_columns(schema: Any) -> list[str]:
    """Return the columns that pandas wrote as the index of a table."""
    found = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in found if isinstance(name, str) and name in schema.names]


def index_range(schema: Any) -> range | None:
    """Return an index that is a range but does not count from 0, of which there is no column."""
    for found in (schema.pandas_metadata or {}).get("index_columns", []):
        if isinstance(found, dict) and found.get("kind") == "range":
            own = range(found["start"], found["stop"], found["step"])
            return None if (own.start, own.step) == (0, 1) else own
    return None


def check_repeated(names: Sequence[str], path: Path) -> None:
    """Require that columns have different names."""
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    require(
        repeated is None,
        "file",
        f"'{path.name}' has two columns named {repeated!r}",
        "give each column a name of its own",
    )
