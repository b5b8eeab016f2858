r"""Poisson counts whose log rate is normal: masses, moments and distribution function.

    y ~ Poisson(e^h),    h ~ N(m, v)

All integrals are sums by the trapezoidal rule, whose error falls exponentially in the number of
points for such smooth integrands. With the mode h* and ``r = e^{h*}`` the logarithm of the
integrand falls off as ``r (e^d − 1 − d) + d²/(2v)`` at distance d from it, whatever y is. So the
ends have closed forms. See docs/theory/numbers.md, "Counts as labels".
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import gammaincc, gammaln, ndtr, polygamma, wrightomega

DEPTH = 36.0  # logarithms between the mode and the ends of a grid: e^-36 is below all digits
N_POINTS = 160  # of a grid
N_NORMAL = 49  # points of a standard normal number, within ± 7
SMALLEST_VARIANCE = 1e-24  # of a log rate: a deviation of 1e-12 changes no digit that is shown


class Sites(NamedTuple):
    """Counts seen through the normal distributions of their log rates.

    Attributes
    ----------
    log_mass : numpy.ndarray, shape (J,)
        ``log P(y)``.
    mean, variance : numpy.ndarray, shape (J,)
        Of the normal factor in h that changes mean and variance of h as the count y does.
    """

    log_mass: Float[np.ndarray, " J"]
    mean: Float[np.ndarray, " J"]
    variance: Float[np.ndarray, " J"]


def sites_of(
    counts: Float[np.ndarray, " J"],
    mean: Float[np.ndarray, " J"],
    variance: Float[np.ndarray, " J"],
) -> Sites:
    """Return log masses of counts, and the normal factors that stand for them.

    Parameters
    ----------
    counts : numpy.ndarray, shape (J,)
    mean, variance : numpy.ndarray, shape (J,)
        Of the log rate, exposure included.
    """
    v = np.maximum(variance, SMALLEST_VARIANCE)
    mode = mean + v * counts - wrightomega(mean + v * counts + np.log(v))
    for _ in range(2):  # rounding of the closed form, where v y is large
        rate = np.exp(mode)
        mode = mode + (counts - rate - (mode - mean) / v) / (rate + 1 / v)
    rate = np.exp(mode)
    distance, width = _grid(rate, v)
    fall = rate[:, None] * (np.expm1(distance) - distance) + distance**2 / (2 * v[:, None])
    share = width * np.exp(-fall)
    total = share.sum(axis=1)
    peak = counts * mode - rate - gammaln(counts + 1) - (mode - mean) ** 2 / (2 * v)
    log_mass = peak + np.log(total) - 0.5 * np.log(2 * np.pi * v)
    share /= total[:, None]
    return Sites(log_mass, *_factor(counts, mean, v, mode, rate, distance, share))


def _factor(
    counts: Float[np.ndarray, " J"],
    mean: Float[np.ndarray, " J"],
    v: Float[np.ndarray, " J"],
    mode: Float[np.ndarray, " J"],
    rate: Float[np.ndarray, " J"],
    distance: Float[np.ndarray, "J n"],
    share: Float[np.ndarray, "J n"],
) -> tuple[Float[np.ndarray, " J"], Float[np.ndarray, " J"]]:
    """Return mean and variance of the normal factors.

    They are the moments given y divided by those before it. Where y says little (r v < 1), that
    is a small difference of large numbers, and the derivatives of ``log P(y)`` in the mean take
    its place: y minus the mean rate given y, and minus that mean plus the variance of the rate.
    """
    shift = (share * distance).sum(axis=1)
    own = (share * (distance - shift[:, None]) ** 2).sum(axis=1)
    rates = rate[:, None] * np.exp(distance)
    mean_rate = (share * rates).sum(axis=1)
    curvature = mean_rate - (share * (rates - mean_rate[:, None]) ** 2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # where the other form is used
        by_moments = own * v / (v - own)
        at_moments = by_moments * ((mode + shift) / own - mean / v)
        by_slope, at_slope = 1 / curvature - v, mean + (counts - mean_rate) / curvature
    little = rate * v < 1
    return np.where(little, at_slope, at_moments), np.where(little, by_slope, by_moments)


def mass_up_to(
    counts: Float[np.ndarray, " M"], mean: Float[np.ndarray, " M"], std: Float[np.ndarray, " M"]
) -> Float[np.ndarray, " M"]:
    """Return ``P(Y <= y)``, which is 0 for y = −1.

    With G ~ Gamma(y + 1), ``P(Y <= y) = P(h < log G)``. The sum is over the narrower of h and
    log G, along which the distribution function of the other one is smooth.
    """
    found = np.zeros(len(counts))
    narrow = std <= np.sqrt(polygamma(1, np.maximum(counts, 0.0) + 1))
    a, b = np.flatnonzero((counts >= 0) & narrow), np.flatnonzero((counts >= 0) & ~narrow)
    x = np.linspace(-7.0, 7.0, N_NORMAL)
    weights = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    rates = np.exp(mean[a, None] + std[a, None] * x)
    found[a] = gammaincc(counts[a, None] + 1, rates) @ weights
    shape = counts[b] + 1
    distance, width = _grid(shape, np.full(len(b), np.inf))
    share = width * np.exp(-shape[:, None] * (np.expm1(distance) - distance))
    log_gamma = np.log(shape)[:, None] + distance
    below = ndtr((log_gamma - mean[b, None]) / std[b, None])
    found[b] = (share * below).sum(axis=1) / share.sum(axis=1)
    return found


def _grid(
    rate: Float[np.ndarray, " J"], variance: Float[np.ndarray, " J"]
) -> tuple[Float[np.ndarray, "J n"], Float[np.ndarray, "J n"]]:
    """Return distances from the mode at which integrands are summed, and the width of each.

    The fall f is at least `DEPTH` at the ends. Each term of f alone gives a bound: to the right
    ``e^d − 1 − d >= q`` from ``d = log(1 + q + √(2q))`` on, and to the left from the root of
    ``d² = q (2 + |d|)`` on, as ``e^d >= (2 + d)/(2 − d)`` there. Distances from a centre are
    ``s sinh(t)`` at even t: close together within s, and wide apart where only the normal
    distribution varies. The centre is the mode or, where the rate is small there, a rate of 1.
    """
    with np.errstate(divide="ignore", over="ignore"):
        q = np.minimum(DEPTH / rate, 1e100)
        to_one = np.maximum(-np.log(rate), 0.0)
    normal = np.sqrt(2 * DEPTH * variance)
    own = 1 / np.sqrt(rate + 1 / variance)
    right = np.minimum(normal, np.log1p(q + np.sqrt(2 * q)))
    right = np.minimum(right, np.sqrt(2 * DEPTH) * own)
    left = np.minimum(normal, (q + np.sqrt(q * (q + 8))) / 2)
    scale = np.minimum(1.0, 3 * own)[:, None]
    centre = np.minimum(to_one, right)[:, None]
    begin = -np.arcsinh((left[:, None] + centre) / scale)
    end = np.arcsinh((right[:, None] - centre) / scale)
    step = (end - begin) / (N_POINTS - 1)
    t = begin + np.arange(N_POINTS) * step
    return centre + scale * np.sinh(t), scale * np.cosh(t) * step
