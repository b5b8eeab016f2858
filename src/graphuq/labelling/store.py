"""File of labels: append-only lines of JSON, on the disk before a label is acknowledged."""

import contextlib
import hashlib
import json
import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from graphuq.errors import StorageError, require
from graphuq.labelling.items import Items
from graphuq.labelling.records import LABEL, Record
from graphuq.labelling.shared_file import SharedFile
from graphuq.labelling.standing import Disagreement, Standing
from graphuq.utils.files import atomic_write

FORMAT = "graphuq labels"
VERSION = 1


class LabelStore:
    """Labels of some items in a file that several processes may write at the same time.

    A label is on the disk when `append` returns. A process that is killed while it writes leaves
    at most one incomplete last line, which was not acknowledged; the next writer removes it. The
    labels of all users are kept; `labels` gives the latest of each row.

    Others may change or replace the file while it is open. What is in it then counts, and records
    that are missing there are written again.

    Parameters
    ----------
    path : path
        File of labels; it is created if it is missing.
    items : Items
        What is labelled. A file of other items is refused; items may be added at the end.
    tags : sequence of str, optional
        Labels are tags, several an item, and these are offered from the beginning. A file of
        classes is then refused, and without it a file of tags.

    Attributes
    ----------
    n_restored : int
        Number of records that were written again.
    tags : list of str or None
        Tags that were offered when the file was begun.

    Raises
    ------
    StorageError
        If the file cannot be read or written, is damaged, or holds labels of other items.
    """

    def __init__(self, path: str | Path, items: Items, tags: Sequence[str] | None = None) -> None:
        self.path = Path(path)
        self._items = items
        self.tags = None if tags is None else list(tags)
        self._log, self.n_restored = _Log(), 0
        self._seen: tuple[int, ...] = ()  # state of the file that was read
        self._mutex = threading.RLock()
        self._file = SharedFile(self.path)
        try:
            with self._current():
                pass
        except BaseException:
            self._file.close()
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
        kind: str = LABEL,
        texts: Mapping[int, str] | None = None,
        batch: str | None = None,
        drawn_from: int | None = None,
    ) -> list[Record]:
        """Write labels or remarks of one user, which are on the disk when this returns.

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
        kind : str, default "label"
            What is written; see `Record`.
        texts : mapping of int to str, optional
            Text of the record of each row.
        batch : str, optional
            Common name of the records; by default a new one for several labels.
        drawn_from : int, optional
            Number of items from which those of an audit were drawn.

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
        if batch is None and len(labels) > 1:
            batch = os.urandom(6).hex()
        shown, said = probabilities or {}, texts or {}
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
                kind=kind,
                text=said.get(row, ""),
                drawn_from=drawn_from,
            )
            for row, label in labels.items()
        ]
        with self._current():
            self._add(records)
        return records

    def undo(self, user: str) -> dict[int, str | None]:
        """Take back the latest act of a user; return the labels that hold again, by row."""
        with self._mutex:
            self.refresh()
            act = self._log.standing.latest_act(user)
            if act is None:
                return {}
            former = dict(act.labels)
            self.append(user, former, is_undo=True, kind=act.kind, batch=act.batch)
        return former

    def refresh(self) -> bool:
        """Read what others wrote; return whether there was something new."""
        with self._mutex:
            if self._file.is_closed or self._file.state == self._seen:
                return False
            before, n_before = self._log, len(self._log.records)
            with self._current():
                return self._log is not before or len(self._log.records) > n_before

    def labels(self) -> dict[int, str]:
        """Return the class of each labelled row; of several users, the latest label."""
        with self._mutex:
            return self._log.standing.labels()

    @property
    def standing(self) -> Standing:
        """What holds after all records, which changes with the next one."""
        return self._log.standing

    def readings(self) -> dict[int, dict[str, str]]:
        """Return the class that each user gave to each row, without decisions."""
        with self._mutex:
            return self._log.standing.readings()

    def classes(self) -> list[str]:
        """Return all classes that were ever given, in the order of their first labels."""
        with self._mutex:
            return list(self._log.standing.classes)

    def disagreements(self) -> list[Disagreement]:
        """Return the rows to which users gave different classes."""
        with self._mutex:
            return self._log.standing.disagreements()

    @property
    def records(self) -> list[Record]:
        """All records, in the order of the file."""
        with self._mutex:
            return list(self._log.records)

    def to_array(self) -> np.ndarray:
        """Return the class of each item, an empty string where it has none, shape (N,)."""
        found = np.full(len(self._items), "", dtype=object)
        for row, label in self.labels().items():
            found[row] = label
        return found

    def close(self) -> None:
        """Close the file.

        Raises
        ------
        StorageError
            If the file was replaced by one that cannot be continued. All labels are then in a
            new file beside it.
        """
        with self._mutex:
            try:
                self.refresh()
            except StorageError as error:
                self._rescue(error)
            finally:
                self._file.close()

    def _rescue(self, error: StorageError) -> None:
        """Write all records to a new file, unless they are in the file that cannot be read on."""
        with contextlib.suppress(OSError):
            if self._log.is_begin_of(self._file.read()):
                return
        path = self.path.with_name(f"{self.path.name}.rescued-{os.urandom(4).hex()}")
        with atomic_write(path) as temporary:
            temporary.write_bytes(self._header() + self._lines(self._log.records))
        raise StorageError(f"{error}. All labels of this page are in '{path}'") from None

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        """Hold the file, of which everything was read."""
        with self._mutex, self._file.locked():
            if self._file.held_state != self._seen:
                self._catch_up()
            yield

    def _catch_up(self) -> None:
        """Read what others wrote, and write again what a file lacks that was changed."""
        content = self._whole()
        if self._log.is_begin_of(content):
            self._read(self._log, content[self._log.n_bytes :])
            return
        log = _Log()
        self._read(log, content)
        missing = log.missing(self._log.records)
        self._log = log
        self.n_restored += len(missing)
        self._add(missing)

    def _whole(self) -> bytes:
        """Return the content of the file: a header, and lines that are whole."""
        content = self._file.read()
        n_whole = content.rfind(b"\n") + 1
        if n_whole < len(content):
            if n_whole:
                self._check_header(content[: content.find(b"\n")])
            if _is_whole(content[n_whole:]):  # an editor took away the end of the line
                self._file.write(b"\n")
            elif n_whole or self._header().startswith(content) or not content.strip(b"\0"):
                self._file.cut(n_whole)
            content = self._file.read()
        if not content.strip():
            self._file.write(self._header())
            content = self._file.read()
        return content

    def _add(self, records: Sequence[Record]) -> None:
        """Append records to the file and to the log."""
        lines = self._lines(records)
        self._file.write(lines)
        self._read(self._log, lines)

    def _read(self, log: "_Log", content: bytes) -> None:
        """Apply lines that follow those of the log."""
        for line in content.splitlines(keepends=True):
            if log.n_lines == 0:
                self._check_header(line)
            elif line.strip():
                log.add(self._record(line, log.n_lines + 1))
            log.pass_by(line)
        self._seen = self._file.held_state

    def _record(self, line: bytes, number: int) -> Record:
        try:
            record = Record.from_json(json.loads(line))
        except (ValueError, KeyError, RecursionError) as error:
            raise StorageError(
                f"line {number} of '{self.path}' is damaged ({error}); repair it or delete that "
                "line"
            ) from None
        n_items = len(self._items)
        if not 0 <= record.row < n_items or self._items.ids[record.row] != record.item:
            raise StorageError(
                f"line {number} of '{self.path}' labels {record.item!r}, which is not "
                f"item {record.row}; give the items that were labelled, or another file of labels"
            )
        return record

    def _header(self) -> bytes:
        header = {"format": FORMAT, "version": VERSION, **self._identity(len(self._items))}
        if self.tags is not None:
            header["tags"] = self.tags
        return json.dumps(header).encode() + b"\n"

    def _lines(self, records: Sequence[Record]) -> bytes:
        return b"".join(record.to_line(self.tags is not None) for record in records)

    def _check_header(self, line: bytes) -> None:
        """Refuse a file of another kind, and a file of other items."""
        try:
            header: Any = json.loads(line)
            known = header["format"] == FORMAT and header["version"] == VERSION
            n_items, digest = int(header["items"]), header["digest"]
            tags = header.get("tags")
            known &= tags is None or all(isinstance(name, str) for name in [*tags])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            known = False
        if not known:
            raise StorageError(
                f"'{self.path}' is not a file of labels of this version; give another name"
            )
        if (tags is None) != (self.tags is None):
            kinds = ("classes, one", "tags, several")
            raise StorageError(
                f"'{self.path}' has {kinds[tags is not None]} an item, and not "
                f"{kinds[tags is None]}; give another file of labels, or label as before"
            )
        self.tags = tags
        if n_items > len(self._items) or self._identity(n_items)["digest"] != digest:
            raise StorageError(
                f"'{self.path}' has labels of other items ({n_items} of them); give the same "
                "items in the same order, or another file of labels"
            )

    def _identity(self, n_items: int) -> dict[str, Any]:
        return {"items": n_items, "digest": self._items.digest(n_items)}


class _Log:
    """The lines of the file that were read, and what follows from them."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.standing = Standing()
        self.n_bytes, self.n_lines = 0, 0
        self._digest = hashlib.blake2b()

    def add(self, record: Record) -> None:
        """Apply the next record."""
        self.records.append(record)
        self.standing.add(record)

    def pass_by(self, line: bytes) -> None:
        """Count a line as read."""
        self.n_bytes += len(line)
        self.n_lines += 1
        self._digest.update(line)

    def is_begin_of(self, content: bytes) -> bool:
        """Return whether a file begins with the lines that were read."""
        begin = hashlib.blake2b(content[: self.n_bytes])
        return len(content) >= self.n_bytes and begin.digest() == self._digest.digest()

    def missing(self, records: Sequence[Record]) -> list[Record]:
        """Return those records that are not here; one whose label was changed is here."""
        here, found = Counter(record.act for record in self.records), []
        for record in records:
            here[record.act] -= 1
            if here[record.act] < 0:
                found.append(record)
        return found


def _is_whole(line: bytes) -> bool:
    """Return whether a line is all of a record or header."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
