"""Metropolis's rule for independent proposals, in many chains."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Moves(NamedTuple):
    """Proposals: coefficients, component, log ratio of densities, log likelihood."""

    coefficients: Float[np.ndarray, "*S n"]
    component: Float[np.ndarray, "*S"]
    log_ratio: Float[np.ndarray, "*S"]
    log_likelihood: Float[np.ndarray, "*S"]


class KeptMoves(NamedTuple):
    """What is kept of each step."""

    coefficients: Float[np.ndarray, "C S n"]
    component: Float[np.ndarray, "C S"]
    log_likelihood: Float[np.ndarray, "C S"]
    acceptance: Float[np.ndarray, "C S"]

    def every(self, n: int) -> "KeptMoves":
        """Return each n-th step."""
        return KeptMoves(*(array[:, n - 1 :: n] for array in self))


def walk(state: Moves, made: Moves, uniform: Float[np.ndarray, "C S"]) -> tuple[Moves, KeptMoves]:
    """Accept or reject proposals in turn, in all chains."""
    n_chains, size = made.log_ratio.shape
    taken = np.empty((n_chains, size), dtype=np.int64)  # number of the proposal; −1: the state
    probability = np.empty((n_chains, size))
    for c in range(n_chains):
        current, ratio = -1, state.log_ratio[c]
        for i in range(size):
            probability[c, i] = np.exp(min(made.log_ratio[c, i] - ratio, 0.0))
            if uniform[c, i] <= probability[c, i]:
                current, ratio = i, made.log_ratio[c, i]
            taken[c, i] = current

    def kept(before: np.ndarray, after: np.ndarray) -> np.ndarray:
        both = np.concatenate([before[:, None], after], axis=1)
        return np.take_along_axis(
            both, (taken + 1).reshape(taken.shape + (1,) * (both.ndim - 2)), 1
        )

    chosen = Moves(*(kept(old, new) for old, new in zip(state, made, strict=True)))
    last = Moves(*(array[:, -1] for array in chosen))
    return last, KeptMoves(
        chosen.coefficients, chosen.component, chosen.log_likelihood, probability
    )
