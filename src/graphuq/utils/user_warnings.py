"""Warnings that point to the line of the user, however deep they arise, and where they are held."""

import contextlib
import sys
import warnings
from collections.abc import Iterator
from contextvars import ContextVar

from graphuq.errors import GraphuqWarning

# Packages whose frames lie between the user's line and a warning of graphuq.
WRAPPERS = frozenset({"graphuq", "equinox", "jaxtyping", "beartype", "sklearn"})

Held = tuple[type[Warning], list[Warning]]
_HELD: ContextVar[tuple[Held, ...]] = ContextVar("held_warnings", default=())  # innermost last


def warn_user(message: str, category: type[GraphuqWarning]) -> None:
    """Warn at the innermost line that is neither in graphuq nor in a package that wraps it.

    Parameters
    ----------
    message : str
    category : type
        Class of the warning.
    """
    for held, found in reversed(_HELD.get()):
        if issubclass(category, held):
            found.append(category(message))
            return
    frame, level = sys._getframe(1).f_back, 3
    while frame is not None and _package(frame.f_globals) in WRAPPERS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextlib.contextmanager
def held_warnings(category: type[GraphuqWarning] = GraphuqWarning) -> Iterator[list[Warning]]:
    """Hold warnings of graphuq, in this thread alone, and give them as a list.

    `warnings.catch_warnings` is one for all threads: two that use it at once hear the warnings of
    each other, and may leave its filters behind.

    Parameters
    ----------
    category : type, default GraphuqWarning
        Warnings of other classes are shown as ever.
    """
    found: list[Warning] = []
    token = _HELD.set((*_HELD.get(), (category, found)))
    try:
        yield found
    finally:
        _HELD.reset(token)


def _package(names: dict[str, object]) -> str:
    """Return the top-level package of a frame, from its global names."""
    return str(names.get("__name__", "")).partition(".")[0]
