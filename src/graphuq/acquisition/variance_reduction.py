"""Reduction of the total label variance."""

import numpy as np
from jaxtyping import Float

from graphuq.acquisition.pool import Pool


class VarianceReduction:
    r"""Expected reduction of the label variance, summed over all unlabelled rows.

    With ``D = diag p − p pᵀ`` a label at c moves the probabilities at i by ``β_i C_ic D_i a_y``,
    so that the score is ``β_c² Σ_i β_i² C_ic² tr(D_i² D_c)``.
    """

    def scores(self, pool: Pool) -> Float[np.ndarray, " M"]:
        """Return the expected reduction for each candidate."""
        spread, own = dispersion(pool.target_probabilities), dispersion(pool.probabilities)
        weights = pool.target_sharpness[:, None, None] ** 2 * (spread @ spread)
        reach = pool.cross_covariance**2 @ weights.reshape(len(weights), -1)
        return np.asarray(pool.sharpness**2 * (reach * own.reshape(len(own), -1)).sum(axis=1))


def dispersion(p: Float[np.ndarray, "M K"]) -> Float[np.ndarray, "M K K"]:
    """Return ``diag p − p pᵀ`` of each row."""
    spread = -p[:, :, None] * p[:, None, :]
    classes = np.arange(p.shape[1])
    spread[:, classes, classes] += p
    return spread
