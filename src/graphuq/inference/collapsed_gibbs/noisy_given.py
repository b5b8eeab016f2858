"""Noisy values given field and labels, compiled by Numba; a module that uses it imports it late."""

from typing import Any, no_type_check

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference.collapsed_gibbs.sweeps import _truncated_normal
from graphuq.utils.arrays import njit_cached

TRIES = 30  # draws without regard to the label, of which the first that agrees is taken
ROUNDS = 30  # Gibbs sweeps over the values of one label, where none agrees


def noisy_given(
    rng: np.random.Generator,
    u: Float[np.ndarray, "S R J"],
    own: Int[np.ndarray, " J"],
    noise_std: float,
) -> Float[np.ndarray, "S R J"]:
    """Draw ``v = u + γ ε`` given that each label is that of its values.

    Draws are exact where one of 30 without regard to the label agrees with it. Elsewhere they are
    those of 30 sweeps over the values of the label.

    Parameters
    ----------
    u : numpy.ndarray, shape (S, R, J)
        Fields at the labels in each draw: one row for two classes, K rows for more.
    own : numpy.ndarray of int, shape (J,)
        Row of the class of each label; with one row, 0 for a positive and −1 for a negative label.
    noise_std : float
        γ > 0.
    """
    noisy = np.empty(u.shape)
    _draw(rng, np.ascontiguousarray(u, dtype=np.float64), own, noise_std, noisy)
    return noisy


@njit_cached
@no_type_check
def _draw(rng: Any, u: Any, own: Any, std: Any, noisy: Any) -> None:
    n_draws, n_rows, n_labels = u.shape
    for s in range(n_draws):
        for j in range(n_labels):
            if n_rows == 1:
                sign = 1.0 if own[j] == 0 else -1.0
                bound = -sign * u[s, 0, j] / std
                noisy[s, 0, j] = u[s, 0, j] + sign * std * _truncated_normal(rng, bound, np.inf)
            elif not _try(rng, u[s], j, own[j], std, noisy[s]):
                _sweep(rng, u[s], j, own[j], std, noisy[s])


@njit_cached
@no_type_check
def _try(rng: Any, u: Any, j: Any, own: Any, std: Any, v: Any) -> bool:
    for _ in range(TRIES):
        others = -np.inf
        for k in range(len(u)):
            v[k, j] = u[k, j] + std * rng.normal()
            if k != own:
                others = max(others, v[k, j])
        if v[own, j] > others:
            return True
    return False


@njit_cached
@no_type_check
def _sweep(rng: Any, u: Any, j: Any, own: Any, std: Any, v: Any) -> None:
    largest = -np.inf
    for k in range(len(u)):
        v[k, j] = u[k, j]
        largest = max(largest, u[k, j])
    v[own, j] = largest
    for _ in range(ROUNDS):
        others = -np.inf
        for k in range(len(u)):
            if k != own:
                bound = (u[k, j] - v[own, j]) / std
                v[k, j] = u[k, j] - std * _truncated_normal(rng, bound, np.inf)
                others = max(others, v[k, j])
        bound = (others - u[own, j]) / std
        v[own, j] = u[own, j] + std * _truncated_normal(rng, bound, np.inf)
