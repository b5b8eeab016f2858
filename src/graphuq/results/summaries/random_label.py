"""Class probabilities given K fields, with noise of the label itself. Compiled by Numba.

With independent noise ε_k the largest of ``a_k + ε_k`` is class k with probability
``∫ φ(t − a_k) ∏_{l ≠ k} Φ(t − a_l) dt``: the multinomial probit (Riihimäki, Jylänki & Vehtari 2013,
(2)). It is exact for two classes and a trapezoid rule for more, with an error below 1e-5.
"""

import math
from typing import Any, no_type_check

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from graphuq.results.summaries.base import Link
from graphuq.utils.arrays import njit_cached
from graphuq.utils.special_functions import normal_hazard

STEPS_PER_UNIT = 128  # of the tables, which are interpolated linearly: error below 1e-5
REACH = 9.0  # Φ is 0 below −9 and 1 above 9 in the table
_AT = np.linspace(-REACH, REACH, int(2 * REACH) * STEPS_PER_UNIT + 1)
TABLES = np.stack([ndtr(_AT), normal_hazard(_AT)], axis=1)  # Φ, and φ/Φ
BEHIND = 8.0  # a class this far behind the largest mean has a probability below 1e-8
BELOW, ABOVE, N_POINTS = 4.0, 4.5, 16  # range of the integral around the largest mean
# Φ and φ/Φ at all points of the rule, one row for each mean behind the largest: a row is what the
# processor reads at once.
_POINTS = np.arange(int(BEHIND) * STEPS_PER_UNIT + 2)[:, None] / STEPS_PER_UNIT + np.linspace(
    -BELOW, ABOVE, N_POINTS
)
RULE = np.concatenate([ndtr(_POINTS), normal_hazard(_POINTS)], axis=1).astype(np.float32)


def class_shares(u: Float[np.ndarray, "B S K"], link: Link = None) -> Float[np.ndarray, "B S K"]:
    """Return the probability of each class given u, in every draw.

    Parameters
    ----------
    u : numpy.ndarray, shape (B, S, K)
        Fields; −inf for a class that does not exist.
    link : tuple of numpy.ndarray, optional
        See `Likelihood.link`. Without it the class is that of the largest field, and fields that
        are exactly equal share it.
    """
    if link is None:
        largest = (u == u.max(axis=2, keepdims=True)).astype(np.float64)
        return largest / largest.sum(axis=2, keepdims=True)
    by_class = np.swapaxes(u, 1, 2)
    shares = [
        weight * random_label_shares(by_class, np.full((1, 1), scale), u.shape[1])
        for weight, scale in zip(*link, strict=True)
    ]
    return np.asarray(sum(shares))


def random_label_shares(
    u: Float[np.ndarray, "B K S"],
    std: Float[np.ndarray, "#B #S"],
    n_batches: int,
) -> Float[np.ndarray, "B n K"]:
    """Return the mean probability of each class over the draws of each batch.

    Parameters
    ----------
    u : numpy.ndarray, shape (B, K, S)
        Means in each of S draws; −inf for a class that does not exist.
    std : numpy.ndarray, shape (B, S), (B, 1) or (1, 1)
        Common deviation of the K Gaussians, positive.
    n_batches : int
        S must be a multiple of it.
    """
    shares = np.zeros((len(u), n_batches, u.shape[1]))
    deviations = np.ascontiguousarray(np.broadcast_to(std, (len(u), u.shape[2])), dtype=np.float64)
    _add_shares(np.ascontiguousarray(u), deviations, RULE, shares)
    shares *= n_batches / u.shape[2]
    return shares


@njit_cached
@no_type_check
def _add_shares(u: Any, std: Any, rule: Any, shares: Any) -> None:
    n_rows, n_classes, n_draws = u.shape
    size = n_draws // shares.shape[1]
    rival, behind = np.empty(n_classes, np.int64), np.empty(n_classes, np.float32)
    hazard, product = np.empty((n_classes, N_POINTS), np.float32), np.empty(N_POINTS, np.float32)
    probability = np.empty(n_classes, np.float32)
    for i in range(n_rows):
        for s in range(n_draws):
            largest = u[i, 0, s]
            for k in range(1, n_classes):
                largest = max(largest, u[i, k, s])
            n, per_unit = 0, 1.0 / std[i, s]
            for k in range(n_classes):
                far = (largest - u[i, k, s]) * per_unit
                if far < BEHIND:
                    rival[n], behind[n] = k, far
                    n += 1
            if n == 1:
                probability[0] = 1.0
            elif n == 2:
                probability[0] = _normal_cdf((behind[1] - behind[0]) * 0.7071067811865476)
                probability[1] = 1.0 - probability[0]
            else:
                _integrate(n, behind, rule, hazard, product, probability)
            for c in range(n):
                shares[i, s // size, rival[c]] += probability[c]


@njit_cached
@no_type_check
def _integrate(n: int, behind: Any, rule: Any, hazard: Any, product: Any, probability: Any) -> None:
    """Write the probability that each of n Gaussians of unit deviation is the largest.

    The density of the maximum at t, ``∏ Φ(t − a_l)``, times the hazard of each class is integrated.
    """
    total = np.float32(0.0)
    product[:] = 1.0
    for c in range(n):
        at = behind[c] * np.float32(STEPS_PER_UNIT)
        row = int(at)
        share = at - np.float32(row)
        for g in range(N_POINTS):
            value = rule[row, g]
            product[g] *= value + share * (rule[row + 1, g] - value)
        for g in range(N_POINTS):
            value = rule[row, N_POINTS + g]
            hazard[c, g] = value + share * (rule[row + 1, N_POINTS + g] - value)
    for c in range(n):
        integral = np.float32(0.0)
        for g in range(N_POINTS):
            integral += product[g] * hazard[c, g]
        probability[c] = integral
        total += integral
    for c in range(n):
        probability[c] /= total


@njit_cached
@no_type_check
def _normal_cdf(x: Any) -> float:
    return 0.5 * math.erfc(-x * 0.7071067811865476)
