"""Checks of arguments, with errors that name argument, value and remedy."""

from numbers import Integral
from typing import TYPE_CHECKING, Any

from graphuq.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np


def require(condition: object, argument: str, problem: str, remedy: str) -> None:
    """Raise `InvalidInput` unless ``condition`` is true."""
    if not condition:
        raise InvalidInput(argument, problem, remedy)


def require_integer(argument: str, value: Any, minimum: int) -> None:
    """Raise `InvalidInput` unless a value is one integer of at least ``minimum``."""
    integer = isinstance(value, Integral) and not isinstance(value, bool)
    require(integer, argument, f"{value!r} is not an integer", "use an integer")
    require(value >= minimum, argument, f"{value}", f"use {minimum} or more")


def generator(seed: "int | np.random.Generator") -> "np.random.Generator":
    """Return the random generator of a seed, or the given generator."""
    import numpy as np

    if not isinstance(seed, np.random.Generator):
        require_integer("seed", seed, 0)
    return np.random.default_rng(seed)
