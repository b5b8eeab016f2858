"""Names of classes and people that the page and its files can hold."""

from typing import Any

from graphuq.errors import InvalidInput, require


def check_name(value: Any, argument: str, max_length: int = 100) -> str:
    """Return the name of a class or user without surrounding spaces.

    Raises
    ------
    InvalidInput
        If it is not text, empty, too long, or holds control characters.
    """
    remedy = f"use 1 to {max_length} printable characters"
    if not isinstance(value, str):
        raise InvalidInput(argument, f"{type(value).__name__} instead of text", remedy)
    name = value.strip()
    fits = 0 < len(name) <= max_length and name.isprintable()
    require(fits, argument, f"{name[:20]!r}", remedy)
    return name
