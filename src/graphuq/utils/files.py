"""Atomic writes, after which a file is either complete or unchanged."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphuq.errors import StorageError


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
    except OSError as error:
        raise StorageError(
            f"cannot write to folder '{folder}' ({error.strerror or error}); choose another one"
        ) from None
    return folder


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` once the block ends without an error.

    Raises
    ------
    StorageError
        If the file cannot be written (no folder, no permission, no space).
    """
    path = Path(path)
    check_writable(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise StorageError(f"cannot write '{path}' ({error.strerror or error})") from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(output: Path) -> Iterator[Path]:
    """Yield a folder whose files move to ``output`` once the block ends without an error."""
    folder = Path(tempfile.mkdtemp(dir=output, prefix=".writing-"))
    try:
        yield folder
        for path in sorted(folder.iterdir()):
            path.replace(output / path.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
