"""Hyperparameters: a number is fixed, and a distribution is learnt.

Distributions are those of SciPy. A learnt hyperparameter θ enters the chain as ``θ = F⁻¹(Φ(w))``
with w standard normal and F its distribution function. In white coordinates the posterior is then
a standard normal prior times a likelihood, as it is without learnt hyperparameters.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import FunctionType
from typing import Any, ClassVar, TypeGuard

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy import stats
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtr

from graphuq.errors import ImproperPriorWarning, IncompatibleParts, InvalidInput, require
from graphuq.utils.arrays import Array
from graphuq.utils.checks import check_integer, check_number, describe, is_number
from graphuq.utils.deprecation import RenamedAttribute

REACH = 8.0  # standard deviations; the mass beyond is 1e-15
ANY_DISTRIBUTION = "a distribution such as gq.Uniform(low, high)"  # remedy in error messages
HYPERPARAMETER = "hyperparameter"  # key in the metadata of a field that `parameter` made
KNOTS, MAX_VALUES = 2049, 100_000  # points of a quantile table; values of a discrete distribution


class Distribution:
    """Distribution of SciPy, given by name and parameters.

    Parameters
    ----------
    name : str
        Name in `scipy.stats`, such as ``"gamma"``.
    parameters : tuple of float
        Parameters by position, as in SciPy: shapes, loc, scale.

    Raises
    ------
    InvalidInput
        If SciPy has no such distribution, or the parameters are not valid for it.

    Examples
    --------
    >>> import graphuq as gq
    >>> gq.Uniform(0.01, 60.0)
    Uniform(0.01, 60)
    >>> gq.DiscreteUniform(1, 70).support
    (1.0, 70.0)
    """

    def __init__(self, name: str, parameters: Sequence[float | int]) -> None:
        require(isinstance(name, str), "name", describe(name), "use a name of scipy.stats")
        for value in parameters:
            check_number("parameters", value, "use numbers")
        self.name, self.parameters = name, tuple(float(x) for x in parameters)
        family = getattr(stats, self.name, None)
        require(
            isinstance(family, stats.rv_continuous | stats.rv_discrete),
            "distribution",
            f"scipy.stats has no distribution of name {self.name!r}",
            "use the name of one of its distributions",
        )
        if self.improper:
            return
        low, high = self.support
        require(
            np.isfinite(self.median) and low < high,
            "distribution",
            f"{self.name}{self.parameters} is not a distribution, or has only one value",
            "check the parameters, or give a number",
        )

    law = RenamedAttribute("frozen")

    @property
    def frozen(self) -> Any:
        """Frozen distribution of SciPy."""
        return getattr(stats, self.name)(*self.parameters)

    @property
    def improper(self) -> bool:
        """Whether it is the improper limit of gamma distributions with shape or rate zero."""
        return self.name == "gamma" and (self.parameters[0] == 0 or self.parameters[2] == np.inf)

    @property
    def discrete(self) -> bool:
        """Whether its values are integers."""
        return isinstance(getattr(stats, self.name), stats.rv_discrete)

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest value."""
        if self.improper:
            return 0.0, np.inf
        low, high = self.frozen.support()
        return float(low), float(high)

    @property
    def median(self) -> float:
        """Median of the distribution."""
        return float(self.frozen.median())

    def stored_fields(self) -> dict[str, Any]:
        """Return the arguments of the constructor, for `graphuq.utils.serialization`."""
        return {"name": self.name, "parameters": self.parameters}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Distribution):
            return False
        return self.name == other.name and self.parameters == other.parameters

    def __hash__(self) -> int:
        return hash((self.name, self.parameters))

    def __repr__(self) -> str:
        if self.name not in _SHORT:
            return f"Distribution({self.name!r}, {self.parameters})"
        word, arguments = _SHORT[self.name]
        return f"{word}({', '.join(f'{x:g}' for x in arguments(*self.parameters))})"


_SHORT: dict[str, tuple[str, Callable[..., tuple[float, ...]]]] = {
    "uniform": ("Uniform", lambda low, width: (low, low + width)),
    "loguniform": ("LogUniform", lambda low, high, *_: (low, high)),
    "lognorm": ("LogNormal", lambda log_std, _, median: (median, log_std)),
    "gamma": ("Gamma", lambda shape, _, scale: (shape, 1 / scale)),
    "randint": ("DiscreteUniform", lambda low, end, *_: (low, end - 1)),
}

