"""Sweeps for uncertain classes, compiled by Numba; a module that uses it imports it late.

Label j is not one class but a weight w_jk of each. The noisy values V have then the density
``N(V; 0, C) ∏_j w_{j, c(j)}``, where c(j) is the class of the largest value of label j (of two
classes, the sign of the one value). Given all other values, a value is a mixture of two normal
numbers, one on each side of the largest other value. A sweep draws every value from it, and moves
directions as `sweeps` does, given the present classes.
"""

import math
from typing import Any, no_type_check

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtr

from graphuq.inference.collapsed_gibbs.sweeps import (
    N_NODES,
    Values,
    _copy,
    _find_limits,
    _log_probability,
    _move_directions,
    _move_mean,
    _multiply,
    _truncated_normal,
)
from graphuq.utils.arrays import njit_cached
from graphuq.utils.special_functions import normal_quadrature

ROOT_HALF = 0.7071067811865476
TAIL = -30.0  # below it Φ is replaced by its expansion, before it underflows


def classes_of(values: Float[np.ndarray, "*S R J"]) -> Int[np.ndarray, "*S J"]:
    """Return the class of the largest value of each label; of two classes, the sign as 0 or 1."""
    if values.shape[-2] == 1:
        return (values[..., 0, :] >= 0).astype(np.int64)
    return values.argmax(axis=-2)


def run(
    rng: np.random.Generator,
    state: Float[np.ndarray, "R J"],
    values: Values,
    log_weights: Float[np.ndarray, "J K"],
    n_kept: int,
    thin: int,
) -> Float[np.ndarray, "S R J"]:
    """Return the noisy values after each ``thin`` sweeps.

    Parameters
    ----------
    state : numpy.ndarray, shape (R, J)
        Noisy values whose classes have positive weights.
    log_weights : numpy.ndarray, shape (J, K)
        Logarithms of w; −inf for an impossible class.
    """
    kept = np.empty((n_kept, *state.shape))
    own = classes_of(state) - (1 if len(state) == 1 else 0)
    parts = values.precision, values.directions, values.duals
    _run(rng, state.copy(), *parts, own, np.ascontiguousarray(log_weights), thin, kept)
    return kept


@njit_cached
@no_type_check
def _run(
    rng: Any,
    v: Any,
    precision: Any,
    directions: Any,
    duals: Any,
    own: Any,
    log_weights: Any,
    thin: Any,
    kept: Any,
) -> None:
    limit, above = np.empty(v.shape[1]), np.empty(v.shape[1], np.bool_)
    pull = np.empty_like(v)
    for i in range(len(kept)):
        _multiply(v, precision, pull)
        for _ in range(thin):
            _sweep(rng, v, pull, precision, directions, duals, own, log_weights, limit, above)
        _copy(v, kept[i])


@njit_cached
@no_type_check
def _sweep(
    rng: Any,
    v: Any,
    pull: Any,
    precision: Any,
    directions: Any,
    duals: Any,
    own: Any,
    log_weights: Any,
    limit: Any,
    above: Any,
) -> None:
    """Move all values once; the last two are scratch."""
    for k in range(len(v)):
        _find_limits(v, own, k, limit, above)
        _move_directions(rng, v[k], pull[k], directions, duals, limit, above)
        _move_values(rng, v, k, pull[k], precision, own, log_weights)
    _move_mean(rng, v, pull, directions, duals)


@njit_cached
@no_type_check
def _move_values(
    rng: Any, v: Any, k: Any, pull: Any, precision: Any, own: Any, log_weights: Any
) -> None:
    """Draw each value of row k given all others, and with it the class of its label."""
    n_rows, n_labels = v.shape
    for j in range(n_labels):
        largest, other = 0.0, -1
        if n_rows > 1:
            largest = -np.inf
            for row in range(n_rows):
                if row != k and v[row, j] > largest:
                    largest, other = v[row, j], row
        above, below = (k, other) if n_rows > 1 else (1, 0)
        std = 1.0 / math.sqrt(precision[j, j])
        mean = v[k, j] - pull[j] / precision[j, j]
        bound = (largest - mean) / std
        odds = log_weights[j, below] + _log_cdf(bound)
        odds -= log_weights[j, above] + _log_cdf(-bound)
        if rng.random() * (1.0 + math.exp(min(odds, 700.0))) < 1.0:
            new, own[j] = mean + std * _truncated_normal(rng, bound, np.inf), k
        else:
            new, own[j] = mean - std * _truncated_normal(rng, -bound, np.inf), other
        move = new - v[k, j]
        v[k, j] = new
        for i in range(n_labels):
            pull[i] += move * precision[j, i]


@njit_cached
@no_type_check
def _log_cdf(x: Any) -> float:
    """Return ``log Φ(x)``."""
    if x > TAIL:
        return math.log(0.5 * math.erfc(-x * ROOT_HALF))
    return -0.5 * x * x - math.log(-x * 2.5066282746310002) + math.log1p(-1.0 / (x * x))


def log_probabilities(
    u: Float[np.ndarray, "S J *K"], weights: Float[np.ndarray, "J K"], noise_std: float
) -> Float[np.ndarray, " S"]:
    """Return ``Σ_j log Σ_k w_jk p(y_j = k | u_j)`` for each of S fields, by `Probit`."""
    if u.ndim == 2:
        shares = ndtr(u / noise_std)
        return np.asarray(np.log(weights[:, 1] * shares + weights[:, 0] * (1 - shares)).sum(axis=1))
    nodes, log_rule = normal_quadrature(N_NODES)
    total = np.zeros(len(u))
    _add_log_probabilities(u, weights, 1 / noise_std, nodes, log_rule, total)
    return total


@njit_cached
@no_type_check
def _add_log_probabilities(
    u: Any, weights: Any, unit: Any, nodes: Any, log_rule: Any, total: Any
) -> None:
    n_draws, n_labels, n_classes = u.shape
    lead, values = np.empty(n_classes), np.empty(len(nodes))
    for s in range(n_draws):
        for j in range(n_labels):
            sum_ = 0.0
            for k in range(n_classes):
                if weights[j, k] > 0.0:
                    value = _log_probability(u[s, j], k, unit, nodes, log_rule, lead, values)
                    sum_ += weights[j, k] * math.exp(value)
            total[s] += math.log(max(sum_, 1e-300))
