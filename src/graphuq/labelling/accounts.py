"""A file of people and passwords, of which it holds slow hashes with salt only."""

import hashlib
import hmac
import json
import os
import secrets
import sys
from pathlib import Path
from typing import Any

from graphuq.errors import StorageError, require
from graphuq.labelling.names import check_name
from graphuq.utils.files import atomic_write

FORMAT, VERSION = "graphuq users", 1
COST = {"n": 2**15, "r": 8, "p": 1}  # of scrypt (RFC 7914): 32 MiB and some .1 s for each try
MAX_MEMORY = 2**26  # bytes
MIN_PASSWORD, MAX_PASSWORD = 10, 1_000  # characters


class Accounts:
    """People who may log in.

    The file is read again when it changes. Others than its owner must not be able to read it.

    Parameters
    ----------
    path : path

    Raises
    ------
    StorageError
        If the file is missing, is no file of users, or others can read it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._state: tuple[int, ...] = ()
        self._users: dict[str, dict[str, Any]] = {}
        self._stranger = _entry(secrets.token_urlsafe())
        if not self.users:
            raise StorageError(f"'{self.path}' has no user; add one with graphuq label-user")

    @property
    def users(self) -> dict[str, dict[str, Any]]:
        """Salt and hash of each person."""
        try:
            found = os.stat(self.path)
        except OSError as error:
            raise StorageError(f"cannot read '{self.path}' ({error.strerror})") from None
        state = found.st_ino, found.st_size, found.st_mtime_ns
        if state != self._state:
            self._users = _read(self.path)
            self._state = state
        return self._users

    def knows(self, name: str, password: str) -> bool:
        """Return whether a password is right; this takes as long if there is no such person."""
        entry = self.users.get(name)
        found = _hashed(password, entry or self._stranger)
        right = str((entry or self._stranger)["hash"])
        return hmac.compare_digest(found, right) and entry is not None

    def mark_of(self, name: str) -> str | None:
        """Return what changes with the password of a person; None if there is no such person."""
        entry = self.users.get(name)
        return None if entry is None else str(entry["hash"])


def set_password(path: str | Path, name: str, password: str) -> None:
    """Add a person to a file of users, which is made if it is missing, or change a password.

    Raises
    ------
    InvalidInput
        If the name cannot be used, or the password is too short or long.
    StorageError
        If the file cannot be read or written.
    """
    name = check_name(name, "NAME")
    fits = MIN_PASSWORD <= len(password) <= MAX_PASSWORD
    remedy = f"use {MIN_PASSWORD} to {MAX_PASSWORD} characters"
    require(fits, "password", f"{len(password)} characters", remedy)
    path = Path(path)
    _write(path, {**(_read(path) if path.exists() else {}), name: _entry(password)})


def remove_user(path: str | Path, name: str) -> None:
    """Remove a person, whose pages are then logged out.

    Raises
    ------
    InvalidInput
        If there is no such person.
    """
    users = dict(_read(Path(path)))
    require(name in users, "NAME", f"no user {name!r}", f"use {', '.join(sorted(users))}")
    del users[name]
    _write(Path(path), users)


def _entry(password: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"salt": secrets.token_hex(16), **COST}
    return {**entry, "hash": _hashed(password, entry)}


def _hashed(password: str, entry: dict[str, Any]) -> str:
    cost = {name: entry[name] for name in COST}
    salt = bytes.fromhex(entry["salt"])
    text = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(text, salt=salt, maxmem=MAX_MEMORY, **cost).hex()


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        is_open = sys.platform != "win32" and path.stat().st_mode & 0o077 != 0
        found = json.loads(path.read_text(encoding="utf-8"))
        known = found["format"] == FORMAT and found["version"] == VERSION
        users = {str(name): dict(entry) for name, entry in found["users"].items()}
        cost = {(entry["n"], entry["r"], entry["p"]) for entry in users.values()}
        known = known and cost <= {tuple(COST.values())}
        known = known and all(bytes.fromhex(e["salt"]) and e["hash"] for e in users.values())
    except OSError as error:
        raise StorageError(f"cannot read '{path}' ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        known = False
    if is_open:
        raise StorageError(f"others can read '{path}'; run: chmod 600 '{path}'")
    if not known:
        raise StorageError(f"'{path}' is not a file of users; make one with graphuq label-user")
    return users


def _write(path: Path, users: dict[str, dict[str, Any]]) -> None:
    text = json.dumps({"format": FORMAT, "version": VERSION, "users": users}, indent=1)
    with atomic_write(path, 0o600) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
