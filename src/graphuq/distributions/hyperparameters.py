"""Fields of priors and likelihoods that are numbers or distributions, and their checks."""

from dataclasses import fields
from typing import Any, TypeGuard

import numpy as np
from scipy import stats

from graphuq.distributions.base import Distribution, Hyperparameter
from graphuq.errors import require
from graphuq.utils.checks import check_number, describe, is_number, require_scale
from graphuq.utils.part import part_field

ANY_DISTRIBUTION = "a distribution such as gq.Uniform(low, high)"  # remedy in error messages
HYPERPARAMETER = "hyperparameter"  # key in the metadata of a field that `parameter` made


def hyperparameter(value: Hyperparameter) -> Any:
    """Convert a frozen distribution of SciPy to a `Distribution`; return other values unchanged."""
    if not (hasattr(value, "ppf") and hasattr(value, "dist")):
        return value
    shapes, loc, scale = value.dist._parse_args(*value.args, **value.kwds)
    require(
        isinstance(value.dist, stats.rv_continuous | stats.rv_discrete)
        and hasattr(stats, value.dist.name),
        "distribution",
        f"{value.dist.name!r} is not in scipy.stats",
        "use a distribution of scipy.stats",
    )
    continuous = isinstance(value.dist, stats.rv_continuous)
    return Distribution(value.dist.name, (*shapes, loc, scale) if continuous else (*shapes, loc))


def parameter(default: Hyperparameter) -> Any:
    """Declare a field of a part as a hyperparameter: a number or a distribution.

    Parameters
    ----------
    default : float, int, Distribution or None
        Default of the field. With None the hyperparameter is optional.
    """
    return part_field(converter=hyperparameter, default=default, metadata={HYPERPARAMETER: True})


def is_learnt(value: object) -> TypeGuard[Distribution]:
    """Return whether a hyperparameter is a distribution."""
    return isinstance(value, Distribution)


def learnt_of(part: Any) -> dict[str, Distribution]:
    """Return the hyperparameters of a part that are distributions, by name."""
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    return {name: value for name, value in values.items() if is_learnt(value)}


def check_defined(part: type) -> None:
    """Refuse a part whose class lacks a required method."""
    missing = sorted(getattr(part, "__abstractmethods__", ()))
    require(
        not missing,
        part.__name__,
        f"the class does not define {', '.join(missing)}",
        "define it as the documentation of its base class says",
    )


def check_hyperparameters(part: Any) -> None:
    """Refuse a hyperparameter that is a boolean, text or a list instead of a number.

    Raises
    ------
    InvalidInput
        If a field that `parameter` made is not a number, distribution or array, and is not
        None by default.
    """
    for field in fields(part):
        if not field.metadata.get(HYPERPARAMETER):
            continue
        value = getattr(part, field.name)
        array = not is_learnt(value) and getattr(value, "ndim", 0) > 0
        valid = is_learnt(value) or is_number(value) or array
        require(
            valid or (value is None and field.default is None),
            field.name,
            f"{describe(value)} is not a number",
            f"use a number, or {ANY_DISTRIBUTION}",
        )


def check_range(
    name: str, value: Any, low: float, high: float = np.inf, *, open: bool, remedy: str
) -> None:
    """Refuse a number outside a range, open or closed, and a distribution that leaves it.

    A number whose powers are not finite is refused, too.
    """
    if is_learnt(value):
        # A density has no mass at an end of its support, so that an open end may be one.
        first, last = value.support
        shut = open and value.discrete
        inside = (low < first if shut else low <= first) and (last < high if shut else last <= high)
        require(inside, name, f"{value!r} has support [{first:g}, {last:g}]", remedy)
    else:
        names_one = "istribution" in remedy
        check_number(name, value, remedy if names_one else f"{remedy}, or {ANY_DISTRIBUTION}")
        inside = low < value < high if open else low <= value <= high
        require(inside, name, f"{value!r} is out of range", remedy)
        require_scale(name, value)
