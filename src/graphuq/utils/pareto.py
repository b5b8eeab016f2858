"""Pareto-smoothed importance sampling of many sets of weights in one call.

The algorithm is that of Vehtari, Simpson, Gelman, Yao & Gabry (2024). The numbers equal those of
`arviz.psislw`, which smooths one set at a time.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

MIN_TAIL = 5  # weights in the tail; with fewer, no distribution is fitted
PRIOR_WEIGHTS = 10.0  # weight of the prior of k̂ at 1/2, in observations (Vehtari et al. 2024)
GRID, GRID_PRIOR = 30, 3.0  # constants m and of the prior of Zhang & Stephens (2009)
TINY_SHAPE = 1e-12  # |k̂| below which quantiles are those of the exponential distribution
BLOCK_ELEMENTS = 4_000_000  # sets × grid × tail of one block


class SmoothedWeights(NamedTuple):
    """Normalised weights, and the shape of the Pareto distribution of their tail.

    Attributes
    ----------
    log_weights : numpy.ndarray, shape (B, S)
        The weights of each set add up to 1.
    shape : numpy.ndarray, shape (B,)
        k̂ of the generalised Pareto distribution. Above 0.7, averages with these weights are
        unreliable. It is infinite if there are fewer than 21 draws, and −∞ if weights are equal.
    """

    log_weights: Float[np.ndarray, "B S"]
    shape: Float[np.ndarray, " B"]


def smooth_weights(log_weights: Float[np.ndarray, "B S"]) -> SmoothedWeights:
    """Replace the largest weights of each set by quantiles of a Pareto distribution fitted to them.

    The tail holds ``min(S/5, 3 √S)`` weights.

    Parameters
    ----------
    log_weights : numpy.ndarray, shape (B, S)
        Logs of the raw weights, up to a constant in each set.
    """
    n_sets, n_draws = log_weights.shape
    values = log_weights - log_weights.max(axis=1, keepdims=True)
    shape = np.full(n_sets, np.inf)
    n_tail = int(np.ceil(min(0.2 * n_draws, 3 * np.sqrt(n_draws))))
    if n_tail >= MIN_TAIL:
        step = max(1, BLOCK_ELEMENTS // (n_tail * (GRID + int(np.sqrt(n_tail)))))
        for begin in range(0, n_sets, step):
            part = slice(begin, begin + step)
            shape[part] = _smooth_tails(values[part], n_tail)
    values -= np.log(np.exp(values).sum(axis=1, keepdims=True))
    return SmoothedWeights(values, shape)


def _smooth_tails(values: Float[np.ndarray, "B S"], n_tail: int) -> Float[np.ndarray, " B"]:
    """Smooth the tails in place, and return k̂ of each set."""
    order = np.argsort(values, axis=1, kind="stable")
    cutoff = np.take_along_axis(values, order[:, [-n_tail - 1]], axis=1)
    cutoff = np.maximum(cutoff, np.log(np.finfo(float).tiny))
    tail = np.take_along_axis(values, order[:, -n_tail:], axis=1)
    above = np.maximum(np.exp(tail) - np.exp(cutoff), 0.0)
    varies = above[:, 0] < above[:, -1]
    shape = np.full(len(values), -np.inf)
    shape[varies], scale = fit_pareto(above[varies])
    smoothed = np.log(_quantiles(shape[varies], scale, n_tail) + np.exp(cutoff[varies]))
    # no weight exceeds the largest raw weight
    tail[varies] = np.where(np.isfinite(smoothed), np.minimum(smoothed, 0.0), tail[varies])
    np.put_along_axis(values, order[:, -n_tail:], tail, axis=1)
    return shape


def _quantiles(
    shape: Float[np.ndarray, " B"], scale: Float[np.ndarray, " B"], n: int
) -> Float[np.ndarray, "B n"]:
    """Return the quantiles of Pareto distributions at ``(i + 1/2) / n``."""
    log_rest = np.log1p(-(np.arange(n) + 0.5) / n)
    k = np.where(np.abs(shape) < TINY_SHAPE, TINY_SHAPE, shape)[:, None]
    quantiles: np.ndarray = scale[:, None] * np.expm1(-k * log_rest) / k
    return quantiles


def fit_pareto(
    excess: Float[np.ndarray, "B M"],
) -> tuple[Float[np.ndarray, " B"], Float[np.ndarray, " B"]]:
    """Fit generalised Pareto distributions, as Zhang & Stephens (2009), and return k̂ and σ.

    k̂ is shrunk towards 1/2, as if ten observations of 1/2 were added (Vehtari et al. 2024).

    Parameters
    ----------
    excess : numpy.ndarray, shape (B, M)
        Observations >= 0 in ascending order; the last of each set is positive.
    """
    n = excess.shape[1]
    n_grid = GRID + int(np.sqrt(n))
    quarter = excess[:, [int(n / 4 + 0.5) - 1]]
    quarter = np.where(quarter > 0, quarter, excess[:, [-1]] / n)  # ties with the cutoff
    theta = 1 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))
    theta = theta / (GRID_PRIOR * quarter) + 1 / excess[:, [-1]]
    k = np.log1p(-theta[:, :, None] * excess[:, None, :]).mean(axis=2)
    profile = n * (np.log(-theta / k) - k - 1)
    weights = np.exp(profile - profile.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    weights[weights < 10 * np.finfo(float).eps] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    mean_theta = (weights * theta).sum(axis=1)
    shape = np.log1p(-mean_theta[:, None] * excess).mean(axis=1)
    scale = -shape / mean_theta
    return (n * shape + PRIOR_WEIGHTS * 0.5) / (n + PRIOR_WEIGHTS), scale
