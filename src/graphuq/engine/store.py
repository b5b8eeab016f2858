"""Folder of stages: each is written whole or not at all, under a name that its inputs determine."""

import dataclasses
import hashlib
import json
import os
import re
import shutil
import struct
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from graphuq.errors import StorageError
from graphuq.utils.files import atomic_write

FORMAT = 4  # of the files; another number makes all stages anew
DONE = "done.json"
TEMPORARY = "temporary"  # in that file: arrays that no later stage needs
SCRATCH = "scratch"  # how names of arrays begin that nobody needs after a crash
HEADER = re.compile(
    r"\{'descr': '([<>|=]?[biuf]\d+)', 'fortran_order': False, 'shape': \(([\d, ]*)\), \}\s*"
)
"""Header of an NPY file of numbers; never one of objects, which a file would hold as pointers."""

_parsing = threading.Lock()


@dataclasses.dataclass(frozen=True)
class Stage:
    """One stage of a fit: a folder whose name has the hash of its settings and inputs.

    A task writes each of its files whole. The stage is complete when `finish` has written its
    record, and a task whose file exists need not run again.
    """

    folder: str

    @staticmethod
    def of(
        store: str | Path, name: str, settings: Mapping[str, Any], inputs: Sequence["Stage"] = ()
    ) -> "Stage":
        """Return the stage of these settings and inputs, complete or not."""
        text = json.dumps([FORMAT, settings, [stage.name for stage in inputs]], sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return Stage(str(Path(store) / f"{name}-{digest}"))

    @property
    def name(self) -> str:
        """Name with the hash."""
        return Path(self.folder).name

    def path(self, name: str, part: int | None = None, suffix: str = ".npy") -> Path:
        """Return the path of a file, or of a part of it."""
        return Path(self.folder) / (name + ("" if part is None else f"-{part:05d}") + suffix)

    @property
    def is_done(self) -> bool:
        """Whether the stage is complete."""
        return self.path(DONE, suffix="").is_file()

    @property
    def record(self) -> dict[str, Any]:
        """What `finish` wrote.

        Raises
        ------
        StorageError
            If the record cannot be read.
        """
        return {key: value for key, value in self._contents().items() if key != TEMPORARY}

    def _contents(self) -> dict[str, Any]:
        path = self.path(DONE, suffix="")
        try:
            contents: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if not all(map(str.isidentifier, contents.get(TEMPORARY, []))):
                raise ValueError("a name of no array")
        except (OSError, ValueError, AttributeError, TypeError, RecursionError) as error:
            raise StorageError(f"cannot read '{path}' ({error}); remove its folder") from None
        return contents

    def finish(self, record: Mapping[str, Any], temporary: Sequence[str] = ()) -> None:
        """Declare the stage complete, and remove the arrays that no later stage needs."""
        contents = {**record, TEMPORARY: list(temporary)}
        with atomic_write(self.path(DONE, suffix="")) as path:
            path.write_text(json.dumps(contents, indent=1), encoding="utf-8")
        self.remove(*temporary)

    def clear(self) -> None:
        """Remove from a complete stage what a run left that was killed while it removed it."""
        self.remove(*self._contents().get(TEMPORARY, ()))

    def has(self, name: str, part: int | None = None) -> bool:
        """Return whether an array has been written."""
        return self.path(name, part).is_file()

    def save(self, name: str, part: int | None, array: np.ndarray) -> None:
        """Write an array whole and wait until it is on the disk."""
        with atomic_write(self.path(name, part)) as temporary, open(temporary, "wb") as file:
            np.save(file, array)

    def save_scratch(self, name: str, part: int, array: np.ndarray) -> None:
        """Write an array whole that nobody needs after a crash: it may never reach the disk."""
        path = self.path(name, part)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{SCRATCH}-")
            with open(handle, "wb") as file:
                np.save(file, array)
            os.replace(temporary, path)
        except OSError as error:
            raise StorageError(f"cannot write '{path}' ({error.strerror or error})") from error

    def load(self, name: str, part: int | None = None) -> np.ndarray:
        """Return an array, mapped from its file."""
        return load_mapped(self.path(name, part))

    def parts(self, name: str, starts: Sequence[int]) -> "RowParts":
        """Return the parts of an array as one."""
        paths = [str(self.path(name, part)) for part in range(len(starts) - 1)]
        return RowParts(paths, np.asarray(starts))

    def remove(self, *names: str) -> None:
        """Remove all parts of arrays, and what dead runs left of writes to them."""
        for name in names:
            for pattern in (f"{name}-*.npy", f".{name}-*"):
                for path in Path(self.folder).glob(pattern):
                    path.unlink(missing_ok=True)

    def remove_all(self) -> None:
        """Remove the stage; it counts as incomplete from the first moment on."""
        self.path(DONE, suffix="").unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


class RowParts:
    """Array whose rows are in one file for each part.

    Parameters
    ----------
    paths : sequence of str
        Files of the parts.
    starts : numpy.ndarray of int, shape (P + 1,)
        Row with which each part begins, and the number of rows.
    """

    def __init__(self, paths: Sequence[str], starts: Int[np.ndarray, " P"]) -> None:
        self.paths, self.starts = list(paths), np.asarray(starts, dtype=np.int64)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def part(self, part: int) -> np.ndarray:
        """Return the rows of a part."""
        return load_mapped(self.paths[part])

    def take(self, rows: Int[np.ndarray, " R"]) -> np.ndarray:
        """Return rows in the order in which they are asked for."""
        owner = np.searchsorted(self.starts, rows, side="right") - 1
        found = None
        for part in np.unique(owner):
            at = owner == part
            values = self.part(int(part))[rows[at] - self.starts[part]]
            if found is None:
                found = np.empty((len(rows), *values.shape[1:]), values.dtype)
            found[at] = values
        return self.part(0)[:0].copy() if found is None else found

    def range(self, begin: int, end: int) -> np.ndarray:
        """Return consecutive rows; they are not copied if they lie in one part."""
        first, last = np.searchsorted(self.starts, [begin, max(begin, end - 1)], side="right") - 1
        pieces = [
            self.part(part)[
                max(begin - self.starts[part], 0) : min(end, self.starts[part + 1])
                - self.starts[part]
            ]
            for part in range(first, last + 1)
        ]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def load_mapped(path: str | Path) -> np.ndarray:
    """Return an array, mapped from an NPY file.

    NumPy parses the header by Python's parser, which fails at times in several threads (seen with
    Python 3.11). So the headers that `numpy.save` writes are read here.

    Raises
    ------
    StorageError
        If the file is missing or damaged.
    """
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            size, form = (2, "<H") if version == (1, 0) else (4, "<I")
            (length,) = struct.unpack(form, file.read(size))
            found = HEADER.fullmatch(file.read(length).decode("latin1"))
            offset = file.tell()
        if found is None:
            with _parsing:
                return np.load(path, mmap_mode="r").view(np.ndarray)
        shape = tuple(int(n) for n in found[2].split(",") if n.strip())
        mapped = np.memmap(path, np.dtype(found[1]), "r", offset, shape)
    except (OSError, ValueError, TypeError, AttributeError, struct.error) as error:
        raise StorageError(
            f"cannot read '{path}' ({error}); remove the folder of its stage and fit again"
        ) from None
    return mapped.view(np.ndarray)
