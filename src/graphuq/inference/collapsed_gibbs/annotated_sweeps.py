"""Sweeps for true classes and confusion matrices, compiled by Numba; to be imported late.

A round exchanges two classes everywhere, by a Metropolis step. It draws the accuracy and the
confusion matrix of each annotator given the true classes, and then sweeps the noisy values as
`soft_sweeps` does, with the weights ``w_jk = ∏_a C_a[k, r_ja]``. In Python, a round of a few labels
takes twenty times as long.
"""

import math
from typing import Any, NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

from graphuq.inference.collapsed_gibbs.soft_sweeps import _sweep, classes_of
from graphuq.inference.collapsed_gibbs.sweeps import Values, _multiply
from graphuq.utils.arrays import njit_cached

TINY = float(np.finfo(float).tiny)
ACCURACIES = (np.arange(24) + 0.5) / 24  # values of an annotator's accuracy
AGREEMENTS = np.array([2.0, 8.0, 32.0, 128.0])  # values of how alike its classes are


class AccuracyPrior(NamedTuple):
    """Values of accuracy α and agreement s of an annotator, and what their likelihood needs.

    Given both, ``C[k, k] ~ Beta(s α, s (1 − α))`` for each class, and the shares of wrong classes
    have a Dirichlet distribution.

    Attributes
    ----------
    log_prior : numpy.ndarray, shape (G,)
        Of each pair of values, up to a constant.
    shapes : numpy.ndarray, shape (3, G)
        ``s α``, ``s (1 − α)`` and s.
    rises : numpy.ndarray, shape (3, G, n + 1)
        ``log Γ(shape + m) − log Γ(shape)`` for m = 0 to n.
    other : float
        Parameter of the Dirichlet distribution, for each wrong class.
    """

    log_prior: Float[np.ndarray, " G"]
    shapes: Float[np.ndarray, "3 G"]
    rises: Float[np.ndarray, "3 G n"]
    other: float

    @staticmethod
    def of(right: float, wrong: float, n_classes: int, n_readings: int) -> "AccuracyPrior":
        """Return it for ``α ~ Beta(right, wrong)`` and up to so many readings of an annotator."""
        accuracy, agreement = (grid.ravel() for grid in np.meshgrid(ACCURACIES, AGREEMENTS))
        log_prior = (right - 1) * np.log(accuracy) + (wrong - 1) * np.log1p(-accuracy)
        shapes = agreement * np.stack([accuracy, 1 - accuracy, np.ones(len(accuracy))])
        counts = np.arange(n_readings + 1)
        rises = gammaln(shapes[..., None] + counts) - gammaln(shapes)[..., None]
        return AccuracyPrior(log_prior, shapes, rises, 1 / (n_classes - 1))


def run(
    rng: np.random.Generator,
    state: Float[np.ndarray, "R J"],
    values: Values,
    readings: Int[np.ndarray, "J A"],
    prior: AccuracyPrior,
    n_classes: int,
    n_rounds: int,
) -> tuple[Float[np.ndarray, "R J"], Float[np.ndarray, "A K K"], Float[np.ndarray, "J K"]]:
    """Return noisy values after some rounds, and the last confusion matrices and log weights.

    Parameters
    ----------
    readings : numpy.ndarray of int, shape (J, A)
        Class that each annotator read at each labelled node; −1 for none.
    prior : AccuracyPrior
    n_classes : int
        K.
    """
    noisy, confusion = state.copy(), np.empty((readings.shape[1], n_classes, n_classes))
    weights = np.empty((len(readings), n_classes))
    own = classes_of(noisy) - (1 if len(noisy) == 1 else 0)
    parts = values.precision, values.directions, values.duals
    _run(rng, noisy, *parts, own, readings, *prior, n_rounds, confusion, weights)
    return noisy, confusion, weights


@njit_cached
@no_type_check
def _run(
    rng: Any,
    v: Any,
    precision: Any,
    directions: Any,
    duals: Any,
    own: Any,
    readings: Any,
    log_prior: Any,
    shapes: Any,
    rises: Any,
    other: Any,
    n_rounds: Any,
    confusion: Any,
    weights: Any,
) -> None:
    limit, above = np.empty(v.shape[1]), np.empty(v.shape[1], np.bool_)
    classes, shift = np.empty_like(own), 1 if len(v) == 1 else 0
    pull = np.empty_like(v)
    for _ in range(n_rounds):
        _exchange_classes(
            rng, v, own, classes, readings, log_prior, rises, other, len(confusion[0])
        )
        for j in range(len(own)):
            classes[j] = own[j] + shift
        write_confusion(rng, classes, readings, log_prior, shapes, rises, other, confusion)
        write_log_weights(readings, confusion, weights)
        _multiply(v, precision, pull)
        _sweep(rng, v, pull, precision, directions, duals, own, weights, limit, above)


