"""Sweeps of `CollapsedGibbs`, compiled by Numba; a module that uses it imports it late.

The noisy values V have one row for each class (one row for two classes), and one column for each
label. Given the labels, a value of row k may vary on one side of a limit only:

- the label's own class: above the largest value of the other classes;
- another class: below the value of the own class;
- two classes, one row: above or below 0.
"""

import math
from typing import Any, NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float, Int

from graphuq.utils.arrays import njit_cached
from graphuq.utils.special_functions import normal_quadrature

N_NODES = 32  # nodes of the quadrature of `log_probabilities`
CERTAIN = 6.0  # 1 − Φ of this is 1e-9
TAIL = -20.0  # below it the expansion of Φ is accurate to 2e-5
SMALL = 1e-150  # products below this are replaced by their logarithm
WIDE = 2.5  # length of an interval from which uniform proposals are seldom accepted
LEADING, MAX_REPEATS = 10, 8  # directions that are moved again in a sweep, and how often
LABELS_A_REPEAT = 25  # more labels leave less room to each move of them
SMOOTH = 2.0  # variance of a direction, in units of the noise, from which it is moved as a whole


class Values(NamedTuple):
    """Prior covariance of the noisy values of one class, and the labels.

    Attributes
    ----------
    precision : numpy.ndarray, shape (J, J)
        A, inverse of the covariance ``C = F Fᵀ + γ² I``.
    directions, duals : numpy.ndarray, shape (d, J)
        ``√s q`` and ``q / √s`` for each eigenvector q of C whose eigenvalue s exceeds 2 γ².
    own : numpy.ndarray of int, shape (J,)
        Row of the class of each label. With one row, 0 for a positive and −1 for a negative label.
    """

    precision: Float[np.ndarray, "J J"]
    directions: Float[np.ndarray, "d J"]
    duals: Float[np.ndarray, "d J"]
    own: Int[np.ndarray, " J"]

    @staticmethod
    def of(
        covariance: Float[np.ndarray, "J J"], noise_std: float, own: Int[np.ndarray, " J"]
    ) -> "Values":
        """Return them for a covariance C, noise included."""
        s, q = np.linalg.eigh(covariance)
        s = np.maximum(s, noise_std**2)  # rounding
        smooth = s > SMOOTH * noise_std**2
        root, columns = np.sqrt(s[smooth])[::-1, None], q.T[smooth][::-1]
        return Values((q / s) @ q.T, columns * root, columns / root, own)


def agreeing(
    values: Float[np.ndarray, "R J"], own: Int[np.ndarray, " J"]
) -> Float[np.ndarray, "R J"]:
    """Return noisy values changed so that they agree with the labels, from which chains start.

    The largest value of a label is exchanged with that of the own class; one row changes its sign.
    """
    if len(values) == 1:
        return np.where(own == 0, 1.0, -1.0) * np.abs(values)
    columns = np.arange(len(own))
    largest = values.argmax(axis=0)
    swapped = values.copy()
    swapped[largest, columns] = values[own, columns]
    swapped[own, columns] = values[largest, columns]
    return swapped


def run(
    rng: np.random.Generator,
    state: Float[np.ndarray, "R J"],
    values: Values,
    n_kept: int,
    thin: int,
) -> Float[np.ndarray, "S R J"]:
    """Return the noisy values after each ``thin`` sweeps."""
    kept = np.empty((n_kept, *state.shape))
    _run(rng, state.copy(), *values, thin, kept)
    return kept


@njit_cached
@no_type_check
def _run(
    rng: Any, v: Any, precision: Any, directions: Any, duals: Any, own: Any, thin: Any, kept: Any
) -> None:
    limit, above = np.empty(v.shape[1]), np.empty(v.shape[1], np.bool_)
    pull = np.empty_like(v)
    for i in range(len(kept)):
        _multiply(v, precision, pull)  # anew, so that rounding errors do not add up
        for _ in range(thin):
            for k in range(len(v)):
                _find_limits(v, own, k, limit, above)
                _move_directions(rng, v[k], pull[k], directions, duals, limit, above)
                _move_values(rng, v[k], pull[k], precision, limit, above)
            _move_mean(rng, v, pull, directions, duals)
        _copy(v, kept[i])


