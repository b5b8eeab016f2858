"""Results of a search on disk, from which an interrupted search continues."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from graphuq.errors import StorageError
from graphuq.utils.files import atomic_write
from graphuq.utils.gate import reading


class SearchCheckpoint:
    """Rows of results for each combination of parameters; without a path, in memory only.

    Parameters
    ----------
    path : path or None
    search : str
        Text that identifies parameters and data; results of another search are refused.

    Raises
    ------
    StorageError
        If the file belongs to another search or is damaged.
    """

    def __init__(self, path: str | Path | None, search: str) -> None:
        self.path, self.search = None if path is None else Path(path), search
        self._rows: dict[str, list[dict[str, Any]]] = {}
        if self.path is None or not self.path.exists():
            return
        with reading(self.path, "checkpoint of a search"):
            stored = json.loads(self.path.read_text(encoding="utf-8"))
            stored_search, rows = stored["search"], stored["rows"]
            if stored["checksum"] != _checksum(stored_search, rows):
                raise ValueError("it was changed since it was written")
            own = {
                key: [{k: _array(v) for k, v in row.items()} for row in found]
                for key, found in rows.items()
            }
        if stored_search != search:
            raise StorageError(
                f"'{path}' belongs to another search; remove it, or use another path"
            )
        self._rows = own

    def rows(self, plain: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Return the rows of a combination, or None if it was not tried."""
        found = self._rows.get(_key(plain))
        if found is None:
            return None
        return [plain | row for row in found]

    def add(self, plain: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        """Store the rows of a combination, and write them to disk."""
        own = [{k: v for k, v in row.items() if k not in plain} for row in rows]
        self._rows[_key(plain)] = own
        if self.path is not None:
            rows_plain = json.loads(json.dumps(self._rows, default=_plain))
            content = {"search": self.search, "rows": rows_plain}
            content["checksum"] = _checksum(self.search, rows_plain)
            with atomic_write(self.path) as temporary:
                temporary.write_text(json.dumps(content), encoding="utf-8")


def _checksum(search: str, rows: Any) -> str:
    """Return the checksum of what a file holds."""
    return hashlib.sha256(json.dumps([search, rows], sort_keys=True).encode()).hexdigest()


def _key(plain: dict[str, Any]) -> str:
    return repr(sorted((name, repr(value)) for name, value in plain.items()))


def _plain(value: object) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else repr(value)


def _array(value: object) -> Any:
    return np.array(value) if isinstance(value, list) else value
