"""A folder of results that one run at a time writes: all of its files, or none.

Files are written to a hidden folder and synced to the disk. One rename then commits them: from
there on they replace the older ones, if need be in the next run, so that a crash at any moment
leaves the older results or the newer ones. See ``docs/robustness.md``.
"""

import contextlib
import errno
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphuq.errors import StorageError
from graphuq.utils.files import (
    check_writable,
    remove_unfinished,
    sync,
    sync_folder,
    unfinished,
)

LOCK = ".graphuq.lock"
COMMITTED = ".graphuq-committed"  # holds files that are complete, until they are in place
REMOVED = ".removed"  # among committed files: names of older ones that they make void
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL)


@contextmanager
def output_folder(folder: str | Path, wait: float = 0.0) -> Iterator[Path]:
    """Hold a folder of results for this run, and clear up after dead ones.

    Results that a dead run had committed are put in place; what it had not committed is removed.
    The system releases the lock of a process that dies, so that no lock is ever stale.

    Parameters
    ----------
    folder : path
        It is created if it is missing.
    wait : float, default 0
        Seconds to wait for another run.

    Raises
    ------
    StorageError
        If the folder cannot be written, or another run holds it; the message says which.
    """
    folder = check_writable(folder)
    with _lock(folder, wait):
        try:
            complete(folder)
            remove_unfinished(folder)
        except OSError as error:
            raise StorageError(
                f"cannot write to folder '{folder}' ({error.strerror or error})"
            ) from None
        yield folder


@contextmanager
def atomic_folder(output: Path, void: str | None = None) -> Iterator[Path]:
    """Yield a folder whose files replace those in ``output`` together, after an errorless block.

    Use it inside `output_folder`.

    Parameters
    ----------
    output : Path
    void : str, optional
        Pattern of the names of older files that are removed if there is no new one of their name.

    Raises
    ------
    StorageError
        If a file cannot be written; the older results are then unchanged.
    """
    folder = Path(tempfile.mkdtemp(dir=output, prefix=unfinished()))
    try:
        yield folder
        for path in folder.iterdir():
            if (output / path.name).is_dir():
                raise StorageError(f"'{output / path.name}' is a folder; rename it")
            sync(path)
        if void is not None:
            older = {path.name for path in output.glob(void) if path.is_file()}
            names = sorted(older - {path.name for path in folder.iterdir()})
            (folder / REMOVED).write_text(json.dumps(names), encoding="utf-8")
            sync(folder / REMOVED)
        sync_folder(folder)
        os.rename(folder, output / COMMITTED)  # the commit
        _complete_in_spite_of_interruptions(output)
    except OSError as error:
        raise StorageError(f"cannot write to '{output}' ({error.strerror or error})") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def complete(output: Path) -> None:
    """Put committed files in place, which a crash may have prevented."""
    committed = output / COMMITTED
    if not committed.is_dir():
        return
    sync_folder(output)
    removed = committed / REMOVED
    if removed.is_file():
        for name in json.loads(removed.read_text(encoding="utf-8")):
            (output / Path(name).name).unlink(missing_ok=True)
        removed.unlink()
    for path in sorted(committed.iterdir()):
        path.replace(output / path.name)
        path.unlink(missing_ok=True)  # POSIX renames nothing if both are links to one file
    sync_folder(output)
    committed.rmdir()


def newest(path: str | Path) -> Path:
    """Return where a file of results is: in place, or committed by a run that died since."""
    path = Path(path)
    committed = path.parent / COMMITTED / path.name
    return committed if committed.is_file() else path


def _complete_in_spite_of_interruptions(output: Path) -> None:
    try:
        complete(output)
    except KeyboardInterrupt:
        complete(output)
        raise


@contextmanager
def _lock(folder: Path, wait: float) -> Iterator[None]:
    """Hold the file that says which run writes to a folder."""
    path, deadline = folder / LOCK, time.monotonic() + wait
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StorageError(f"cannot open '{path}' ({error.strerror or error})") from None
        if not try_lock(file):
            holder = _holder(file)
            os.close(file)
            if time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            raise StorageError(
                f"folder '{folder}' is in use by {holder}; wait for it, or choose another folder"
            )
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(file), os.stat(path)):
                break
        os.close(file)  # its holder has removed it since it was opened
    try:
        words = {"process": os.getpid(), "machine": platform.node(), "since": time.ctime()}
        os.ftruncate(file, 0)
        os.write(file, json.dumps(words).encode())
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(file)


def try_lock(file: int) -> bool:
    """Lock an open file if no process holds it; the system releases it if the process dies."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(file, 1 << 30, os.SEEK_SET)  # beyond the text, which others may read
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in NO_LOCKS  # a file system without locks
    return True


def _holder(file: int) -> str:
    """Return who holds a lock, in words."""
    try:
        os.lseek(file, 0, os.SEEK_SET)
        found: Any = json.loads(os.read(file, 1000))
        return f"process {found['process']} on {found['machine']} since {found['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another run"
