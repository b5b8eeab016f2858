"""Distributions of the numbers that are predicted, one for each row."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int
from scipy.special import stdtrit
from scipy.stats import norm, poisson
from scipy.stats import t as student

from graphuq.errors import require
from graphuq.evidence.poisson_lognormal import mass_up_to, sites_of
from graphuq.graphs.features import row_blocks
from graphuq.utils.concurrency import cached_property

MAX_RATE = 1e15  # of simulated counts and of bounds of intervals: whole numbers are exact below
POINTS = 240  # numbers that a row needs while a sum over a grid is computed


class Predictive(ABC):
    """A distribution for each of M rows.

    Attributes
    ----------
    mean, std : numpy.ndarray, shape (M,)
    """

    is_whole: ClassVar[bool] = False  # ends of intervals are whole numbers
    mean: Float[np.ndarray, " M"]
    std: Float[np.ndarray, " M"]

    def at(self, rows: Any) -> "Predictive":
        """Return the distributions of some of the rows."""
        own: Any = self
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(own)))

    @abstractmethod
    def quantile(self, level: float) -> Float[np.ndarray, " M"]:
        """Return the smallest number of each row up to which there is a given probability."""

    def interval(self, coverage: float) -> Float[np.ndarray, "M 2"]:
        """Return the interval of each row, of equal tails, that holds a given probability.

        Raises
        ------
        InvalidInput
            If ``coverage`` is not a probability.
        """
        require(
            0 < coverage < 1,
            "coverage",
            f"{coverage!r}",
            "use a probability between 0 and 1, such as 0.9",
        )
        return np.column_stack([self.quantile((1 + side * coverage) / 2) for side in (-1, 1)])

    def inside(
        self, numbers: Float[np.ndarray, "*S M"], coverage: float
    ) -> Float[np.ndarray, "*S M"]:
        """Return how far each number counts as inside an interval, so that the mean is exact.

        It is 1 inside and 0 outside. Of counts, an end itself is inside to the part that makes up
        the probability (Czado, Gneiting & Held 2009, Biometrics 65).
        """
        low, high = (1 - coverage) / 2, (1 + coverage) / 2
        return self.below(numbers, high) - self.below(numbers, low)

    @abstractmethod
    def below(self, numbers: Float[np.ndarray, "*S M"], level: float) -> Float[np.ndarray, "*S M"]:
        """Return how far each number is below a quantile; its mean under the model is the level."""

    @abstractmethod
    def simulated(
        self, standard: Float[np.ndarray, "S M"], rng: np.random.Generator
    ) -> Float[np.ndarray, "S M"]:
        """Return numbers whose field and noise are as many deviations from their mean as given."""


@dataclass(frozen=True, eq=False)
class StudentT(Predictive):
    """Student's t for each row, by its mean and deviation.

    Parameters
    ----------
    mean, std : numpy.ndarray, shape (M,)
    degrees : numpy.ndarray, shape (M,)
        Degrees of freedom, above 2; infinite for a normal distribution.
    """

    mean: Float[np.ndarray, " M"]
    std: Float[np.ndarray, " M"]
    degrees: Float[np.ndarray, " M"]

    @property
    def scale(self) -> Float[np.ndarray, " M"]:
        """Unit of each row in which it is Student's t."""
        return self.std * np.sqrt(1 - 2 / self.degrees)

    def quantile(self, level: float) -> Float[np.ndarray, " M"]:
        """Return the quantile of each row."""
        return self.mean + stdtrit(self.degrees, level) * self.scale

    def log_density(self, numbers: Float[np.ndarray, " M"]) -> Float[np.ndarray, " M"]:
        """Return the log density of each number."""
        return np.asarray(student.logpdf(numbers, self.degrees, self.mean, self.scale))

    def below(self, numbers: Float[np.ndarray, "*S M"], level: float) -> Float[np.ndarray, "*S M"]:
        """Return 1 below the quantile and 0 above it."""
        return np.asarray(numbers <= self.quantile(level), dtype=np.float64)

    def simulated(
        self, standard: Float[np.ndarray, "S M"], rng: np.random.Generator
    ) -> Float[np.ndarray, "S M"]:
        """Return numbers at given normal deviations, which a simulation widens in all rows alike.

        Hyperparameters are those of all rows. The chi-square variable of each degree is that of
        one normal number (Wilson & Hilferty 1931).
        """
        part = 2 / (9 * self.degrees)
        shared = 1 - part + rng.normal(size=(len(standard), 1)) * np.sqrt(part)
        widen = np.sqrt((1 - 2 / self.degrees) / np.maximum(shared, 0.05) ** 3)
        return self.mean + self.std * standard * widen