Hyperparameter = Any
"""Number or `Distribution`; an array inside a chain that learns it."""


def _check_numbers(**values: object) -> None:
    for name, value in values.items():
        check_number(name, value, "use a number")


def Uniform(low: float | int, high: float | int) -> Distribution:
    """Return the uniform distribution on [low, high]."""
    _check_numbers(low=low, high=high)
    require(low < high, "low", f"{low!r} is not below {high!r}", "use low < high")
    return Distribution("uniform", (float(low), float(high - low)))


def LogUniform(low: float | int, high: float | int) -> Distribution:
    """Return the distribution on [low, high], low > 0, whose logarithm is uniform."""
    _check_numbers(low=low, high=high)
    require(0 < low < high, "low", f"{low!r} beside {high!r}", "use 0 < low < high")
    return Distribution("loguniform", (float(low), float(high)))


def LogNormal(median: float | int, log_std: float | int) -> Distribution:
    """Return the log-normal distribution with this median and this std of the logarithm."""
    _check_numbers(median=median, log_std=log_std)
    require(median > 0, "median", f"{median!r} is not positive", "use a median > 0")
    require(log_std > 0, "log_std", f"{log_std!r} is not positive", "use log_std > 0")
    return Distribution("lognorm", (float(log_std), 0.0, float(median)))


def Gamma(shape: float | int, rate: float | int) -> Distribution:
    """Return the gamma distribution with this shape and rate; its mean is shape / rate.

    If one of them is zero, it is the improper limit ``p(x) ∝ x^(shape − 1) e^(−rate x)``.
    `ReversibleJump` accepts it for the scale of `RandomSeries`, as in its paper.

    Warns
    -----
    ImproperPriorWarning
        If shape or rate is zero.
    """
    _check_numbers(shape=shape, rate=rate)
    require(shape >= 0, "shape", f"{shape!r} is negative", "use shape > 0")
    require(rate >= 0, "rate", f"{rate!r} is negative", "use rate > 0")
    if shape == 0 or rate == 0:
        warnings.warn(
            f"Gamma({shape:g}, {rate:g}) has infinite mass, and so has the posterior of its scale. "
            "Labels never exclude a zero field (rate 0) or an unbounded field (shape 0). Chains "
            "may look converged although they are not; use Gamma(1, 0.001), which is proper.",
            ImproperPriorWarning,
            stacklevel=2,
        )
    return Distribution("gamma", (float(shape), 0.0, 1 / float(rate) if rate else np.inf))


def DiscreteUniform(low: int, high: int) -> Distribution:
    """Return the uniform distribution on the integers low, …, high."""
    for name, value in (("low", low), ("high", high)):
        check_integer(name, value, "use an integer")
    require(low < high, "low", f"{low!r} is not below {high!r}", "use low < high")
    return Distribution("randint", (low, high + 1))


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
    return eqx.field(converter=hyperparameter, default=default, metadata={HYPERPARAMETER: True})


def is_learnt(value: object) -> TypeGuard[Distribution]:
    """Return whether a hyperparameter is a distribution."""
    return isinstance(value, Distribution)


def learnt_of(part: Any) -> dict[str, Distribution]:
    """Return the hyperparameters of a part that are distributions, by name."""
    values = {f.name: getattr(part, f.name) for f in fields(part)}
    return {name: value for name, value in values.items() if is_learnt(value)}


def check_defined(part: type, renamed: Mapping[str, str]) -> None:
    """Refuse a part whose class lacks a required method, or sets an attribute by its old name.

    Parameters
    ----------
    part : type
    renamed : mapping of str to str
        New name of each renamed attribute; set by its old name it would have no effect.

    Raises
    ------
    InvalidInput
        If a method of the base class is still abstract, or a flag or property of the class has
        an old name.
    """
    for old, new in renamed.items():
        require(
            not isinstance(getattr(part, old, 0), bool | property | None | FunctionType),
            part.__name__,
            f"the class sets {old}, which has no effect",
            f"rename it to {new}",
        )
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
    """Refuse a number outside a range, open or closed, and a distribution that leaves it."""
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


