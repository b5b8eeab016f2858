"""Distributions of hyperparameters: those of SciPy, by name and parameters."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy import stats

from graphuq.errors import ImproperPriorWarning, InvalidInput, require
from graphuq.utils.checks import check_integer, check_number, describe, require_scale
from graphuq.utils.user_warnings import warn_user

ROUNDING = 1e-12  # of a sum of probabilities


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
        listed = isinstance(parameters, list | tuple | np.ndarray)
        require(listed, "parameters", describe(parameters), "give a tuple of numbers")
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

    def log_probabilities(self, numbers: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the log probability of each integer, if values are integers."""
        return np.asarray(self.frozen.logpmf(numbers))

    def up_to(self, high: int) -> "Distribution":
        """Return the distribution of an integer, given that it is at most ``high``."""
        return Categorical(self.frozen.pmf(np.arange(high + 1)))

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


class Categorical(Distribution):
    """Distribution of the numbers 0, 1, …, M − 1 with given probabilities.

    Its support goes from the first to the last number whose probability is positive.

    Parameters
    ----------
    probabilities : array_like, shape (M,)
        At least two, none negative; they are divided by their sum.

    Raises
    ------
    InvalidInput
        If there are fewer than two numbers, or one is negative, or all are zero.

    Examples
    --------
    >>> import graphuq as gq
    >>> gq.Categorical([1, 2, 1]).support
    (0.0, 2.0)
    """

    def __init__(self, probabilities: ArrayLike) -> None:
        remedy = "give at least two probabilities, none negative, with a positive sum"
        try:
            values = np.asarray(probabilities, dtype=float)
        except (TypeError, ValueError):
            require(False, "probabilities", f"{describe(probabilities)}", remedy)
        proper = values.ndim == 1 and len(values) > 1 and bool((values >= 0).all())
        if not (proper and 0 < values.sum() < np.inf):  # only then is the text made
            raise InvalidInput("probabilities", f"{probabilities!r}", remedy)
        if abs(values.sum() - 1) > ROUNDING:  # so that a stored distribution is made again exactly
            values = values / values.sum()
        self.name, self.parameters = "categorical", tuple(values.tolist())

    @property
    def frozen(self) -> Any:
        """Frozen distribution of SciPy."""
        return stats.rv_discrete(values=(np.arange(len(self.parameters)), self.parameters))

    def log_probabilities(self, numbers: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the log probability of each number, −∞ of others than 0 to M − 1."""
        known = (numbers >= 0) & (numbers < len(self.parameters))
        found = np.full(np.shape(numbers), -np.inf)
        with np.errstate(divide="ignore"):
            found[known] = np.log(np.asarray(self.parameters)[numbers[known]])
        return found

    @property
    def discrete(self) -> bool:
        """Whether its values are integers: yes."""
        return True

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest value of positive probability."""
        possible = np.flatnonzero(self.parameters)
        return float(possible[0]), float(possible[-1])

    def stored_fields(self) -> dict[str, Any]:
        """Return the argument of the constructor."""
        return {"probabilities": list(self.parameters)}

    def __repr__(self) -> str:
        return f"Categorical({len(self.parameters)} values)"


_SHORT: dict[str, tuple[str, Callable[..., tuple[float, ...]]]] = {
    "uniform": ("Uniform", lambda low, width: (low, low + width)),
    "loguniform": ("LogUniform", lambda low, high, *_: (low, high)),
    "lognorm": ("LogNormal", lambda log_std, _, median: (median, log_std)),
    "gamma": ("Gamma", lambda shape, _, scale: (shape, 1 / scale)),
    "poisson": ("Poisson", lambda mean, low: (mean, low)),
    "nbinom": ("NegativeBinomial", lambda n, p, low: (n * (1 - p) / p, n, low)),
    "randint": ("DiscreteUniform", lambda low, end, *_: (low, end - 1)),
}

Hyperparameter = Any
"""Number or `Distribution`; an array inside a chain that learns it."""


def _check_numbers(**values: object) -> None:
    for name, value in values.items():
        check_number(name, value, "use a number")
        require_scale(name, value)


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
        warn_user(
            f"Gamma({shape:g}, {rate:g}) has infinite mass, and so has the posterior of its scale. "
            "Labels never exclude a zero field (rate 0) or an unbounded field (shape 0). Chains "
            "may look converged although they are not; use Gamma(1, 0.001), which is proper.",
            ImproperPriorWarning,
        )
    return Distribution("gamma", (float(shape), 0.0, 1 / float(rate) if rate else np.inf))


def DiscreteUniform(low: int, high: int) -> Distribution:
    """Return the uniform distribution on the integers low, …, high."""
    for name, value in (("low", low), ("high", high)):
        check_integer(name, value, "use an integer")
    require(low < high, "low", f"{low!r} is not below {high!r}", "use low < high")
    return Distribution("randint", (low, high + 1))


def Poisson(mean: float | int, low: int = 0) -> Distribution:
    """Return ``low`` plus a Poisson number with this mean.

    As the number of eigenvectors of `RandomSeries` or `Matern`, at least 1 or 2, it is cut at the
    number of computed ones.
    """
    _check_numbers(mean=mean)
    check_integer("low", low, "use an integer")
    require(mean > 0, "mean", f"{mean!r} is not positive", "use mean > 0")
    return Distribution("poisson", (float(mean), low))


def NegativeBinomial(mean: float | int, shape: float | int, low: int = 0) -> Distribution:
    """Return ``low`` plus a Poisson number whose rate is ``Gamma(shape, shape / mean)``.

    Its variance is ``mean + mean² / shape``; a geometric number has shape 1.
    """
    _check_numbers(mean=mean, shape=shape)
    check_integer("low", low, "use an integer")
    require(mean > 0, "mean", f"{mean!r} is not positive", "use mean > 0")
    require(shape > 0, "shape", f"{shape!r} is not positive", "use shape > 0")
    return Distribution("nbinom", (float(shape), float(shape / (shape + mean)), low))
