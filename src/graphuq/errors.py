"""Errors and warnings; every error names the argument, the value and the remedy."""

import numbers
from typing import Any, SupportsFloat

MAX_SHOWN = 60  # characters of a value in an error


class GraphuqError(ValueError):
    """Base of all errors that graphuq raises on purpose; a ``ValueError``."""


class InvalidInput(GraphuqError):
    """Argument that cannot be used.

    Parameters
    ----------
    argument : str
        Name of the argument as the user typed it.
    problem : str
        Value of the argument and what is wrong with it.
    remedy : str
        What to do instead, in the imperative.
    """

    def __init__(self, argument: str, problem: str, remedy: str) -> None:
        super().__init__(f"{argument}: {problem}; {remedy}")
        self.argument, self.problem, self.remedy = argument, problem, remedy

    def __reduce__(self) -> tuple[type["InvalidInput"], tuple[str, str, str]]:
        """Return the three parts from which another process rebuilds the error."""
        return type(self), (self.argument, self.problem, self.remedy)


class IncompatibleParts(GraphuqError):
    """Two valid parts that do not work together."""


class StorageError(GraphuqError):
    """File that cannot be read or written, or whose content is not as expected."""


class GraphuqWarning(UserWarning):
    """Base of all warnings of graphuq."""


class DisconnectedGraphWarning(GraphuqWarning):
    """Graph with several connected components, between which labels carry no information."""


class GraphRepairWarning(GraphuqWarning):
    """Graph whose weights were usable only after a small change, which the message names."""


class ImproperPriorWarning(GraphuqWarning):
    """Prior of infinite mass, under which the posterior may be improper."""


class TruncationWarning(GraphuqWarning):
    """Series that needs more eigenvectors than were computed."""


class NotConvergedWarning(GraphuqWarning):
    """Result that has not converged; the message says what to do."""


class MissingLabelWarning(GraphuqWarning):
    """Most rows have a class whose name often means "no label"."""


class UnlabelledScoreWarning(GraphuqWarning):
    """A score was asked for rows without labels, which it leaves out."""


class FeatureScaleWarning(GraphuqWarning):
    """Features have such different scales that a few of them decide all distances."""


def require(condition: object, argument: str, problem: str, remedy: str) -> None:
    """Raise `InvalidInput` unless ``condition`` is true."""
    if not condition:
        raise InvalidInput(argument, problem, remedy)


def require_integer(argument: str, value: Any, minimum: int) -> None:
    """Raise `InvalidInput` unless ``value`` is an integer of at least ``minimum``."""
    integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    require(integer, argument, f"{describe(value)} is not an integer", "use an integer")
    require(value >= minimum, argument, f"{value}", f"use {minimum} or more")


def require_number(argument: str, value: Any, minimum: float = -float("inf")) -> None:
    """Raise `InvalidInput` unless ``value`` is a number of at least ``minimum`` (not NaN)."""
    require(_is_number(value), argument, f"{describe(value)} is not a number", "use a number")
    require(value >= minimum, argument, f"{value!r}", f"use {minimum:g} or more")


def require_positive(argument: str, value: Any, remedy: str = "use a number > 0") -> None:
    """Raise `InvalidInput` unless ``value`` is a number > 0 (not NaN)."""
    require(_is_number(value), argument, f"{describe(value)} is not a number", remedy)
    require(value > 0, argument, f"{value!r} is not positive", remedy)


def _is_number(value: Any) -> bool:
    return isinstance(value, SupportsFloat) and not getattr(value, "shape", ())


def describe(value: Any) -> str:
    """Return a value as it is shown in an error: short, and without the numbers of an array."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    if getattr(value, "shape", ()):
        return f"{kind} of shape {tuple(value.shape)}"
    if value is None or isinstance(value, numbers.Number | str | tuple | list):
        text = repr(value)
        return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    return f"{kind} object"
