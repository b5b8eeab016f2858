"""The GHK simulator: values at the labels, drawn one after another. Compiled by Numba."""

import math
from typing import Any, NamedTuple, no_type_check

import numpy as np

from graphuq.utils.arrays import njit_cached, parallel_map

PARTS = 8  # parts of the draws with own generators; independent of the number of cores


class Conditionals(NamedTuple):
    """Conditional distribution of each value given those before it.

    Let z be the whitened values before label j and ``m = center + root[j, :j] z[:j]``. Without
    its own label the value is Gaussian with mean ``c = slope m + shift`` and standard deviation
    ``std``. A Gaussian site in place of the likelihood gives its label the probability
    ``exp(constant + c (linear − square c))``. All arrays have shape (J,) except ``root``.
    """

    root: Any  # (J, J): lower Cholesky factor of the covariance given all sites
    center: Any
    slope: Any
    shift: Any
    std: Any
    constant: Any
    linear: Any
    square: Any
    labels: Any  # ±1
    right: Any  # log likelihood of a value on the label's own side
    wrong: Any  # log likelihood of a value on the other side


def ghk_draws(conditionals: Conditionals, rng: np.random.Generator, n: int) -> tuple[Any, Any, Any]:
    """Make independent draws.

    Returns
    -------
    z : numpy.ndarray, shape (n, J)
        Whitened values.
    log_likelihood, log_weight : numpy.ndarray, shape (n,)
        Log likelihood of the labels at these values. Log density of the posterior over the
        density of the draws, up to a constant.
    """
    z, values, weights = np.empty((n, len(conditionals.labels))), np.empty(n), np.empty(n)
    bounds = np.linspace(0, n, PARTS + 1).astype(int).tolist()

    def make(rng: np.random.Generator, begin: int, end: int) -> None:
        _draw(conditionals, rng, z[begin:end], values[begin:end], weights[begin:end])

    parallel_map(make, rng.spawn(PARTS), bounds[:-1], bounds[1:])
    return z, values, weights


@njit_cached
@no_type_check
def _draw(given: Any, rng: Any, z: Any, values: Any, weights: Any) -> None:
    n_draws, n_labels = z.shape
    for i in range(n_draws):
        value = weight = 0.0
        for j in range(n_labels):
            mean = given.center[j]
            for k in range(j):
                mean += given.root[j, k] * z[i, k]
            center, own = (
                given.slope[j] * mean + given.shift[j],
                given.labels[j],
            )
            lead = own * center / given.std[j]
            floor = math.exp(given.wrong[j])
            rise = math.exp(given.right[j]) - floor
            share = _normal_cdf(lead)
            total = floor + rise * share
            if total > 0:
                weight += math.log(total)
            else:
                weight += math.log(rise) + _log_tail(lead)
            weight -= given.constant[j] + center * (given.linear[j] - given.square[j] * center)
            if floor > 0 and rng.random() * total < floor:
                x = rng.standard_normal()  # from the prior, as if there were no label
                value += given.right[j] if x > -lead else given.wrong[j]
            else:
                x = _normal_above(rng, -lead)
                value += given.right[j]
            z[i, j] = (center + given.std[j] * own * x - mean) / given.root[j, j]
        values[i], weights[i] = value, weight


@njit_cached
@no_type_check
def _normal_cdf(x: Any) -> float:
    return 0.5 * math.erfc(-x * 0.7071067811865476)


@njit_cached
@no_type_check
def _log_tail(x: Any) -> float:
    """Return ``log Φ(x)`` for x below −37, where Φ(x) underflows."""
    return -0.5 * x * x - math.log(-x * 2.5066282746310002) + math.log1p(-1 / (x * x))


@njit_cached
@no_type_check
def _normal_above(rng: Any, least: Any) -> float:
    """Draw a standard normal above a bound, by exponential proposals in the tail (Robert 1995)."""
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