@njit_cached
@no_type_check
def _multiply(v: Any, precision: Any, pull: Any) -> None:
    """Write ``V A``. NumPy's product, and its assignment to a row, take seconds to compile."""
    n_rows, n_labels = v.shape
    for k in range(n_rows):
        for i in range(n_labels):
            pull[k, i] = 0.0
        for j in range(n_labels):
            for i in range(n_labels):
                pull[k, i] += v[k, j] * precision[j, i]


@njit_cached
@no_type_check
def _copy(v: Any, to: Any) -> None:
    n_rows, n_labels = v.shape
    for k in range(n_rows):
        for j in range(n_labels):
            to[k, j] = v[k, j]


@njit_cached
@no_type_check
def _find_limits(v: Any, own: Any, k: Any, limit: Any, above: Any) -> None:
    """Write the limit of each value of row k, and whether the value must be above it."""
    n_rows, n_labels = v.shape
    for j in range(n_labels):
        above[j] = own[j] == k
        if n_rows == 1:
            limit[j] = 0.0
        elif above[j]:
            largest = -np.inf
            for other in range(n_rows):
                if other != k:
                    largest = max(largest, v[other, j])
            limit[j] = largest
        else:
            limit[j] = v[own[j], j]


@njit_cached
@no_type_check
def _move_directions(
    rng: Any, v: Any, pull: Any, directions: Any, duals: Any, limit: Any, above: Any
) -> None:
    """Draw the coordinate of each direction given all others, of leading ones several times.

    A leading direction has the largest variance and moves all labels, so that the tightest of
    many limits leaves it little room.
    """
    first, first_duals = directions[:LEADING], duals[:LEADING]
    for _ in range(min(len(v) // LABELS_A_REPEAT, MAX_REPEATS)):
        _move_each(rng, v, pull, first, first_duals, limit, above)
    _move_each(rng, v, pull, directions, duals, limit, above)


@njit_cached
@no_type_check
def _move_each(
    rng: Any, v: Any, pull: Any, directions: Any, duals: Any, limit: Any, above: Any
) -> None:
    """Draw the coordinate of each direction given all others: normal between two bounds."""
    n_labels = len(v)
    sign, slack = np.empty(n_labels), np.empty(n_labels)
    for j in range(n_labels):
        sign[j] = 1.0 if above[j] else -1.0
        slack[j] = max(sign[j] * (v[j] - limit[j]), SMALL)
    for i in range(len(directions)):
        at = 0.0
        for j in range(n_labels):
            at += duals[i, j] * v[j]
        fall, rise = _rates(sign, directions, i, slack)
        low = at - 1.0 / rise if rise > 0.0 else -np.inf
        high = at - 1.0 / fall if fall < 0.0 else np.inf
        move = _truncated_normal(rng, low, high) - at
        for j in range(n_labels):
            v[j] += move * directions[i, j]
            pull[j] += move * duals[i, j]
            slack[j] = max(sign[j] * (v[j] - limit[j]), SMALL)


@njit_cached
@no_type_check
def _rates(sign: Any, directions: Any, i: Any, slack: Any) -> Any:
    """Return the smallest and largest gain of slack along a direction, as a share of the slack."""
    smallest, largest = 0.0, 0.0
    for j in range(len(slack)):  # without a branch, so that it vectorises
        rate = sign[j] * directions[i, j] / slack[j]
        smallest, largest = min(smallest, rate), max(largest, rate)
    return smallest, largest


@njit_cached
@no_type_check
def _move_mean(rng: Any, v: Any, pull: Any, directions: Any, duals: Any) -> None:
    """Draw the mean over classes along all directions: it has its prior whatever the labels."""
    n_rows, n_labels = v.shape
    if n_rows == 1:
        return
    mean, move, change = np.zeros(n_labels), np.zeros(n_labels), np.zeros(n_labels)
    for k in range(n_rows):
        for j in range(n_labels):
            mean[j] += v[k, j] / n_rows
    for i in range(len(directions)):
        at = 0.0
        for j in range(n_labels):
            at += duals[i, j] * mean[j]
        step = rng.normal() / math.sqrt(n_rows) - at
        for j in range(n_labels):
            move[j] += step * directions[i, j]
            change[j] += step * duals[i, j]
    for k in range(n_rows):
        for j in range(n_labels):
            v[k, j] += move[j]
            pull[k, j] += change[j]


@njit_cached
@no_type_check
def _move_values(rng: Any, v: Any, pull: Any, precision: Any, limit: Any, above: Any) -> None:
    """Draw each value given all others of its row; ``pull`` is the precision times v."""
    n_labels = len(v)
    for j in range(n_labels):
        std = 1.0 / math.sqrt(precision[j, j])
        mean = v[j] - pull[j] / precision[j, j]
        bound = (limit[j] - mean) / std
        if above[j]:
            new = mean + std * _truncated_normal(rng, bound, np.inf)
        else:
            new = mean - std * _truncated_normal(rng, -bound, np.inf)
        move = new - v[j]
        v[j] = new
        for i in range(n_labels):
            pull[i] += move * precision[j, i]


@njit_cached
@no_type_check
def _truncated_normal(rng: Any, low: Any, high: Any) -> float:
    """Draw a standard normal number between two bounds, by rejection (Robert 1995)."""
    if low <= 0.0 <= high:
        if high - low > WIDE:
            z = rng.normal()
            while z < low or z > high:
                z = rng.normal()
            return z
        z = low + (high - low) * rng.random()
        while rng.random() > math.exp(-0.5 * z * z):
            z = low + (high - low) * rng.random()
        return z
    if high < 0.0:
        return -_right_tail(rng, -high, -low)
    return _right_tail(rng, low, high)


@njit_cached
@no_type_check
def _right_tail(rng: Any, low: Any, high: Any) -> float:
    """Draw a standard normal number between two positive bounds."""
    if (high - low) * low < 1.0 and high - low < WIDE:  # a flat density: uniform proposals
        while True:
            z = low + (high - low) * rng.random()
            if rng.random() <= math.exp(0.5 * (low * low - z * z)):
                return z
    rate = 0.5 * (low + math.sqrt(low * low + 4.0))
    while True:
        z = low - math.log1p(-rng.random()) / rate
        if z <= high and rng.random() <= math.exp(-0.5 * (z - rate) ** 2):
            return z


def log_probabilities(
    u: Float[np.ndarray, "S J K"], own: Int[np.ndarray, " J"], noise_std: float
) -> Float[np.ndarray, " S"]:
    """Return the log probability of all labels of several classes, for each of S fields.

    It is `Probit.log_prob`, summed over the labels, without compilation by JAX.
    """
    total = np.zeros(len(u))
    fields = np.ascontiguousarray(u)  # one memory layout, so that it is compiled once
    _add_log_probabilities(fields, own, 1 / noise_std, *normal_quadrature(N_NODES), total)
    return total


@njit_cached
@no_type_check
def _add_log_probabilities(
    u: Any, own: Any, unit: Any, nodes: Any, log_weights: Any, total: Any
) -> None:
    n_draws, n_labels, n_classes = u.shape
    lead, values = np.empty(n_classes), np.empty(len(nodes))
    for s in range(n_draws):
        for j in range(n_labels):
            row = u[s, j]
            total[s] += _log_probability(row, own[j], unit, nodes, log_weights, lead, values)


@njit_cached
@no_type_check
def _log_probability(
    u: Any, own: Any, unit: Any, nodes: Any, log_weights: Any, lead: Any, values: Any
) -> float:
    """Return the log probability of one class given its K fields; the last two are scratch."""
    behind = 0.0
    for k in range(len(u)):
        lead[k] = (u[own] - u[k]) * unit
        behind = max(behind, -lead[k])
    center, largest = behind / 2, -np.inf
    for g in range(len(nodes)):
        # The second term is the log ratio of φ(z) to the density of the rule.
        value = log_weights[g] - center * (center / 2 + nodes[g])
        product = 1.0
        for k in range(len(u)):
            at = center + nodes[g] + lead[k]
            if k == own or at > CERTAIN:
                continue
            if at < TAIL:
                value -= 0.5 * at * at + math.log(-at * 2.5066282746310002)
                value += math.log1p(-1 / (at * at))
                continue
            product *= 0.5 * math.erfc(-at * 0.7071067811865476)
            if product < SMALL:
                value, product = value + math.log(product), 1.0
        value += math.log(product)
        values[g], largest = value, max(largest, value)
    sum_ = 0.0
    for g in range(len(nodes)):
        sum_ += math.exp(values[g] - largest)
    return largest + math.log(sum_)
