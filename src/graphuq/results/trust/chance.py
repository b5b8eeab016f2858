"""Bounds of an error that true values show, raised to what chance explains."""

import numpy as np
from jaxtyping import Float

# Probabilities that are off by 0.05 on average can still be ranked and mostly used; a "0.85" that
# is really 0.7 or 1.0 misleads.
MAX_ERROR, MAX_ERROR_AMBER = 0.05, 0.15
CHANCE = 0.99  # quantile of the error that calibrated answers have by chance
N_SIMULATED = 2000


def bounds_of_error(by_chance: Float[np.ndarray, " S"], what: str) -> tuple[float, float, str]:
    """Return the bounds at which amber and red begin, and words for a raised one.

    Parameters
    ----------
    by_chance : numpy.ndarray, shape (S,)
        Errors of calibrated answers, simulated.
    what : str
        Name of what is few, in the plural.
    """
    chance = float(np.quantile(by_chance, CHANCE))
    why = f", which so few {what} can have by chance" if chance > MAX_ERROR else ""
    return max(MAX_ERROR, chance), max(MAX_ERROR_AMBER, chance), why
