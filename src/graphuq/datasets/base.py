"""What a data set is, and where its files are found."""

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import StorageError

FOLDER_VARIABLE = "GRAPHUQ_DATA"


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Features and true classes.

    Attributes
    ----------
    features : numpy.ndarray, or scipy.sparse.csr_array, shape (N, d)
    classes : numpy.ndarray, shape (N,)
        Class of each row: numbers or names.
    name, source : str
        Name; where it is from, and its licence.
    feature_names : tuple of str
    """

    features: Any
    classes: np.ndarray
    name: str
    source: str
    feature_names: tuple[str, ...] = ()

    def signs(self, positive: Any) -> Float[np.ndarray, " N"]:
        """+1 where the class is ``positive``, −1 elsewhere."""
        return np.where(self.classes == positive, 1.0, -1.0)

    def codes(self) -> Int[np.ndarray, " N"]:
        """Code of each row's class, from 0 in the order of their names."""
        return np.asarray(np.unique(self.classes, return_inverse=True)[1])

    def pair(self, first: Any, second: Any, n_each: int | None = None, seed: int = 0) -> "Dataset":
        """The rows of two classes; see `of_classes`."""
        return self.of_classes([first, second], n_each, seed)

    def of_classes(
        self, classes: Sequence[Any], n_each: int | None = None, seed: int = 0
    ) -> "Dataset":
        """The rows of some classes, at most ``n_each`` of each, chosen at random."""
        rng = np.random.default_rng(seed)
        rows = []
        for wanted in classes:
            found = np.flatnonzero(self.classes == wanted)
            if n_each is not None:
                found = rng.choice(found, size=min(n_each, len(found)), replace=False)
            rows.append(np.sort(found))
        kept = np.concatenate(rows)
        return dataclasses.replace(
            self,
            features=self.features[kept],
            classes=self.classes[kept],
            name=f"{self.name}: {' and '.join(str(name) for name in classes)}",
        )


@dataclasses.dataclass(frozen=True)
class RemoteFile:
    """One file of a data set.

    Attributes
    ----------
    path : str
        Its place in a data folder.
    sha256 : str
        Checksum of what is downloaded.
    address : str
        Where it is downloaded from.
    also_accepted : tuple of str
        Checksums of other editions that a user's own folder may hold.
    """

    path: str
    sha256: str
    address: str
    also_accepted: tuple[str, ...] = ()


def find_local(file: RemoteFile, folder: str | Path | None = None) -> Path | None:
    """Where a file is on this machine, unchecked: the data folder, the cache, or nowhere."""
    folder = folder or os.environ.get(FOLDER_VARIABLE)
    if folder and (Path(folder) / file.path).exists():
        return Path(folder) / file.path
    import pooch

    cached = Path(pooch.os_cache("graphuq")) / file.path
    return cached if cached.exists() else None


def locate(file: RemoteFile, folder: str | Path | None) -> Path:
    """Find a file in the user's data folder, else in the cache, else download it.

    Parameters
    ----------
    file : RemoteFile
    folder : path, optional
        The data folder; by default that of the environment variable ``GRAPHUQ_DATA``. A file
        that is not there is downloaded to a cache, its checksum verified.

    Raises
    ------
    StorageError
        If the file has the wrong checksum, or is nowhere and cannot be downloaded.
    """
    folder = folder or os.environ.get(FOLDER_VARIABLE)
    if folder is not None:
        local = Path(folder) / file.path
        if local.exists():
            digest = hashlib.sha256(local.read_bytes()).hexdigest()
            if digest not in (file.sha256, *file.also_accepted):
                raise StorageError(
                    f"'{local}' has the wrong checksum: it is truncated or another edition; "
                    "replace it"
                )
            return local
    import pooch

    cache = Path(pooch.os_cache("graphuq"))
    cached = cache / file.path
    try:
        found = pooch.retrieve(
            file.address,
            known_hash=f"sha256:{file.sha256}",
            fname=cached.name,
            path=cached.parent,
        )
    except Exception as error:  # network errors of many kinds
        raise StorageError(
            f"'{file.path}' was not found and could not be downloaded from {file.address} "
            f"({type(error).__name__}); put it into a folder and name that folder by folder=... "
            f"or the environment variable {FOLDER_VARIABLE}"
        ) from None
    return Path(found)
