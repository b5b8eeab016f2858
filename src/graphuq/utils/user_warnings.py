"""Warnings that point to the line of the user, however deep they arise."""

import sys
import warnings

# Packages whose frames lie between the user's line and a warning of graphuq.
WRAPPERS = frozenset({"graphuq", "equinox", "jaxtyping", "beartype", "sklearn"})


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line that is neither in graphuq nor in a package that wraps it.

    Parameters
    ----------
    message : str
    category : type
        Class of the warning.
    """
    frame, level = sys._getframe(1).f_back, 3
    while frame is not None and _package(frame.f_globals) in WRAPPERS:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _package(names: dict[str, object]) -> str:
    """Return the top-level package of a frame, from its global names."""
    return str(names.get("__name__", "")).partition(".")[0]
