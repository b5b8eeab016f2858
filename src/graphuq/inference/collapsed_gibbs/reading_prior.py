"""Prior distributions, on grids, of how good people are and of how items differ."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr, logsumexp

LEVELS = np.linspace(-4.0, 4.0, 41)  # m, in standard deviations of a probit
ABILITIES = np.linspace(-3.0, 3.0, 25)  # α
MEANS = np.linspace(-1.0, 3.0, 17)  # μ
SPREADS = np.array([0.25, 0.5, 0.75, 1.0, 1.5, 2.0])  # τ and s
DIFFICULTIES = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0])  # σ
EASES = np.linspace(-4.0, 4.0, 9)  # x
MEAN, MEAN_STD = 1.0, 0.75  # of μ before it is put on the grid


class ReadingPrior(NamedTuple):
    """Grids of the model of readings, and their probabilities.

    Person a reads an item of class k and ease x right with probability ``Φ(m_ak + σ_k x)``. See
    docs/theory/labels.md, "Crowds".

    Attributes
    ----------
    levels, abilities, means, spreads, difficulties, eases : numpy.ndarray
        Values of m, α, μ, of τ and s, of σ, and of x.
    log_means : numpy.ndarray, shape (H,)
        Log probability of each value of μ.
    log_eases : numpy.ndarray, shape (Q,)
        Log probability of each value of x, a standard normal one.
    log_right, log_wrong : numpy.ndarray, shape (D, Q, M)
        ``log Φ(±(m + σ x))``.
    levels_given : numpy.ndarray, shape (S, H, G, M)
        Probability of each level given s, μ and α.
    abilities_given : numpy.ndarray, shape (S, G)
        Probability of each ability given τ.
    other : float
        Parameter of the Dirichlet distribution of wrong readings, for each wrong class.
    """

    levels: Float[np.ndarray, " M"]
    abilities: Float[np.ndarray, " G"]
    means: Float[np.ndarray, " H"]
    spreads: Float[np.ndarray, " S"]
    difficulties: Float[np.ndarray, " D"]
    eases: Float[np.ndarray, " Q"]
    log_means: Float[np.ndarray, " H"]
    log_eases: Float[np.ndarray, " Q"]
    log_right: Float[np.ndarray, "D Q M"]
    log_wrong: Float[np.ndarray, "D Q M"]
    levels_given: Float[np.ndarray, "S H G M"]
    abilities_given: Float[np.ndarray, "S G"]
    other: float

    @staticmethod
    def of(
        n_classes: int,
        *,
        levels: Float[np.ndarray, " M"] = LEVELS,
        abilities: Float[np.ndarray, " G"] = ABILITIES,
        means: Float[np.ndarray, " H"] = MEANS,
        spreads: Float[np.ndarray, " S"] = SPREADS,
        difficulties: Float[np.ndarray, " D"] = DIFFICULTIES,
        eases: Float[np.ndarray, " Q"] = EASES,
    ) -> "ReadingPrior":
        """Return the prior for a number of classes, by default on the grids of this module."""
        shifted = levels + difficulties[:, None, None] * eases[:, None]
        centres = (means[:, None] + abilities)[..., None]
        log_levels = _log_normal(levels, centres, spreads[:, None, None, None])
        log_abilities = _log_normal(abilities, 0.0, spreads[:, None])
        return ReadingPrior(
            levels, abilities, means, spreads, difficulties, eases,
            _log_normal(means, MEAN, MEAN_STD), _log_normal(eases, 0.0, 1.0),
            log_ndtr(shifted), log_ndtr(-shifted), np.exp(log_levels), np.exp(log_abilities),
            1 / (n_classes - 1),
        )  # fmt: skip


def _log_normal(
    values: np.ndarray, mean: np.ndarray | float, std: np.ndarray | float
) -> np.ndarray:
    """Return log probabilities of values on a grid, in proportion to a normal density."""
    logs = -(((values - mean) / std) ** 2) / 2
    return np.asarray(logs - logsumexp(logs, axis=-1, keepdims=True))