@dataclass(frozen=True, eq=False)
class LogNormal(Predictive):
    """A rate for each row, whose logarithm is normal.

    Parameters
    ----------
    log_mean, log_std : numpy.ndarray, shape (M,)
        Mean and standard deviation of the logarithm.
    """

    log_mean: Float[np.ndarray, " M"]
    log_std: Float[np.ndarray, " M"]

    @cached_property
    def mean(self) -> Float[np.ndarray, " M"]:  # type: ignore[override]
        """Mean of each rate."""
        return np.exp(self.log_mean + self.log_std**2 / 2)

    @cached_property
    def std(self) -> Float[np.ndarray, " M"]:  # type: ignore[override]
        """Standard deviation of each rate."""
        return self.mean * np.sqrt(np.expm1(self.log_std**2))

    def quantile(self, level: float) -> Float[np.ndarray, " M"]:
        """Return the quantile of each row."""
        return np.exp(self.log_mean + norm.ppf(level) * self.log_std)

    def below(self, numbers: Float[np.ndarray, "*S M"], level: float) -> Float[np.ndarray, "*S M"]:
        """Return 1 below the quantile and 0 above it."""
        return np.asarray(numbers <= self.quantile(level), dtype=np.float64)

    def simulated(
        self, standard: Float[np.ndarray, "S M"], rng: np.random.Generator
    ) -> Float[np.ndarray, "S M"]:
        """Return rates at given deviations; nothing is left to chance."""
        return np.exp(self.log_mean + self.log_std * standard)


@dataclass(frozen=True, eq=False)
class PoissonLogNormal(Predictive):
    """A count for each row: Poisson, with a rate whose logarithm is normal.

    Parameters
    ----------
    log_mean, log_std : numpy.ndarray, shape (M,)
        Mean and standard deviation of the logarithm of the rate, exposure included.
    """

    is_whole: ClassVar[bool] = True
    log_mean: Float[np.ndarray, " M"]
    log_std: Float[np.ndarray, " M"]

    @cached_property
    def mean(self) -> Float[np.ndarray, " M"]:  # type: ignore[override]
        """Mean of each count."""
        return LogNormal(self.log_mean, self.log_std).mean

    @cached_property
    def std(self) -> Float[np.ndarray, " M"]:  # type: ignore[override]
        """Standard deviation of each count: that of the rate, and that of Poisson."""
        return np.sqrt(self.mean + LogNormal(self.log_mean, self.log_std).std ** 2)

    def log_mass(self, counts: Float[np.ndarray, " M"]) -> Float[np.ndarray, " M"]:
        """Return the log probability of each count."""
        found = np.empty(len(counts))
        for part in row_blocks(len(counts), POINTS):
            at = counts[part], self.log_mean[part], self.log_std[part] ** 2
            found[part] = sites_of(*at).log_mass
        return found

    def up_to(self, counts: Float[np.ndarray, " M"]) -> Float[np.ndarray, " M"]:
        """Return the probability of at most as many as a count; 0 for −1."""
        return self._up_to(counts, np.arange(len(counts)))

    def _up_to(
        self, counts: Float[np.ndarray, " n"], rows: Int[np.ndarray, " n"]
    ) -> Float[np.ndarray, " n"]:
        found = np.empty(len(counts))
        for part in row_blocks(len(counts), POINTS):
            own = rows[part]
            found[part] = mass_up_to(counts[part], self.log_mean[own], self.log_std[own])
        return found

    def quantile(self, level: float) -> Float[np.ndarray, " M"]:
        """Return the smallest count of each row up to which there is a given probability.

        It lies between two bounds: half of the probability is left to the rate, and the other half
        to the count given the rate. Bisection ends in whole numbers.
        """
        under, over = level / 2, (1 - level) / 2
        low = poisson.ppf(under, self._rate_at(norm.ppf(under))) - 1
        high = poisson.isf(over, self._rate_at(norm.isf(over)))
        while len(left := np.flatnonzero(low + 1 < high)):
            middle = np.floor((low[left] + high[left]) / 2)
            enough = self._up_to(middle, left) >= level
            low[left[~enough]], high[left[enough]] = middle[~enough], middle[enough]
        return high

    def _rate_at(self, deviations: float) -> Float[np.ndarray, " M"]:
        return np.minimum(np.exp(self.log_mean + deviations * self.log_std), MAX_RATE)

    def below(self, numbers: Float[np.ndarray, "*S M"], level: float) -> Float[np.ndarray, "*S M"]:
        """Return 1 below the quantile, 0 above it, and at it the part that makes up the level."""
        end = self.quantile(level)
        before = self.up_to(end - 1)
        part = (level - before) / (self.up_to(end) - before)
        return np.where(numbers == end, part, np.asarray(numbers < end, dtype=np.float64))

    def simulated(
        self, standard: Float[np.ndarray, "S M"], rng: np.random.Generator
    ) -> Float[np.ndarray, "S M"]:
        """Return counts whose log rates lie at given deviations."""
        rates = np.minimum(np.exp(self.log_mean + self.log_std * standard), MAX_RATE)
        return rng.poisson(rates).astype(np.float64)
