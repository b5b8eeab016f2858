"""Numbers as labels, some of which are missing."""

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.exceptions import DataConversionWarning

from graphuq.classifier.labels import NO_CLASSES, label_array, unknown_mask
from graphuq.classifier.suspect_columns import codes_in
from graphuq.classifier.types import Labels
from graphuq.errors import GraphuqWarning, InvalidInput, require
from graphuq.utils.user_warnings import warn_user

COLOR_ENDS = (0.02, 0.98)  # quantiles at the ends of colours: one row cannot take them all
CLASSES = "give numbers, or use GraphClassifier for classes"


def numbers_of(y: Labels, argument: str = "y", remedy: str = CLASSES) -> Float[np.ndarray, " N"]:
    """Return numbers as an array, NaN where unknown.

    Parameters
    ----------
    y : array_like, shape (N,)
        Numbers; NaN, None, ``pd.NA`` or "" where unknown.
    argument : str, default "y"
        Name of ``y`` in error messages.
    remedy : str
        What to do about text.

    Raises
    ------
    InvalidInput
        If ``y`` is missing, has another shape, or holds text or infinite values.
    """
    if y is None:
        raise InvalidInput(
            "y", "requires y to be passed, but the target y is None", "give the known numbers"
        )
    values = label_array(y, argument)
    if values.ndim == 2 and values.shape[1] == 1:
        warn_user(
            "A column-vector y was passed when a 1d array was expected", DataConversionWarning
        )
        values = values.ravel()
    require(values.ndim == 1, "y", f"shape {values.shape}", "give one number a row")
    kind = values.dtype.kind
    require(kind not in NO_CLASSES, argument, NO_CLASSES.get(kind, ""), "give real numbers")
    missing = unknown_mask(values) | np.array([_is_empty(v) for v in values], bool)
    numbers = np.full(len(values), np.nan)
    try:
        numbers[~missing] = values[~missing].astype(np.float64)
    except (TypeError, ValueError):
        strange = next(v for v in values[~missing] if not _is_number(v))
        raise InvalidInput(argument, f"{str(strange)!r} is not a number", remedy) from None
    infinite = np.flatnonzero(np.isinf(numbers))
    require(
        len(infinite) == 0,
        argument,
        f"infinite values, such as row {infinite[:1].tolist()}",
        "give NaN where the number is unknown",
    )
    return numbers


def numbers_to_learn(y: Labels) -> Float[np.ndarray, " N"]:
    """Return the numbers of a fit as `numbers_of` does.

    Warns
    -----
    GraphuqWarning
        If -999 or the like occurs, far from all other numbers.
    """
    numbers = numbers_of(y)
    if len(found := [f"{code:g}" for code in codes_in(numbers)]):
        warn_user(
            f"y: {', '.join(found)} {'is' if len(found) == 1 else 'are'} far from all other "
            "numbers; if that means unknown, give NaN in its place, or --missing-label="
            f"{found[0]} at the command line",
            GraphuqWarning,
        )
    return numbers


def number_format(spread: float) -> tuple[Callable[[float], str], int | None]:
    """Return how numbers are written, to three digits of their standard deviation.

    The second value is the number of digits after the point, or None if all numbers are tiny or
    huge. `figure` of ``numbers.js`` writes the same digits, as reports show some numbers twice.

    Examples
    --------
    >>> show, decimals = number_format(28.8)
    >>> show(1234.56), decimals
    ('1,234.6', 1)
    """
    decimals = max(0, 2 - int(np.floor(np.log10(spread))))
    if decimals > 8 or spread > 1e9:
        return (lambda value: re.sub(r"e([+-])0", r"e\1", f"{value:.3e}")), None
    unit = Decimal(1).scaleb(-decimals)

    def show(value: float) -> str:
        if not np.isfinite(value):
            return str(value)
        return f"{Decimal(float(value) + 0.0).quantize(unit, ROUND_HALF_UP):,}"

    return show, decimals


def _is_empty(value: Any) -> bool:
    return isinstance(value, str) and value.strip() == ""


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
