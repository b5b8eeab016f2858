"""A file of lines to which several processes append, and which others may replace meanwhile."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from graphuq.errors import StorageError
from graphuq.utils.files import check_writable, sync_folder
from graphuq.utils.gate import require_file

REPLACED_S = 20.0  # in which a file must once be the same that was just opened
HELD_S = 60.0  # after which a lock that another process holds is an error
TRY_S = 0.002  # between tries to lock


class SharedFile:
    """Lines that are on the disk when they are written.

    An editor, git or a program that keeps folders alike writes a new file and gives it the name of
    the old one. What a process appends to the old file is then lost. So the name is looked up
    whenever the file is locked, and the file that has it now is opened.

    Parameters
    ----------
    path : path
        It is created if it is missing.

    Raises
    ------
    StorageError
        If the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mutex = threading.RLock()
        check_writable(path.parent)
        self._file = self._opened()

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._file < 0

    @property
    def state(self) -> tuple[int, ...]:
        """Device, number, size and time of the file that has the name; empty if there is none."""
        try:
            return _state(os.stat(self.path))
        except OSError:
            return ()

    @property
    def held_state(self) -> tuple[int, ...]:
        """State of the file that is held, which may have lost its name meanwhile."""
        return _state(os.fstat(self._file))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the file that has the name, for this thread of this process."""
        with self._mutex:
            until = time.monotonic() + REPLACED_S
            while time.monotonic() < until:
                if self.is_closed:
                    raise StorageError(f"'{self.path}' is closed; open it again to write labels")
                with _lock(self._file, self.path):
                    if self.state[:2] == self.held_state[:2]:
                        yield
                        return
                replaced, self._file = self._file, self._opened()
                os.close(replaced)
        raise StorageError(f"'{self.path}' is replaced again and again; use a folder of this disk")

    def read(self) -> bytes:
        """Return the whole content of the file that is held."""
        os.lseek(self._file, 0, os.SEEK_SET)  # writing appends wherever this is
        with open(self._file, "rb", closefd=False) as file:
            return file.read()

    def write(self, content: bytes) -> None:
        """Append content and wait for the disk; leave the file as it was if that fails."""
        size = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, content)
            if written < len(content):
                raise OSError("the disk is full")
            os.fsync(self._file)
            if size == 0:
                sync_folder(self.path.parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, size)
            reason = error.strerror or error
            raise StorageError(f"cannot write '{self.path}' ({reason}); free some space") from None

    def cut(self, size: int) -> None:
        """Remove all after some bytes."""
        os.ftruncate(self._file, size)
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        with self._mutex:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    def _opened(self) -> int:
        """Return a descriptor of the file that has the name now."""
        if self.path.exists():
            require_file(self.path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        try:
            return os.open(self.path, flags | getattr(os, "O_CLOEXEC", 0), 0o644)
        except OSError as error:
            raise StorageError(f"cannot open '{self.path}' ({error.strerror or error})") from None


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@contextlib.contextmanager
def _lock(file: int, path: Path) -> Iterator[None]:
    """Hold the exclusive lock of a file; the system releases it if the process dies.

    Raises
    ------
    StorageError
        If another process holds it for long, such as one that was stopped with Ctrl+Z.
    """
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

        until = time.monotonic() + HELD_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise StorageError(
                        f"'{path}' is locked by another process for {HELD_S:g} s; end that one"
                    ) from None
            time.sleep(TRY_S)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
