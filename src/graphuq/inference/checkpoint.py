"""The checkpoint file, from which an interrupted run resumes to the same result."""

import hashlib
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from graphuq.errors import InvalidInput, StorageError
from graphuq.utils.files import atomic_write

SECONDS = 10.0  # between two writes
FORMAT = 1  # number of the file format; files of another one are refused


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
        digest = hashlib.sha256(repr((*settings, str(jax.tree.structure(target)))).encode())
        for leaf in jax.tree.leaves(target):
            values = np.asarray(leaf)
            digest.update(repr(leaf).encode() if values.dtype == object else values.tobytes())
        self._path, self._fingerprint = path, digest.hexdigest()
        self._saved = time.perf_counter()

    @property
    def due(self) -> bool:
        """Whether the last write was more than 10 seconds ago."""
        return self._path is not None and time.perf_counter() - self._saved > SECONDS

    def save(self, arrays: Mapping[str, Any]) -> None:
        """Write the arrays of the run, completely or not at all."""
        if self._path is None:
            return
        with atomic_write(self._path) as temporary, open(temporary, "wb") as file:
            np.savez(file, format=FORMAT, fingerprint=self._fingerprint, **arrays)
        self._saved = time.perf_counter()

    def load(self) -> dict[str, np.ndarray]:
        """Return the arrays that were written, or an empty dictionary.

        Raises
        ------
        InvalidInput
            If the file belongs to another run.
        StorageError
            If the file is corrupt.
        """
        if self._path is None or not Path(self._path).exists():
            return {}
        try:
            with open(self._path, "rb") as handle, np.load(handle, allow_pickle=False) as file:
                ours = int(file["format"]), str(file["fingerprint"])
                if ours != (FORMAT, self._fingerprint):
                    raise InvalidInput(
                        "checkpoint",
                        f"'{self._path}' belongs to another run (other data, settings or version)",
                        "delete it, or name another file",
                    )
                return {name: file[name] for name in file if name not in ("format", "fingerprint")}
        except InvalidInput:
            raise
        except (OSError, KeyError, EOFError, ValueError, zipfile.BadZipFile) as error:
            raise StorageError(f"'{self._path}' is not a checkpoint ({error}); delete it") from None
