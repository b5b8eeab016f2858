"""The checkpoint file, from which an interrupted run resumes to the same result."""

import hashlib
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphuq.errors import InvalidInput, StorageError
from graphuq.utils.files import atomic_write
from graphuq.utils.gate import read_npz
from graphuq.utils.trees import form_of, leaves_of

SECONDS = 10.0  # between two writes
FORMAT = 2  # number of the file format; files of another one are refused


class Checkpoint:
    """A file of named arrays that belongs to one run.

    Parameters
    ----------
    path : path or None
        File. With None nothing is written and nothing is read.
    target, settings
        The target's arrays and the text of the settings are hashed to identify the run.
    """

    def __init__(self, path: str | Path | None, target: Any, *settings: Any) -> None:
        self._path = path
        self._fingerprint = "" if path is None else _fingerprint(target, settings)
        self._saved = time.perf_counter()

    @property
    def due(self) -> bool:
        """Whether the last write was more than 10 seconds ago."""
        return self._path is not None and time.perf_counter() - self._saved > SECONDS

    def save(self, arrays: Mapping[str, Any]) -> None:
        """Write the arrays of the run, completely or not at all."""
        if self._path is None:
            return
        plain: dict[str, Any] = {name: np.asarray(values) for name, values in arrays.items()}
        about: dict[str, Any] = {
            "format": FORMAT,
            "fingerprint": self._fingerprint,
            "checksum": checksum(plain),
        }
        with atomic_write(self._path) as temporary, open(temporary, "wb") as file:
            np.savez(file, **about, **plain)
        self._saved = time.perf_counter()

    def load(self) -> dict[str, np.ndarray]:
        """Return the arrays that were written, or an empty dictionary.

        Raises
        ------
        InvalidInput
            If the file belongs to another run.
        StorageError
            If the file is damaged, or differs from what was written.
        """
        if self._path is None or not Path(self._path).exists():
            return {}
        arrays = read_npz(self._path, "checkpoint")
        about = {name: arrays.pop(name, None) for name in ("format", "fingerprint", "checksum")}
        if any(values is None or values.ndim for values in about.values()):
            raise StorageError(f"'{self._path}' is not a checkpoint; delete it")
        if (str(about["format"]), str(about["fingerprint"])) != (str(FORMAT), self._fingerprint):
            raise InvalidInput(
                "checkpoint",
                f"'{self._path}' belongs to another run (other data, settings or version)",
                "delete it, or name another file",
            )
        if str(about["checksum"]) != checksum(arrays):
            raise StorageError(f"'{self._path}' was changed since it was written; delete it")
        return arrays


def checkpoint_of_part(path: str | Path, number: int) -> Path:
    """Return the file of one of several runs, such as run.3.npz for part 3 of run.npz."""
    file = Path(path)
    return file.with_name(f"{file.stem}.{number}{file.suffix}")


def delete_checkpoints(*paths: str | Path) -> None:
    """Delete checkpoints and those of their parts, where they exist."""
    for file in map(Path, paths):
        name = re.compile(rf"{re.escape(file.stem)}(\.\d+)?{re.escape(file.suffix)}")
        for other in file.parent.glob(f"*{file.suffix}"):
            if name.fullmatch(other.name):
                other.unlink(missing_ok=True)


def checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 checksum of named arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        values = arrays[name]
        digest.update(repr((name, values.dtype.str, values.shape)).encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def _fingerprint(target: Any, settings: tuple[Any, ...]) -> str:
    """Return a hash of the target's arrays and the text of the settings."""
    digest = hashlib.sha256(repr((*settings, form_of(target))).encode())
    for leaf in leaves_of(target):
        values = np.asarray(leaf)
        digest.update(repr(leaf).encode() if values.dtype == object else values.tobytes())
    return digest.hexdigest()
