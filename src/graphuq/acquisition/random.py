"""A random order."""

import numpy as np
from jaxtyping import Float

from graphuq.acquisition.pool import Pool


class Random:
    """Random rows, the yardstick of every other rule, and an unbiased sample for audits."""

    def scores(self, pool: Pool) -> Float[np.ndarray, " M"]:
        """Return independent random numbers."""
        return pool.rng.random(len(pool.rows))