class ContinuousQuantile(eqx.Module):
    """Table of ``F⁻¹(Φ(w))`` of a continuous distribution: smooth, accurate to about 1e-8.

    It is piecewise cubic and monotone in w, and constant beyond 8 standard deviations.
    """

    discrete: ClassVar[bool] = False
    coefficients: Float[Array, "4 n"]

    @staticmethod
    def of(distribution: Distribution) -> "ContinuousQuantile":
        """Tabulate a distribution; the survival function keeps the upper half precise."""
        if distribution.improper:
            raise IncompatibleParts(
                f"{distribution!r} is improper and has no quantiles; sample with ReversibleJump(), "
                "or use a proper distribution"
            )
        w, frozen = np.linspace(-REACH, REACH, KNOTS), distribution.frozen
        frozen = distribution.frozen
        values = np.where(w < 0, frozen.ppf(ndtr(w)), frozen.isf(ndtr(-w)))
        if not np.isfinite(values).all():
            raise InvalidInput(
                "distribution", f"{distribution!r} has infinite quantiles", "use lighter tails"
            )
        return ContinuousQuantile(PchipInterpolator(w, values).c)

    def __call__(self, w: Float[Array, "*n"]) -> Float[Array, "*n"]:
        """Return θ at w."""
        step = 2 * REACH / (KNOTS - 1)
        at = (jnp.clip(w, -REACH, REACH) + REACH) / step
        k = jnp.clip(jnp.floor(at).astype(jnp.int32), 0, KNOTS - 2)
        x = (at - k) * step
        cubic = jnp.asarray(self.coefficients)[:, k]
        value: Array = ((cubic[0] * x + cubic[1]) * x + cubic[2]) * x + cubic[3]
        return value


class DiscreteQuantile(eqx.Module):
    """Step function ``F⁻¹(Φ(w))`` of a discrete distribution on ``low, low + 1, …``.

    Attributes
    ----------
    low : float
        Smallest value.
    cumulative : array, shape (m,)
        Probability of each value and all smaller values.
    """

    discrete: ClassVar[bool] = True
    low: Float[Array, ""] | float
    cumulative: Float[Array, " m"]

    @staticmethod
    def of(distribution: Distribution) -> "DiscreteQuantile":
        """Tabulate a distribution; an infinite support is cut where 1e-12 of the mass is left."""
        low, high = distribution.support
        frozen = distribution.frozen
        high = min(high, float(frozen.isf(1e-12)))
        require(
            np.isfinite(low) and high - low < MAX_VALUES,
            "distribution",
            f"{distribution!r} has more than {MAX_VALUES} values",
            "use a narrower distribution",
        )
        cumulative = frozen.cdf(np.arange(low, high + 1))
        return DiscreteQuantile(low, cumulative / cumulative[-1])

    def index(self, w: Float[Array, ""]) -> Array:
        """Return the index of the value at w, from 0."""
        return jnp.searchsorted(jnp.asarray(self.cumulative)[:-1], jax.scipy.special.ndtr(w))

    def __call__(self, w: Float[Array, ""]) -> Float[Array, ""]:
        """Return θ at w."""
        return self.low + self.index(w)

    def probability(self, index: Array) -> Array:
        """Return the probability of the value with an index; 0 outside the table."""
        cumulative = jnp.asarray(self.cumulative)
        inside = (index >= 0) & (index < len(cumulative))
        k = jnp.clip(index, 0, len(cumulative) - 1)
        below = jnp.where(k > 0, cumulative[k - 1], 0.0)
        return jnp.where(inside, cumulative[k] - below, 0.0)

    def coordinate(self, index: Array, share: Array) -> Array:
        """Return the w of a value, at this share of its step."""
        k = jnp.clip(index, 0, len(self.cumulative) - 1)
        below = jnp.where(k > 0, jnp.asarray(self.cumulative)[k - 1], 0.0)
        at = below + share * self.probability(k)
        tiny = np.finfo(np.dtype(at.dtype)).eps
        w: Array = jax.scipy.special.ndtri(jnp.clip(at, tiny, 1 - tiny))
        return w
