"""Atomic writes, after which a file is either complete and on the disk, or unchanged."""

import contextlib
import errno
import functools
import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphuq.errors import StorageError

UNFINISHED = re.compile(r"\.writing-([0-9a-f]{8})-(\d+)-")
"""Part of the name of a file that is being written: the machine and the process that writes."""

NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM)
"""Errors of a file system that cannot sync a folder."""


def check_writable(folder: str | Path) -> Path:
    """Create ``folder`` if it is missing, and check that a file can be written there.

    Raises
    ------
    StorageError
        If it cannot be created or written to.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        raise StorageError(
            f"cannot write to folder '{folder}' ({reason}); choose another one"
        ) from None
    return folder


@contextmanager
def atomic_write(path: str | Path, mode: int = 0o644) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` once the block ends without an error.

    The file is on the disk when it replaces the older one. What a dead process left of a write
    to the same path is removed.

    Parameters
    ----------
    path : path
    mode : int, default 0o644
        Who may read and write the file.

    Raises
    ------
    StorageError
        If the file cannot be written (no folder, no permission, no space).
    """
    path = Path(path)
    check_writable(path.parent)
    begin = f".{path.name[:40]}"
    remove_unfinished(path.parent, begin)
    try:
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f"{begin}{unfinished()}", suffix=path.suffix[:40]
        )
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"cannot write '{path}' ({reason}); choose another name") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(mode)
        sync(temporary)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise StorageError(f"cannot write '{path}' ({error.strerror or error})") from error
    finally:
        temporary.unlink(missing_ok=True)


def unfinished() -> str:
    """Return the part of a temporary name that says which machine and process writes it."""
    return f".writing-{_machine()}-{os.getpid()}-"


def remove_unfinished(folder: Path, begin: str = ".") -> None:
    """Remove what dead processes of this machine left of writes to a folder.

    Parameters
    ----------
    folder : path
    begin : str, default "."
        How the names begin; by default all that are hidden.
    """
    with contextlib.suppress(OSError):
        for entry in list(os.scandir(folder)):
            found = UNFINISHED.search(entry.name) if entry.name.startswith(begin) else None
            if found and found[1] == _machine() and not is_running(int(found[2])):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    Path(entry.path).unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file is on the disk."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, if the system can tell."""
    if sys.platform == "win32":
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise


def is_running(process: int) -> bool:
    """Return whether a process of this machine runs; True if that cannot be told."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


@functools.cache
def _machine() -> str:
    """Return a short name of this machine, and of the container if the system has such."""
    name = platform.node()
    with contextlib.suppress(OSError):
        name += os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(name.encode()).hexdigest()[:8]
