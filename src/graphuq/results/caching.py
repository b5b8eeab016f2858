"""What functions of a result find, kept with the result, so that it is computed once."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from graphuq.results.result import Result

T = TypeVar("T")


def kept(function: "Callable[[Result], T]") -> "Callable[[Result], T]":
    """Return the function of a result that computes once for each result."""

    @wraps(function)
    def found(result: "Result") -> T:
        values, name = vars(result), f"_{function.__name__}"
        if name not in values:
            values[name] = function(result)
        value: T = values[name]
        return value

    return found
