"""The gate for files from outside, which are checked before compiled code reads them.

Readers of other packages raise errors of many types on a damaged file, and some read or write
outside of an array when its parts contradict each other. Every file passes here instead.
"""

import contextlib
import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from graphuq.errors import GraphuqError, InvalidInput, StorageError, shortened

READ_SECONDS, READ_RATE = 20.0, 1e6  # of another process that reads a file; bytes a second
MAX_REASON = 120  # characters quoted of the error of another package
COMPRESSED = ("csr", "csc", "bsr")
SPARSE_FORMATS = ("csr", "csc", "coo", "bsr", "dia")  # that `scipy.sparse.save_npz` writes
NPY_VERSIONS = {(1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0}  # fmt: skip

READ_HDF5 = """
import contextlib, signal, sys, h5py

def read(name, item):
    for key in item.attrs:
        with contextlib.suppress(Exception):
            item.attrs[key]
    if isinstance(item, h5py.Dataset) and item.size and item.nbytes < int(sys.argv[2]):
        length = item.shape[0] if item.shape else 1
        step = max(1, (1 << 24) * length // item.nbytes)
        for first in range(0, length, step):
            with contextlib.suppress(Exception):
                item[first : first + step] if item.shape else item[()]

def suppressed(name, item):
    with contextlib.suppress(Exception):
        read(name, item)

if hasattr(signal, "alarm"):  # ends this process, too, if the one that waits for it is gone
    signal.alarm(int(sys.argv[3]))
with h5py.File(sys.argv[1]) as file:
    suppressed("/", file)
    file.visititems(suppressed)
"""


def require_file(path: str | Path) -> Path:
    """Return the path of a regular file; a folder, a pipe or a device is refused.

    Raises
    ------
    StorageError
        If there is no such file, or it cannot be read.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # a name that is too long, or holds a zero byte
        raise StorageError(f"there is no file {_shown(path)}") from None
    if not stat.S_ISREG(mode):
        raise StorageError(f"{_shown(path)} is not a file; give a file")
    return Path(path)


@contextlib.contextmanager
def reading(path: str | Path, kind: str) -> Iterator[None]:
    """Turn every error of a reader into a `StorageError` of one line.

    Parameters
    ----------
    path : path
        File that the block reads.
    kind : str
        What it should be, such as "parquet file".

    Raises
    ------
    StorageError
        In place of any exception of the block that is not one of graphuq.
    """
    try:
        yield
    except GraphuqError:
        raise
    except MemoryError:
        raise StorageError(
            f"{_shown(path)} does not fit into memory; give a smaller file, or free some memory"
        ) from None
    except Exception as error:  # other packages raise errors of any type on a damaged file
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        reason = shortened(" ".join(str(reason).split()), MAX_REASON)
        raise StorageError(
            f"{_shown(path)} is not a readable {kind} ({reason}); it may be empty, truncated or "
            "of another type"
        ) from None


def require_sound_hdf5(path: str | Path) -> None:
    """Refuse an HDF5 file that ends or holds up a process that reads all of it.

    HDF5 is a library in C, in which a damaged file may cause a segmentation fault or an endless
    loop. So another process reads the file first. It takes about 0.2 s and the time of reading;
    arrays larger than the memory are left out. A file that is only unreadable passes: its reader
    says why.

    Raises
    ------
    StorageError
        If the other process crashed, or needed more than 20 s and one second for each megabyte.
    """
    if getattr(sys, "frozen", False) or not sys.executable:  # no interpreter to start
        return
    limit = READ_SECONDS + os.path.getsize(path) / READ_RATE
    numbers = str(memory_bytes()), str(int(limit) + 1)
    words = [sys.executable, "-c", READ_HDF5, os.path.abspath(path), *numbers]
    try:
        code = subprocess.run(words, capture_output=True, timeout=limit, check=False).returncode
    except subprocess.TimeoutExpired:
        code = None
    if code not in (0, 1):
        raise StorageError(
            f"{_shown(path)} is a damaged HDF5 file, or takes more than {limit:.0f} s to read; "
            "make it or copy it again"
        )


def read_npz(path: str | Path, kind: str = "npz file") -> dict[str, np.ndarray]:
    """Read the arrays of an NPZ file by name.

    No array is made before its size is known to be that of its member, and none larger than the
    memory of the machine. Objects are never unpickled.

    Parameters
    ----------
    path : path
    kind : str, default "npz file"
        What the file should be, for the error message.

    Raises
    ------
    StorageError
        If the file is missing, damaged, holds something else than plain arrays, or is too large.
    """
    require_file(path)
    with reading(path, kind), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        _check_members(members)
        return {entry.filename[:-4]: _member(archive, entry) for entry in members}


def read_npy(path: str | Path) -> np.ndarray:
    """Return the array of an NPY file as a memory map.

    Raises
    ------
    StorageError
        If the file is missing, damaged or holds objects.
    """
    require_file(path)
    with reading(path, "npy file"):
        with open(path, "rb") as file:
            _header(file, os.path.getsize(path))
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(mapped, np.ndarray):
            raise ValueError("no array")
        _check_text(mapped)
        return mapped


def is_sparse_npz(arrays: dict[str, np.ndarray]) -> bool:
    """Return whether arrays are those of a sparse matrix that ``scipy.sparse.save_npz`` wrote."""
    return "format" in arrays and "data" in arrays and "shape" in arrays


def sparse_from(arrays: dict[str, np.ndarray], path: str | Path) -> sparse.csr_array:
    """Return the sparse matrix whose parts an NPZ file holds, after checks of its structure.

    Parameters
    ----------
    arrays : dict of str to numpy.ndarray
        As `read_npz` returns them.
    path : path
        File that they come from, for the error message.

    Raises
    ------
    StorageError, InvalidInput
        If the parts contradict each other, or an index is out of range.
    """
    with reading(path, "sparse npz file"):
        name = arrays["format"].item()
        name = name.decode() if isinstance(name, bytes) else str(name)
        if name not in SPARSE_FORMATS:
            raise ValueError(f"unknown format {shortened(name, 20)!r}")
        shape = _plain_integers(arrays, "shape")
        if shape.shape != (2,) or (shape < 1).any():
            raise ValueError(f"shape {shape.tolist()}")
        parts = {"coo": ("row", "col"), "dia": ("offsets",)}.get(name, ("indices", "indptr"))
        indices = [_plain_integers(arrays, part) for part in parts]
        data, size = arrays["data"], tuple(shape.tolist())
        if data.dtype.kind not in "biuf":
            raise ValueError(f"entries of type {data.dtype}, not real numbers")
        if name in COMPRESSED:
            _check_compressed(indices[0], indices[1], data, size, name)
        elif name == "coo":
            _check_coordinates(indices, size)
        given = (data, tuple(indices)) if name == "coo" else (data, *indices)
        matrix = getattr(sparse, f"{name}_array")(given, shape=size)
        check_sparse(matrix, "file")
        return sparse.csr_array(matrix)


def check_sparse(matrix: Any, argument: str) -> None:
    """Refuse a sparse matrix whose parts contradict each other, before compiled code reads it.

    Raises
    ------
    InvalidInput
        If an index is out of range, or the number of entries of a row is not one.
    """
    try:
        if matrix.format in COMPRESSED:
            parts = matrix.indices, matrix.indptr, matrix.data
            _check_compressed(*parts, matrix.shape, matrix.format)
        elif matrix.format == "coo":
            _check_coordinates(matrix.coords, matrix.shape)
    except ValueError as error:
        raise InvalidInput(
            argument, f"a damaged sparse matrix ({error})", "make the matrix again"
        ) from None


def _check_members(members: list[zipfile.ZipInfo]) -> None:
    """Refuse an archive that holds other things than arrays, or more than the memory takes."""
    names = [entry.filename for entry in members]
    if len(set(names)) < len(names):
        raise ValueError("two arrays of one name")
    for entry in members:
        if not entry.filename.endswith(".npy"):
            raise ValueError(f"{shortened(entry.filename, 40)!r} is no array")
    total = sum(entry.file_size for entry in members)
    if total > memory_bytes():
        raise ValueError(f"arrays of {total / 1e9:.0f} GB, more than the memory of this machine")


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(entry) as file:
        _header(file, entry.file_size)
    with archive.open(entry) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
        _check_text(array)
        if file.read(1):  # reads to the end, where the checksum of the member is compared
            raise ValueError(f"{shortened(entry.filename, 40)!r} is longer than its array")
    return array


def _header(file: Any, n_bytes: int) -> None:
    """Refuse an array whose header does not fit the number of bytes of its file."""
    version = np.lib.format.read_magic(file)
    if version not in NPY_VERSIONS:
        raise ValueError("an array of an unknown version")
    shape, _, dtype = NPY_VERSIONS[version](file)
    if dtype.hasobject or dtype.names is not None:
        raise ValueError(f"an array of type {shortened(str(dtype), 40)}, not of numbers or text")
    size = dtype.itemsize
    for length in shape:
        size *= int(length)
    if size != n_bytes - file.tell() or min(shape, default=0) < 0:
        raise ValueError(f"an array of {size} bytes in {n_bytes - file.tell()} bytes")


def _check_text(array: np.ndarray) -> None:
    """Refuse text of which a number is no character, with which Python cannot make a string."""
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        codes = np.ascontiguousarray(array).reshape(-1).view(f"{array.dtype.str[0]}u4")
        if codes.max() > sys.maxunicode:
            raise ValueError("text with numbers that are no characters")


def _plain_integers(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Return an array of integers as 64-bit ones."""
    if name not in arrays or arrays[name].dtype.kind not in "iu" or arrays[name].ndim != 1:
        raise ValueError(f"{name} is not a list of integers")
    if arrays[name].dtype.kind == "u" and (arrays[name] > np.iinfo(np.int64).max).any():
        raise ValueError(f"{name} is out of range")
    return arrays[name]


def _check_compressed(
    indices: np.ndarray, indptr: np.ndarray, data: np.ndarray, shape: tuple[int, ...], name: str
) -> None:
    """Check compressed rows (or columns): counts, order of pointers, range of indices."""
    n_major, n_minor = shape[::-1] if name == "csc" else shape
    if name == "bsr":
        if data.ndim != 3 or 0 in data.shape[1:]:
            raise ValueError("blocks without elements")
        n_major, n_minor = n_major // data.shape[1], n_minor // data.shape[2]
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise ValueError("indices that are not integers")
    if len(indptr) != n_major + 1 or len(indices) != len(data):
        raise ValueError(f"{len(indptr)} pointers and {len(indices)} indices for {len(data)} "
                         f"entries in {n_major} rows")  # fmt: skip
    if indptr[0] != 0 or indptr[-1] > len(indices) or (indptr[1:] < indptr[:-1]).any():
        raise ValueError("pointers that do not increase from 0 to the number of entries")
    if len(indices) and not (indices.min() >= 0 and indices.max() < n_minor):
        raise ValueError(f"index {_outside(indices, n_minor)} of {n_minor} columns")


def _check_coordinates(coordinates: Any, shape: tuple[int, ...]) -> None:
    for values, size in zip(coordinates, shape, strict=True):
        if len(values) and not (values.min() >= 0 and values.max() < size):
            raise ValueError(f"index {_outside(values, size)} of {size}")


def _outside(values: np.ndarray, size: int) -> int:
    return int(values.min() if values.min() < 0 else values.max())


def memory_bytes() -> int:
    """Return the memory of this machine in bytes, or 64 GB if the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 64 << 30


def _shown(path: str | Path) -> str:
    """Return a path in quotes, shortened."""
    return f"'{shortened(str(path), MAX_REASON)}'"
