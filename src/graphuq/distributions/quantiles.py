"""Quantiles ``F⁻¹(Φ(w))`` of distributions as tables."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtr

from graphuq.distributions.base import Distribution
from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.utils.arrays import Array, array_namespace, special_functions
from graphuq.utils.part import Part

REACH = 8.0  # standard deviations; the mass beyond is 1e-15
KNOTS, MAX_VALUES = 2049, 100_000  # points of a quantile table; values of a discrete distribution


class ContinuousQuantile(Part):
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
        xp, step = array_namespace(w), 2 * REACH / (KNOTS - 1)
        at = (xp.clip(w, -REACH, REACH) + REACH) / step
        k = xp.clip(xp.floor(at).astype("int32"), 0, KNOTS - 2)
        x = (at - k) * step
        cubic = xp.asarray(self.coefficients)[:, k]
        value: Array = ((cubic[0] * x + cubic[1]) * x + cubic[2]) * x + cubic[3]
        return value


class DiscreteQuantile(Part):
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
        xp, below = array_namespace(w), special_functions(w).ndtr(w)
        return xp.searchsorted(xp.asarray(self.cumulative)[:-1], below)

    def __call__(self, w: Float[Array, ""]) -> Float[Array, ""]:
        """Return θ at w."""
        return self.low + self.index(w)

    def probability(self, index: Array) -> Array:
        """Return the probability of the value with an index; 0 outside the table."""
        xp = array_namespace(index)
        cumulative = xp.asarray(self.cumulative)
        inside = (index >= 0) & (index < len(cumulative))
        k = xp.clip(index, 0, len(cumulative) - 1)
        below = xp.where(k > 0, cumulative[k - 1], 0.0)
        return xp.where(inside, cumulative[k] - below, 0.0)

    def coordinate(self, index: Array, share: Array) -> Array:
        """Return the w of a value, at this share of its step."""
        xp = array_namespace(index)
        k = xp.clip(index, 0, len(self.cumulative) - 1)
        below = xp.where(k > 0, xp.asarray(self.cumulative)[k - 1], 0.0)
        at = below + share * self.probability(k)
        tiny = np.finfo(np.dtype(at.dtype)).eps
        w: Array = special_functions(at).ndtri(xp.clip(at, tiny, 1 - tiny))
        return w
