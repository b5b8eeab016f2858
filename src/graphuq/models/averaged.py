"""Normal distributions averaged over hyperparameters, as one distribution for each row."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

TINY = 1e-9  # excess of the fourth moment that counts as none


class Averaged(NamedTuple):
    """An average of normal distributions, by its mean, variance and fourth moment.

    Attributes
    ----------
    mean, std : numpy.ndarray, shape (M,)
    degrees : numpy.ndarray, shape (M,)
        Degrees of freedom of Student's t with the same fourth moment, above 4; infinite for a
        normal distribution.
    """

    mean: Float[np.ndarray, " M"]
    std: Float[np.ndarray, " M"]
    degrees: Float[np.ndarray, " M"]

    def at(self, rows: Any) -> "Averaged":
        """Return the average at some of the rows."""
        return Averaged(*(part[rows] for part in self))


def averaged(
    means: Float[np.ndarray, "K M"],
    stds: Float[np.ndarray, "K M"],
    weights: Float[np.ndarray, "K #M"],
) -> Averaged:
    """Return the average of normal distributions.

    With the excess e = E (y − μ)⁴/σ⁴ − 3 the degrees of freedom are 4 + 6/e. Two far means can
    have tails that are lighter than normal ones, e < 0; they are taken for normal.

    Examples
    --------
    >>> found = averaged(np.zeros((2, 1)), np.array([[1.0], [3.0]]), np.array([[0.5], [0.5]]))
    >>> round(float(found.std[0] ** 2), 6), round(float(found.degrees[0]), 6)
    (5.0, 7.125)
    """
    mean = (weights * means).sum(axis=0)
    away, own = (means - mean) ** 2, stds**2
    variance = (weights * (own + away)).sum(axis=0)
    fourth = (weights * (3 * own**2 + 6 * own * away + away**2)).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = fourth / variance**2 - 3
        degrees = np.where(excess > TINY, 4 + 6 / excess, np.inf)
    return Averaged(mean, np.sqrt(variance), degrees)
