"""Class probabilities of K Gaussian fields at a node, by quadrature. Compiled by Numba.

If the fields are independent with means m_k and deviations s_k, the largest is class k with
probability ``∫ φ((t − m_k)/s_k)/s_k ∏_{l ≠ k} Φ((t − m_l)/s_l) dt``. A trapezoid rule has an error
below 1e-5. For dependent fields, only differences matter; `comparable_variances` are those of the
independent fields whose differences have the same variances, by least squares.
"""

from typing import Any, no_type_check

import numpy as np
from jaxtyping import Float

from graphuq.results.summaries.random_label import REACH, STEPS_PER_UNIT, TABLES
from graphuq.utils.arrays import njit_cached

WIDTH = 5.0  # deviations on both sides of a mean, outside of which nothing is integrated
STEP = 0.6  # step of the trapezoid rule, in the smallest deviation of a class that matters
MAX_POINTS = 400  # of the rule, reached if deviations differ by a factor of more than 20


def largest_shares(
    mean: Float[np.ndarray, "B K"], std: Float[np.ndarray, "B K"]
) -> Float[np.ndarray, "B K"]:
    """Return the probability that each of K independent Gaussians is the largest.

    Parameters
    ----------
    mean, std : numpy.ndarray, shape (B, K)
        Deviations may be 0; Gaussians that are equal share the probability.
    """
    shares = np.empty(mean.shape)
    _fill_shares(
        np.ascontiguousarray(mean, dtype=np.float64),
        np.ascontiguousarray(std, dtype=np.float64),
        TABLES,
        shares,
    )
    return shares


def comparable_variances(
    covariance: Float[np.ndarray, "K K *n"],
) -> Float[np.ndarray, "K *n"]:
    """Return v with ``v_k + v_l ≈ Var(u_k − u_l)`` by least squares, which is exact up to K = 3.

    Parameters
    ----------
    covariance : numpy.ndarray, shape (K, K, ...)
        Covariances of the K fields. The map is linear, so that further axes may hold matrices of
        a quadratic form.
    """
    n_classes = len(covariance)
    own = np.einsum("kk...->k...", covariance)
    total = own.sum(axis=0)
    # Sum over l of Var(u_k − u_l).
    reach = n_classes * own + total - 2 * covariance.sum(axis=1)
    if n_classes == 2:
        return np.asarray(reach / 2)
    return np.asarray((reach - reach.sum(axis=0) / (2 * (n_classes - 1))) / (n_classes - 2))


@njit_cached
@no_type_check
def _fill_shares(mean: Any, std: Any, table: Any, shares: Any) -> None:
    n_rows, n_classes = mean.shape
    rival = np.empty(n_classes, np.int64)
    value = np.empty(n_classes)
    for i in range(n_rows):
        lower = upper = -np.inf
        for k in range(n_classes):
            lower = max(lower, mean[i, k] - WIDTH * std[i, k])
            upper = max(upper, mean[i, k] + WIDTH * std[i, k])
        n, smallest, total = 0, np.inf, 0.0
        for k in range(n_classes):
            shares[i, k] = 0.0
            if mean[i, k] + WIDTH * std[i, k] >= lower:
                rival[n] = k
                n += 1
                smallest = min(smallest, std[i, k])
        if n == 1 or upper == lower:
            for c in range(n):
                shares[i, rival[c]] = 1.0 / n
            continue
        n_points = 2 + int(min((upper - lower) / (STEP * smallest), MAX_POINTS - 2.0))
        step = (upper - lower) / (n_points - 1)
        for g in range(n_points):
            t, product = lower + g * step, 1.0
            for c in range(n):
                k = rival[c]
                at = (t - mean[i, k]) / std[i, k]
                at = min(max((at + REACH) * STEPS_PER_UNIT, 0.0), len(table) - 1.001)
                place = int(at)
                share = at - place
                product *= table[place, 0] + share * (table[place + 1, 0] - table[place, 0])
                hazard = table[place, 1] + share * (table[place + 1, 1] - table[place, 1])
                value[c] = hazard / std[i, k]
            for c in range(n):
                shares[i, rival[c]] += product * value[c]
        for c in range(n):
            total += shares[i, rival[c]]
        for c in range(n):
            shares[i, rival[c]] /= total
