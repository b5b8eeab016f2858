"""Checks of plain values, and short descriptions of any value for error messages."""

from typing import Any

import numpy as np

from graphuq.errors import require


def describe(value: object) -> str:
    """Return a short description of a value for an error message.

    Parameters
    ----------
    value : object

    Returns
    -------
    str
        Numbers, strings and None as Python writes them; arrays and matrices by type and shape;
        classes by name; anything else by its type.

    Examples
    --------
    >>> import numpy as np
    >>> describe(np.zeros((3, 2)))
    'ndarray of shape (3, 2)'
    >>> describe("auto")
    "'auto'"
    >>> describe([1, 2])
    'list of length 2'
    """
    if value is None or isinstance(value, bool | int | float | str | np.number | np.bool_):
        return repr(value)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    if isinstance(shape := getattr(value, "shape", None), tuple):
        return f"{name} of shape {shape}"
    if isinstance(value, list | tuple | set | dict):
        return f"{name} of length {len(value)}"
    return f"an object of type {name}"


def is_number(value: object) -> bool:
    """Return whether a value is one real number; a boolean is not.

    Arrays without dimensions count as numbers.
    """
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, int | float):
        return True
    dtype = getattr(value, "dtype", None)
    if getattr(value, "ndim", None) != 0 or dtype is None:
        return False
    return np.issubdtype(dtype, np.integer) or np.issubdtype(dtype, np.floating)


def is_integer(value: object) -> bool:
    """Return whether a value is one integer; a boolean and a float are not."""
    return is_number(value) and np.issubdtype(np.asarray(value).dtype, np.integer)


def is_vector(value: object, length: int | None = None) -> bool:
    """Return whether a value is a non-empty one-dimensional array of real numbers.

    Parameters
    ----------
    value : object
    length : int, optional
        Number of elements it must have; by default any number.
    """
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None or len(shape) != 1 or shape[0] == 0:
        return False
    return is_number(np.zeros((), dtype)) and length in (None, shape[0])


def check_number(argument: str, value: object, remedy: str) -> None:
    """Raise `InvalidInput` unless a value is one real number."""
    require(is_number(value), argument, f"{describe(value)} is not a number", remedy)


def check_integer(argument: str, value: object, remedy: str) -> None:
    """Raise `InvalidInput` unless a value is one integer."""
    require(is_integer(value), argument, f"{describe(value)} is not an integer", remedy)


def require_integer(argument: str, value: Any, minimum: int) -> None:
    """Raise `InvalidInput` unless a value is one integer of at least ``minimum``."""
    check_integer(argument, value, "use an integer")
    require(value >= minimum, argument, f"{value}", f"use {minimum} or more")


def require_number(argument: str, value: Any, minimum: float) -> None:
    """Raise `InvalidInput` unless a value is one real number of at least ``minimum``, not NaN."""
    check_number(argument, value, "use a number")
    require(value >= minimum, argument, f"{value!r}", f"use {minimum:g} or more")


def require_positive(argument: str, value: Any, remedy: str = "use a number > 0") -> None:
    """Raise `InvalidInput` unless a value is one real number > 0, not NaN."""
    check_number(argument, value, remedy)
    require(value > 0, argument, f"{value!r} is not positive", remedy)
