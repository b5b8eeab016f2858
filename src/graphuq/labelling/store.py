"""File of labels: append-only lines of JSON, on the disk before a label is acknowledged."""

import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.errors import InvalidInput, StorageError, require
from graphuq.labelling.items import Items
from graphuq.labelling.records import Disagreement, Record, Standing
from graphuq.utils.extras import require_extra
from graphuq.utils.files import check_writable, sync_folder
from graphuq.utils.gate import require_file

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "graphuq labels"
VERSION = 1


class LabelStore:
    """Labels of some items in a file that several processes may write at the same time.

    A label is on the disk when `append` returns. A process that is killed while it writes leaves
    at most one incomplete last line, which was not acknowledged; the next writer removes it. The
    labels of all users are kept; `labels` gives the latest of each row.

    Parameters
    ----------
    path : path
        File of labels; it is created if it is missing.
    items : Items
        What is labelled. A file of other items is refused; items may be added at the end.

    Raises
    ------
    StorageError
        If the file cannot be read or written, is damaged, or holds labels of other items.
    """

    def __init__(self, path: str | Path, items: Items) -> None:
        self.path = Path(path)
        self._items = items
        self._records: list[Record] = []
        self._standing = Standing()
        self._read_bytes, self._read_lines = 0, 0
        self._mutex = threading.RLock()
        check_writable(self.path.parent)
        if self.path.exists():
            require_file(self.path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        try:
            self._file = os.open(self.path, flags | getattr(os, "O_CLOEXEC", 0), 0o644)
        except OSError as error:
            raise StorageError(f"cannot open '{path}' ({error.strerror or error})") from None
        try:
            with self._locked() as size:
                if size == 0:
                    header = {"format": FORMAT, "version": VERSION, **self._identity(len(items))}
                    self._write(json.dumps(header).encode() + b"\n")
                    sync_folder(self.path.parent)
                self._read()
        except BaseException:
            self.close()
            raise

    def append(
        self,
        user: str,
        labels: Mapping[int, str | None],
        *,
        probabilities: Mapping[int, float] | None = None,
        model: int | None = None,
        expected_errors: float | None = None,
        is_undo: bool = False,
    ) -> list[Record]:
        """Write labels of one user, which are on the disk when this returns.

        Parameters
        ----------
        user : str
        labels : mapping of int to str or None
            Class of each row; None withdraws the user's label.
        probabilities : mapping of int to float, optional
            Probability of the class that was shown, by row.
        model : int, optional
            Version of the model that was shown.
        expected_errors : float, optional
            Expected number of wrong labels that was shown.
        is_undo : bool, default False
            Whether the labels take back the latest act of the user.

        Raises
        ------
        InvalidInput
            If a row does not exist.
        StorageError
            If the disk does not take the labels; none of them is then in the file.
        """
        n_items = len(self._items)
        for row in labels:
            require(0 <= row < n_items, "row", f"{row}", f"use 0 to {n_items - 1}")
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        batch = os.urandom(6).hex() if len(labels) > 1 else None
        shown = probabilities or {}
        records = [
            Record(
                time=now,
                user=user,
                row=int(row),
                item=self._items.ids[row],
                label=label,
                probability=shown.get(row),
                model=model,
                expected_errors=expected_errors,
                is_undo=is_undo,
                batch=batch,
            )
            for row, label in labels.items()
        ]
        with self._locked():
            self._read()
            self._write(b"".join(record.to_line() for record in records))
            self._read()
        return records

    def undo(self, user: str) -> dict[int, str | None]:
        """Take back the latest act of a user; return the labels that hold again, by row."""
        with self._mutex:
            self.refresh()
            former = dict(self._standing.latest_act(user))
            if former:
                self.append(user, former, is_undo=True)
        return former

    def refresh(self) -> bool:
        """Read what other processes wrote; return whether there was something new."""
        with self._mutex:
            if self._size() == self._read_bytes:
                return False
            before = len(self._records)
            self._read()
            return len(self._records) > before

    def labels(self) -> dict[int, str]:
        """Return the class of each labelled row; of several users, the latest label."""
        with self._mutex:
            return self._standing.labels()

    def classes(self) -> list[str]:
        """Return all classes that were ever given, in the order of their first labels."""
        with self._mutex:
            return list(self._standing.classes)

    def disagreements(self) -> list[Disagreement]:
        """Return the rows to which users gave different classes."""
        with self._mutex:
            return self._standing.disagreements()

    @property
    def records(self) -> list[Record]:
        """All records, in the order of the file."""
        with self._mutex:
            return list(self._records)

    def to_dataframe(self) -> "pd.DataFrame":
        """Return a table with columns ``id`` and ``label``, a row for each labelled item."""
        require_extra("label")
        import pandas as pd

        labels = self.labels()
        ids = [self._items.ids[row] for row in labels]
        return pd.DataFrame({"id": ids, "label": list(labels.values())}, dtype=object)

    def to_array(self) -> np.ndarray:
        """Return the class of each item, an empty string where it has none, shape (N,)."""
        found = np.full(len(self._items), "", dtype=object)
        for row, label in self.labels().items():
            found[row] = label
        return found

    def close(self) -> None:
        """Close the file."""
        with self._mutex:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    def _size(self) -> int:
        return os.fstat(self._file).st_size

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the file for this thread of this process, without an incomplete last line."""
        with self._mutex:
            if self._file < 0:
                raise StorageError(f"'{self.path}' is closed; open it again to write labels")
            with _file_lock(self._file):
                yield self._whole_size()

    def _whole_size(self) -> int:
        """Return the size of the file after removing an incomplete last line."""
        size = self._size()
        end, tail = size, b""
        while end > 0 and b"\n" not in tail:
            begin = max(0, end - 4096)
            tail = self._bytes(begin, end) + tail
            end = begin
        whole = size - (len(tail) - 1 - tail.rfind(b"\n"))
        if whole < size:
            os.ftruncate(self._file, whole)
            os.fsync(self._file)
        return whole

    def _write(self, content: bytes) -> None:
        """Append content and wait for the disk; leave the file as it was if that fails."""
        size = self._size()
        try:
            written = os.write(self._file, content)
            if written < len(content):
                raise OSError("the disk is full")
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size)
            reason = error.strerror or error
            raise StorageError(f"cannot write '{self.path}' ({reason}); free some space") from None

    def _bytes(self, begin: int, end: int) -> bytes:
        """Return a part of the file, whose position for writing stays at the end."""
        with open(self.path, "rb") as file:
            file.seek(begin)
            return file.read(end - begin)

    def _read(self) -> None:
        """Apply the complete lines that were not read yet."""
        size = self._size()
        if size < self._read_bytes:
            raise StorageError(f"'{self.path}' became shorter; close the page and open it again")
        content = self._bytes(self._read_bytes, size)
        content = content[: content.rfind(b"\n") + 1]
        for line in content.splitlines(keepends=True):
            self._read_lines += 1
            if self._read_lines == 1:
                self._check_header(line)
            else:
                record = self._record(line)
                self._records.append(record)
                self._standing.add(record)
            self._read_bytes += len(line)

    def _record(self, line: bytes) -> Record:
        try:
            record = Record.from_json(json.loads(line))
        except (ValueError, KeyError, RecursionError) as error:
            raise StorageError(
                f"line {self._read_lines} of '{self.path}' is damaged ({error}); repair it or "
                "delete that line"
            ) from None
        n_items = len(self._items)
        if not 0 <= record.row < n_items or self._items.ids[record.row] != record.item:
            raise StorageError(
                f"line {self._read_lines} of '{self.path}' labels {record.item!r}, which is not "
                f"item {record.row}; give the items that were labelled, or another file of labels"
            )
        return record

    def _check_header(self, line: bytes) -> None:
        """Refuse a file of another kind, and a file of other items."""
        try:
            header: Any = json.loads(line)
            known = header["format"] == FORMAT and header["version"] == VERSION
            n_items, digest = int(header["items"]), header["digest"]
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            known = False
        if not known:
            raise StorageError(
                f"'{self.path}' is not a file of labels of this version; give another name"
            )
        if n_items > len(self._items) or self._identity(n_items)["digest"] != digest:
            raise StorageError(
                f"'{self.path}' has labels of other items ({n_items} of them); give the same "
                "items in the same order, or another file of labels"
            )

    def _identity(self, n_items: int) -> dict[str, Any]:
        return {"items": n_items, "digest": self._items.digest(n_items)}


def check_name(value: Any, argument: str, max_length: int = 100) -> str:
    """Return the name of a class or user without surrounding spaces.

    Raises
    ------
    InvalidInput
        If it is not text, empty, too long, or holds control characters.
    """
    remedy = f"use 1 to {max_length} printable characters"
    if not isinstance(value, str):
        raise InvalidInput(argument, f"{type(value).__name__} instead of text", remedy)
    name = value.strip()
    fits = 0 < len(name) <= max_length and name.isprintable()
    require(fits, argument, f"{name[:20]!r}", remedy)
    return name


@contextlib.contextmanager
def _file_lock(file: int) -> Iterator[None]:
    """Hold the exclusive lock of a file; the system releases it if the process dies."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_LOCK, 1)
        try:
            yield
        finally:
            os.lseek(file, 0, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