@njit_cached
@no_type_check
def _exchange_classes(
    rng: Any,
    v: Any,
    own: Any,
    classes: Any,
    readings: Any,
    log_prior: Any,
    rises: Any,
    other: Any,
    n_classes: Any,
) -> None:
    """Exchange two random classes of all values, with a Metropolis step; ``classes`` is scratch.

    The prior of the values is the same for all classes. So the ratio of densities is that of the
    probabilities of the readings, in which confusion matrices are integrated out.
    """
    first, second, shift = 0, 1, 1 if len(v) == 1 else 0
    if n_classes > 2:
        first = int(rng.random() * n_classes)
        second = (first + 1 + int(rng.random() * (n_classes - 1))) % n_classes
    for j in range(len(own)):
        classes[j] = own[j] + shift
    gain = -log_readings(classes, readings, log_prior, rises, other, n_classes)
    for j in range(len(own)):
        if classes[j] == first:
            classes[j] = second
        elif classes[j] == second:
            classes[j] = first
    gain += log_readings(classes, readings, log_prior, rises, other, n_classes)
    if math.log(1.0 - rng.random()) >= gain:
        return
    for j in range(len(own)):
        own[j] = classes[j] - shift
        if len(v) == 1:
            v[0, j] = -v[0, j]
        else:
            v[first, j], v[second, j] = v[second, j], v[first, j]


@njit_cached
@no_type_check
def log_readings(
    classes: Any, readings: Any, log_prior: Any, rises: Any, other: Any, n_classes: Any
) -> float:
    """Return the log probability of the readings given true classes, up to a constant.

    Accuracies and confusion matrices are integrated out: for each annotator a sum over the grid,
    times a Dirichlet-multinomial probability of the wrong readings of each class.
    """
    total_log, counts, grid = 0.0, np.empty((n_classes, n_classes)), np.empty(len(log_prior))
    right, total = np.empty(n_classes, np.int64), np.empty(n_classes, np.int64)
    for a in range(readings.shape[1]):
        counts[:] = 0.0
        right[:], total[:] = 0, 0
        for j in range(len(classes)):
            if readings[j, a] >= 0:
                counts[classes[j], readings[j, a]] += 1.0
                total[classes[j]] += 1
                right[classes[j]] += readings[j, a] == classes[j]
        sum_, largest = 0.0, _write_log_grid(right, total, log_prior, rises, grid)
        for g in range(len(grid)):
            sum_ += math.exp(grid[g] - largest)
        total_log += largest + math.log(sum_)
        for k in range(n_classes):
            total_log -= math.lgamma(1.0 + total[k] - right[k])
            for r in range(n_classes):
                if r != k:
                    total_log += math.lgamma(other + counts[k, r]) - math.lgamma(other)
    return total_log


@njit_cached
@no_type_check
def write_confusion(
    rng: Any,
    classes: Any,
    readings: Any,
    log_prior: Any,
    shapes: Any,
    rises: Any,
    other: Any,
    confusion: Any,
) -> None:
    """Write confusion matrices drawn given the true classes."""
    n_annotators, n_classes, _ = confusion.shape
    right, total = np.empty(n_classes, np.int64), np.empty(n_classes, np.int64)
    for a in range(n_annotators):
        for k in range(n_classes):
            right[k], total[k] = 0, 0
            for r in range(n_classes):
                confusion[a, k, r] = 0.0
        for j in range(len(classes)):
            if readings[j, a] >= 0:
                confusion[a, classes[j], readings[j, a]] += 1.0
                total[classes[j]] += 1
                if readings[j, a] == classes[j]:
                    right[classes[j]] += 1
        g = _draw_accuracy(rng, right, total, log_prior, rises)
        for k in range(n_classes):
            own = max(rng.standard_gamma(shapes[0, g] + right[k]), TINY)
            rest = max(rng.standard_gamma(shapes[1, g] + total[k] - right[k]), TINY)
            sum_ = 0.0
            for r in range(n_classes):
                if r != k:
                    confusion[a, k, r] = max(rng.standard_gamma(other + confusion[a, k, r]), TINY)
                    sum_ += confusion[a, k, r]
            for r in range(n_classes):
                confusion[a, k, r] *= rest / (own + rest) / sum_
            confusion[a, k, k] = own / (own + rest)


@njit_cached
@no_type_check
def _draw_accuracy(rng: Any, right: Any, total: Any, log_prior: Any, rises: Any) -> int:
    """Draw the number of a pair of accuracy and agreement, with the matrix integrated out."""
    grid, sum_ = np.empty(len(log_prior)), 0.0
    largest = _write_log_grid(right, total, log_prior, rises, grid)
    for g in range(len(grid)):
        sum_ += math.exp(grid[g] - largest)
    left = rng.random() * sum_
    for g in range(len(grid)):
        left -= math.exp(grid[g] - largest)
        if left < 0.0:
            return g
    return len(grid) - 1


@njit_cached
@no_type_check
def _write_log_grid(right: Any, total: Any, log_prior: Any, rises: Any, grid: Any) -> float:
    """Write the log weight of each pair of accuracy and agreement, and return the largest."""
    largest = -np.inf
    for g in range(len(grid)):
        grid[g] = log_prior[g]
        for k in range(len(right)):
            grid[g] += rises[0, g, right[k]] + rises[1, g, total[k] - right[k]]
            grid[g] -= rises[2, g, total[k]]
        largest = max(largest, grid[g])
    return largest


@njit_cached
@no_type_check
def write_log_weights(readings: Any, confusion: Any, weights: Any) -> None:
    """Write ``Σ_a log C_a[k, r_ja]`` of each node and class, less the largest of the node."""
    logs = np.log(confusion)
    for j in range(len(readings)):
        largest = -np.inf
        for k in range(weights.shape[1]):
            weights[j, k] = 0.0
            for a in range(readings.shape[1]):
                if readings[j, a] >= 0:
                    weights[j, k] += logs[a, k, readings[j, a]]
            largest = max(largest, weights[j, k])
        for k in range(weights.shape[1]):
            weights[j, k] -= largest
