"""Values at labels, drawn one after another; compiled by Numba."""

import math
from typing import Any, NamedTuple, no_type_check

import numpy as np

from graphuq.utils.arrays import njit_cached, parallel_map

PARTS = 8  # of the draws, each with a generator of its own, however many cores there are


class Conditionals(NamedTuple):
    """The law of each value given those before it, all of shape (J,) but the root.

    With ``m = center + root[j, :j] z[:j]``, z the whitened values before, the value is Gaussian
    of mean ``c = slope m + shift`` and deviation ``std`` but for its own label, which a Gaussian
    site in place of the likelihood would give ``exp(constant + c (linear − square c))``.
    """

    root: Any  # (J, J): lower Cholesky factor of the covariance that all sites leave
    center: Any
    slope: Any
    shift: Any
    std: Any
    constant: Any
    linear: Any
    square: Any
    labels: Any  # ±1
    right: Any  # log likelihood on the label's own side
    wrong: Any  # and on the other


def ghk_draws(law: Conditionals, rng: np.random.Generator, n: int) -> tuple[Any, Any, Any]:
    """So many independent draws.

    Returns
    -------
    z : numpy.ndarray, shape (n, J)
        Whitened values.
    log_likelihood, log_weight : numpy.ndarray, shape (n,)
        Of the labels at these values; and the posterior's log density over the draws', up to a
        constant.
    """
    z, values, weights = np.empty((n, len(law.labels))), np.empty(n), np.empty(n)
    bounds = np.linspace(0, n, PARTS + 1).astype(int).tolist()

    def make(rng: np.random.Generator, begin: int, end: int) -> None:
        _draw(law, rng, z[begin:end], values[begin:end], weights[begin:end])

    parallel_map(make, rng.spawn(PARTS), bounds[:-1], bounds[1:])
    return z, values, weights


@njit_cached
@no_type_check
def _draw(law: Any, rng: Any, z: Any, values: Any, weights: Any) -> None:
    n_draws, n_labels = z.shape
    for i in range(n_draws):
        value = weight = 0.0
        for j in range(n_labels):
            mean = law.center[j]
            for k in range(j):
                mean += law.root[j, k] * z[i, k]
            center, own = law.slope[j] * mean + law.shift[j], law.labels[j]
            lead = own * center / law.std[j]
            floor = math.exp(law.wrong[j])
            rise = math.exp(law.right[j]) - floor
            share = _normal_cdf(lead)
            total = floor + rise * share
            if total > 0:
                weight += math.log(total)
            else:
                weight += math.log(rise) + _log_tail(lead)
            weight -= law.constant[j] + center * (law.linear[j] - law.square[j] * center)
            if floor > 0 and rng.random() * total < floor:
                x = rng.standard_normal()  # as if it had no label
                value += law.right[j] if x > -lead else law.wrong[j]
            else:
                x = _above(rng, -lead)
                value += law.right[j]
            z[i, j] = (center + law.std[j] * own * x - mean) / law.root[j, j]
        values[i], weights[i] = value, weight


@njit_cached
@no_type_check
def _normal_cdf(x: Any) -> float:
    return 0.5 * math.erfc(-x * 0.7071067811865476)


@njit_cached
@no_type_check
def _log_tail(x: Any) -> float:
    """``log Φ(x)`` where Φ(x) is no number any more: x below −37."""
    return -0.5 * x * x - math.log(-x * 2.5066282746310002) + math.log1p(-1 / (x * x))


@njit_cached
@no_type_check
def _above(rng: Any, least: Any) -> float:
    """A standard normal above a bound: of an exponential's draws where it is rare (Robert 1995)."""
    if least <= 0:
        x = rng.standard_normal()
        while x <= least:
            x = rng.standard_normal()
        return x
    rate = (least + math.sqrt(least * least + 4)) / 2
    while True:
        x = least + rng.standard_exponential() / rate
        if rng.random() <= math.exp(-0.5 * (x - rate) ** 2):
            return x
