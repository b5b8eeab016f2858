"""The class of data sets, and the search for their files."""

import dataclasses
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from graphuq.errors import StorageError, require
from graphuq.utils.checks import generator, require_integer
from graphuq.utils.extras import require_extra

FOLDER_VARIABLE = "GRAPHUQ_DATA"
MAX_NAMES_SHOWN = 6  # class names in the representation and in messages; beyond, their number

ClassName: TypeAlias = int | str
KEYS = ("data", "target", "feature_names", "target_names", "DESCR", "name", "source")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Dataset(Mapping[str, Any]):
    """Immutable data set with the attributes and keys of a `sklearn.utils.Bunch`.

    ``dataset.data`` and ``dataset["data"]`` are the same array, and so on for all keys: ``data``,
    ``target``, ``feature_names``, ``target_names``, ``DESCR``, ``name`` and ``source``.

    Attributes
    ----------
    features : numpy.ndarray, or scipy.sparse.csr_array, shape (N, d)
        Also called ``data``.
    classes : numpy.ndarray, shape (N,)
        Class of each row: integers or names.
    name, source : str
        Name; origin and licence.
    feature_names : tuple of str
        Names of the columns, or an empty tuple.
    description : str
        What the rows, features and classes are.

    Examples
    --------
    >>> import graphuq as gq
    >>> digits = gq.datasets.load_digits((4, 9))
    >>> digits
    Dataset('digits (4, 9)', shape (361, 64), classes 4, 9)
    >>> digits.target_names[digits.target[:5]].tolist()
    [4, 9, 4, 9, 4]
    """

    features: np.ndarray | sparse.csr_array
    classes: np.ndarray
    name: str
    source: str
    feature_names: tuple[str, ...] = ()
    description: str = ""

    __eq__ = object.__eq__  # a data set equals itself only, as arrays have no single answer
    __hash__ = object.__hash__

    def __getitem__(self, key: str) -> Any:
        if key not in KEYS:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(KEYS)

    def __len__(self) -> int:
        return len(KEYS)

    def __repr__(self) -> str:
        shape = self.features.shape
        return f"{type(self).__name__}({self.name!r}, shape {shape}, {self._class_list()})"

    @property
    def data(self) -> np.ndarray | sparse.csr_array:
        """Features, shape (N, d)."""
        return self.features

    @property
    def target(self) -> Int[np.ndarray, " N"]:
        """Code of each row's class: ``target_names[target]`` equals ``classes``."""
        return self.codes()

    @property
    def target_names(self) -> np.ndarray:
        """Sorted names of the classes, shape (K,)."""
        return np.unique(self.classes)

    @property
    def DESCR(self) -> str:
        """Name, size, description and source as text."""
        lines = [f"{self.name}: {self.features.shape[0]} rows, {self.features.shape[1]} features"]
        lines += [self.description] if self.description else []
        return "\n\n".join([*lines, f"Source: {self.source}"])

    def signs(self, positive: ClassName) -> Float[np.ndarray, " N"]:
        """Return +1 where the class is ``positive``, −1 elsewhere.

        Raises
        ------
        InvalidInput
            If no row has the class.
        """
        self._check_class("positive", positive)
        return np.where(self.classes == positive, 1.0, -1.0)

    def codes(self) -> Int[np.ndarray, " N"]:
        """Return the code of each row's class, from 0 in the order of ``target_names``."""
        return np.asarray(np.unique(self.classes, return_inverse=True)[1])

    def pair(
        self,
        first: ClassName,
        second: ClassName,
        n_each: int | None = None,
        rng: int | np.random.Generator = 0,
    ) -> Self:
        """Select the rows of two classes; see `of_classes`."""
        return self.of_classes([first, second], n_each, rng)

    def of_classes(
        self,
        classes: Sequence[ClassName],
        n_each: int | None = None,
        rng: int | np.random.Generator = 0,
    ) -> Self:
        """Select the rows of some classes, at most ``n_each`` of each, chosen at random.

        Raises
        ------
        InvalidInput
            If a class has no row.
        """
        rng = generator(rng)
        if n_each is not None:
            require_integer("n_each", n_each, 1)
        rows = []
        for name in classes:
            self._check_class("classes", name)
            rows.append(choose_rows(self.classes == name, n_each, rng))
        kept = np.concatenate(rows)
        name = f"{self.name}: {' and '.join(str(name) for name in classes)}"
        return dataclasses.replace(self._of_rows(kept), name=name)

    def _of_rows(self, rows: Int[np.ndarray, " n"]) -> Self:
        """Return some rows, with all that is known of each."""
        return dataclasses.replace(self, features=self.features[rows], classes=self.classes[rows])

    def _class_list(self) -> str:
        names = self.target_names
        if len(names) > MAX_NAMES_SHOWN:
            return f"{len(names)} classes"
        return f"classes {', '.join(str(name) for name in names)}"

    def _check_class(self, argument: str, name: ClassName) -> None:
        known = self.target_names.tolist()
        require(name in known, argument, f"no row has the class {name!r}", f"use one of {known}")


def choose_rows(
    mask: np.ndarray, n_rows: int | None, rng: np.random.Generator
) -> Int[np.ndarray, " n"]:
    """Return the true indices of a mask, or ``n_rows`` of them at random, in ascending order."""
    rows = np.flatnonzero(mask)
    if n_rows is not None:
        rows = rng.choice(rows, size=min(n_rows, len(rows)), replace=False)
    return np.sort(rows)


@dataclasses.dataclass(frozen=True)
class RemoteFile:
    """One file of a data set that is downloaded or found in a folder.

    Attributes
    ----------
    path : str
        Path of the file relative to a data folder.
    sha256 : str
        Checksum of the downloaded file.
    address : str
        URL of the download.
    also_accepted : tuple of str
        Checksums of other editions that a user's own folder may hold.
    """

    path: str
    sha256: str
    address: str
    also_accepted: tuple[str, ...] = ()


def find_local(file: RemoteFile, folder: str | Path | None = None) -> Path | None:
    """Return the path of a file in the data folder or the cache, or None; no checksum is tested."""
    folder = folder or os.environ.get(FOLDER_VARIABLE)
    if folder and (Path(folder) / file.path).exists():
        return Path(folder) / file.path
    require_extra("datasets")
    import pooch

    cached = Path(pooch.os_cache("graphuq")) / file.path
    return cached if cached.exists() else None


def locate(file: RemoteFile, folder: str | Path | None) -> Path:
    """Return the path of a file in the user's data folder or the cache, or download the file.

    Parameters
    ----------
    file : RemoteFile
    folder : path, optional
        Data folder, by default the value of the environment variable ``GRAPHUQ_DATA``. If the
        file is not in it, it is downloaded to a cache and its checksum is verified.

    Raises
    ------
    StorageError
        If the file has the wrong checksum, or is not found and cannot be downloaded.
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
    require_extra("datasets")
    import pooch

    cache = Path(pooch.os_cache("graphuq"))
    cached = cache / file.path
    try:
        downloaded = pooch.retrieve(
            file.address,
            known_hash=f"sha256:{file.sha256}",
            fname=cached.name,
            path=cached.parent,
        )
    except Exception as error:  # pooch raises many kinds of network errors
        raise StorageError(
            f"'{file.path}' was not found and could not be downloaded from {file.address} "
            f"({type(error).__name__}); put it into a folder and pass that folder as folder=... "
            f"or in the environment variable {FOLDER_VARIABLE}"
        ) from None
    return Path(downloaded)
