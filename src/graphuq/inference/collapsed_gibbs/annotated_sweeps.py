"""Sweeps for true classes and confusion matrices, compiled by Numba; to be imported late.

A round draws each row of each confusion matrix given the true classes, from its Dirichlet
distribution, and then sweeps the noisy values as `soft_sweeps` does, with the weights
``w_jk = ∏_a C_a[k, r_ja]``. In Python, a round of a few labels takes twenty times as long.
"""

from typing import Any, no_type_check

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference.collapsed_gibbs.soft_sweeps import _sweep, classes_of
from graphuq.inference.collapsed_gibbs.sweeps import Values, _copy, _multiply
from graphuq.utils.arrays import njit_cached

TINY = float(np.finfo(float).tiny)


def run(
    rng: np.random.Generator,
    state: Float[np.ndarray, "R J"],
    values: Values,
    readings: Int[np.ndarray, "J A"],
    prior: Float[np.ndarray, "A K K"],
    n_rounds: int,
) -> tuple[Float[np.ndarray, "R J"], Float[np.ndarray, "A K K"], Float[np.ndarray, "J K"]]:
    """Return noisy values after some rounds, and the last confusion matrices and log weights.

    Parameters
    ----------
    readings : numpy.ndarray of int, shape (J, A)
        Class that each annotator read at each labelled node; −1 for none.
    prior : numpy.ndarray, shape (A, K, K)
        Parameters of the Dirichlet distributions.
    """
    noisy, confusion = state.copy(), np.empty(prior.shape)
    weights = np.empty((len(readings), prior.shape[1]))
    own = classes_of(noisy) - (1 if len(noisy) == 1 else 0)
    parts = values.precision, values.directions, values.duals
    _run(rng, noisy, *parts, own, readings, prior, n_rounds, confusion, weights)
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
    prior: Any,
    n_rounds: Any,
    confusion: Any,
    weights: Any,
) -> None:
    limit, above = np.empty(v.shape[1]), np.empty(v.shape[1], np.bool_)
    classes, shift = np.empty_like(own), 1 if len(v) == 1 else 0
    pull = np.empty_like(v)
    for _ in range(n_rounds):
        for j in range(len(own)):
            classes[j] = own[j] + shift
        write_confusion(rng, classes, readings, prior, confusion)
        write_log_weights(readings, confusion, weights)
        _multiply(v, precision, pull)
        _sweep(rng, v, pull, precision, directions, duals, own, weights, limit, above)


@njit_cached
@no_type_check
def write_confusion(rng: Any, classes: Any, readings: Any, prior: Any, confusion: Any) -> None:
    """Write confusion matrices drawn given the true classes."""
    n_annotators, n_classes, _ = prior.shape
    for a in range(n_annotators):
        _copy(prior[a], confusion[a])
    for j in range(len(classes)):
        for a in range(n_annotators):
            if readings[j, a] >= 0:
                confusion[a, classes[j], readings[j, a]] += 1.0
    for a in range(n_annotators):
        for k in range(n_classes):
            total = 0.0
            for r in range(n_classes):
                confusion[a, k, r] = max(rng.standard_gamma(confusion[a, k, r]), TINY)
                total += confusion[a, k, r]
            for r in range(n_classes):
                confusion[a, k, r] /= total


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
