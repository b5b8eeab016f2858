"""The index of a table of pandas in a Parquet file."""

from typing import Any


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
