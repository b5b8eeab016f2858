"""Where a page is on its server: a path that nobody can guess, and the name of its cookie."""

import hashlib

COOKIE = "graphuq"


def path_of(token: str) -> str:
    """Return the path below which a page is, which tells nothing of its token."""
    return f"/{hashlib.sha256(b'path ' + token.encode()).hexdigest()[:32]}"
