"""Smallest margin first."""

import numpy as np
from jaxtyping import Float

from graphuq.acquisition.pool import Pool


class Margin:
    """Score ``1 − (p₁ − p₂)``: the two most probable classes are nearly equally probable."""

    def scores(self, pool: Pool) -> Float[np.ndarray, " M"]:
        """Return one minus the margin of each candidate."""
        second, first = np.partition(pool.probabilities, -2, axis=1)[:, -2:].T
        return np.asarray(1 - (first - second))
