"""V-optimality: reduction of the total variance of the field."""

import numpy as np
from jaxtyping import Float

from graphuq.acquisition.pool import Pool


class VOptimality:
    """Score ``Σ_i C_ic² / (C_cc + γ²)`` (Ji & Han 2012), whatever the labels are.

    It is the variance that the fields at all unlabelled rows lose together if the field at c is
    seen with noise γ.
    """

    def scores(self, pool: Pool) -> Float[np.ndarray, " M"]:
        """Return the reduction for each candidate."""
        return np.asarray((pool.cross_covariance**2).sum(axis=1) / pool.observed_variance)
