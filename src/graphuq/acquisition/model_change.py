"""Largest change of the field."""

import numpy as np
from jaxtyping import Float

from graphuq.acquisition.pool import Pool


class ModelChange:
    """Least change of the mean field by a label (Miller & Bertozzi 2021; Cai et al. 2013).

    A label y at c moves the mean at i by ``C_ic a_y``. The score is the length of that change at
    all unlabelled rows for the label that changes least, ``|C_·c| min_y |a_y|``.
    """

    def scores(self, pool: Pool) -> Float[np.ndarray, " M"]:
        """Return the change for each candidate."""
        p = pool.probabilities
        squares = 1 - 2 * p.max(axis=1) + (p**2).sum(axis=1)  # |e_y − p|² of the likeliest label
        reach = np.sqrt((pool.cross_covariance**2).sum(axis=1))
        return np.asarray(reach * pool.sharpness * np.sqrt(np.maximum(squares, 0.0)))
