"""Checks of plain values, and short descriptions of any value for error messages."""

import dataclasses
import types
import typing
from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Int

from graphuq.errors import InvalidInput, require, shortened

MAX_QUOTED = 60  # characters of a text that is quoted
MAX_COUNT = 2**31 - 1  # largest count; compiled programs count in 32 bits
MIN_SCALE, MAX_SCALE = 1e-30, 1e30  # of a positive number, so that powers of it stay finite
MAX_SEED = 2**63 - 1


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
        return shortened(repr(value), MAX_QUOTED)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    if isinstance(shape := getattr(value, "shape", None), tuple):
        return f"{name} of shape {shape}"
    if isinstance(value, list | tuple | set | dict):
        return f"{name} of length {len(value)}"
    return f"an object of type {name}"


def array_of(values: Any, argument: str, remedy: str) -> np.ndarray:
    """Return values as an array; raise `InvalidInput` if they are nested with unequal lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        raise InvalidInput(argument, "nested lists of different lengths", remedy) from None


def numbers_among(
    values: Any, n_values: int, argument: str, word: str = "node", needed: bool = True
) -> Int[np.ndarray, " J"]:
    """Return different whole numbers from 0 to ``n_values`` − 1, such as those of nodes or rows.

    Parameters
    ----------
    values : array_like of int, shape (J,)
    n_values : int
    argument : str
        Name of ``values`` in errors.
    word : str, default "node"
        What is numbered.
    needed : bool, default True
        Whether there must be one at least.

    Raises
    ------
    InvalidInput
        If there are other values, or one occurs twice.
    """
    remedy = f"give numbers of {word}s, each once"
    numbers = array_of(values, argument, remedy)
    is_list = numbers.ndim == 1 and numbers.dtype.kind in "iu"
    require(numbers.size > 0 or not needed, argument, f"no {word}", remedy)
    require(is_list, argument, f"{numbers.dtype} of shape {numbers.shape}", remedy)
    outside = numbers[(numbers < 0) | (numbers >= n_values)]
    require(
        len(outside) == 0,
        argument,
        f"{word} {outside[:1].tolist()} does not exist",
        f"use numbers from 0 to {n_values - 1}",
    )
    repeats = len(np.unique(numbers)) < len(numbers)
    require(not repeats, argument, f"a {word} is given twice", remedy)
    return numbers.astype(np.int64)


def refuse_zero_bytes(names: Iterable[object], argument: str) -> None:
    """Raise `InvalidInput` for a text that ends with a zero byte, which arrays of texts drop."""
    for name in names:
        if isinstance(name, str) and name[-1:] == "\0":
            shown = shortened(repr(name), MAX_QUOTED)
            found = f"{shown}, a name that ends with a zero byte"
            raise InvalidInput(argument, found, "give it another name")


def text_array(texts: Iterable[str], argument: str) -> np.ndarray:
    """Return texts as an array.

    Raises
    ------
    InvalidInput
        If one ends with a zero byte, which the array would drop.
    """
    listed = list(texts)
    refuse_zero_bytes(listed, argument)
    return np.array(listed, dtype=str)


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


def require_integer(argument: str, value: Any, minimum: int, maximum: int = MAX_COUNT) -> None:
    """Raise `InvalidInput` unless a value is one integer from ``minimum`` to ``maximum``."""
    if not (isinstance(value, int) and not isinstance(value, bool)):  # one of any size
        check_integer(argument, value, "use an integer")
    require(value >= minimum, argument, f"{describe(value)}", f"use {minimum} or more")
    require(value <= maximum, argument, f"{describe(value)}", f"use at most {maximum}")


def require_number(argument: str, value: Any, minimum: float) -> None:
    """Raise `InvalidInput` unless a value is one finite real number of at least ``minimum``."""
    check_number(argument, value, "use a number")
    require(value >= minimum, argument, f"{value!r}", f"use {minimum:g} or more")
    require(value <= MAX_SCALE, argument, f"{value!r}", f"use at most {MAX_SCALE:g}")


def require_positive(argument: str, value: Any, remedy: str = "use a number > 0") -> None:
    """Raise `InvalidInput` unless a value is one number from `MIN_SCALE` to `MAX_SCALE`."""
    check_number(argument, value, remedy)
    require(value > 0, argument, f"{value!r} is not positive", remedy)
    require_scale(argument, value)


def require_scale(argument: str, value: Any) -> None:
    """Raise `InvalidInput` if a number is so large or small that its powers are not finite."""
    require(
        _is_small(value) and _is_of_size(value),
        argument,
        f"{value!r} is too {'small' if abs(value) < 1 else 'large'}",
        f"use a number of size {MIN_SCALE:g} to {MAX_SCALE:g}",
    )


def _is_of_size(value: Any) -> bool:
    """Return whether a number is 0, or of a size whose powers are finite."""
    return bool(value == 0 or MIN_SCALE <= abs(value) <= MAX_SCALE)


def _is_small(value: Any) -> bool:
    """Return whether an integer, if it is one, has at most 63 bits, as arrays require."""
    return not isinstance(value, int) or abs(value) <= MAX_SEED


def check_seed(argument: str, seed: object) -> None:
    """Raise `InvalidInput` unless a seed is an integer of at most 63 bits, or a generator."""
    if isinstance(seed, np.random.Generator):
        return
    check = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    require(check, argument, f"{describe(seed)} is not an integer", "give an integer >= 0")
    require_integer(argument, seed, 0, MAX_SEED)


def seed_number(rng: int | np.random.Generator) -> int:
    """Return the seed, or one drawn by the generator."""
    return int(rng.integers(2**31)) if isinstance(rng, np.random.Generator) else rng


def generator(rng: Any, argument: str = "rng") -> np.random.Generator:
    """Return the random generator of a seed, or the given generator.

    Raises
    ------
    InvalidInput
        If the seed is not an integer from 0 to 2⁶³ − 1, nor a generator.
    """
    check_seed(argument, rng)
    return np.random.default_rng(rng)


def check_fields(part: Any, in_place_of_numbers: tuple[type, ...] = ()) -> None:
    """Refuse a field of a dataclass whose value is not of the annotated type.

    Integers have at most 31 bits, and numbers are finite. A value of one of the further types is
    accepted where a number is.

    Raises
    ------
    InvalidInput
        For the first such field.
    """
    for field in dataclasses.fields(part):
        if isinstance(field.type, str):
            continue
        value = getattr(part, field.name)
        union = typing.get_origin(field.type) in (types.UnionType, typing.Union)
        kinds = typing.get_args(field.type) if union else (field.type,)
        if float in kinds and isinstance(value, in_place_of_numbers):
            continue
        if not any(_fits(value, kind) for kind in kinds):
            *others, last = (name for kind in kinds for name in _names_of(kind))
            words = f"{', '.join(others)} or {last}" if others else last
            raise InvalidInput(field.name, describe(value), f"use {words}")


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a value is of an annotated type."""
    if kind is Any:
        return True
    if kind in (None, type(None)):
        return value is None
    if kind is int:
        return is_integer(value) and abs(int(value)) <= MAX_COUNT
    if kind is float:
        return is_number(value) and _is_small(value) and _is_of_size(value)
    if not isinstance(kind, type):
        return True
    if hasattr(kind, "dims"):  # an array, annotated by jaxtyping
        dtype = getattr(value, "dtype", None)
        scalar = len(kind.dims) > 0 or np.ndim(value) == 0
        return dtype is not None and is_number(np.zeros((), dtype)) and scalar
    return isinstance(value, kind)


def _names_of(kind: Any) -> tuple[str, ...]:
    """Return an annotated type as it is called in an error message."""
    words: dict[Any, tuple[str, ...]] = {
        int: ("an integer",),
        float: ("a finite number",),
        bool: ("True", "False"),
        str: ("text",),
        type(None): ("None",),
    }
    if hasattr(kind, "dims"):
        return ("an array of numbers",)
    return words.get(kind, (f"a {getattr(kind, '__name__', kind)}",))
