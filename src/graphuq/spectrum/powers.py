"""Linear functions of the features that follow the directions in which the data vary most.

A field that is linear in the features, with independent weights, has the covariance X Xᵀ. Its
power ``(X Xᵀ)¹⁷`` has the same eigenvectors, the principal components, and gives nearly all
variance to the first of them: it is a prior on a spectrum, as a Matérn field is on that of a graph.
A class that differs along the main direction of the data is found with few labels, as in cluster
kernels (Chapelle, Weston & Schölkopf 2002).
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from graphuq.spectrum.feature_block import FeatureBlock, with_constant
from graphuq.utils.concurrency import cached_property

POWERS = "powers"
POWER = 17  # of the covariance; see docs/archive/blocks.md for others
SMALLEST = 1e-4  # deviation, relative to the largest, below which a direction is left out


@dataclass(frozen=True, eq=False, repr=False)
class PowerFunctions(FeatureBlock):
    """Block of columns with the covariance ``1 + c (X Xᵀ)¹⁷``, half of which is the constant.

    Attributes
    ----------
    features : array_like or sparse matrix, shape (N, d)
        Dense ones are centred.

    Raises
    ------
    InvalidInput
        If features are not rows of finite numbers.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> gq.PowerFunctions(X).values.shape
    (50, 4)
    """

    name = POWERS

    @cached_property
    def values(self) -> Float[np.ndarray, "N m"]:
        """Columns F with ``F Fᵀ`` the covariance, none if all rows are equal."""
        scores, variances = self.components.of(standardised=False)
        weights = power_weights(variances)
        return with_constant(scores[:, weights > 0] * weights[weights > 0])


def power_weights(variances: Float[np.ndarray, " r"]) -> Float[np.ndarray, " r"]:
    """Return the factor of the scores of each principal component, 0 for those left out."""
    shares = variances / variances.max(initial=0.0)
    relative = shares ** ((POWER - 1) / 2)
    return np.asarray(np.where(relative * np.sqrt(shares) > SMALLEST, relative, 0.0))
