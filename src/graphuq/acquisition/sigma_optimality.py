"""Σ-optimality: reduction of the variance of the sum of the field."""

import numpy as np
from jaxtyping import Float

from graphuq.acquisition.pool import Pool


class SigmaOptimality:
    """Score ``(Σ_i C_ic)² / (C_cc + γ²)`` (Ma, Garnett & Schneider 2013), whatever the labels are.

    It is the variance that the sum of the field over all unlabelled rows loses if the field at c
    is seen with noise γ. That sum is the number of rows of a class, in their survey problem.
    """

    def scores(self, pool: Pool) -> Float[np.ndarray, " M"]:
        """Return the reduction for each candidate."""
        return np.asarray(pool.cross_covariance.sum(axis=1) ** 2 / pool.observed_variance)
