"""Rough functions of a table's columns as columns of a basis.

The class may follow from conditions on single columns, such as "x₁ > 5 and x₂ = 0", as in a
decision tree. A random field of this kind has the covariance ``exp(−‖x − x'‖₁ / 2d̄)``. It is that
of a forest of random cuts across single columns, with infinitely many trees (the Mondrian kernel,
Balog et al. 2016). The columns F of the basis are such that F Fᵀ is this covariance, up to the
approximation of Nyström from 100 nodes (Williams & Seeger 2001).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from graphuq.graphs.inputs import MatrixLike
from graphuq.spectrum.feature_block import FeatureBlock

EXPONENTIAL = "exponential"
RATE = 0.5  # of the decay per mean distance; docs/measurements/blocks.md has others
N_LANDMARKS = 100  # nodes from which the covariance is known
MAX_WIDTH = 100  # features; with more, all distances are nearly equal and the block gains nothing
SMALLEST_DEVIATION = 1e-10  # of a feature that varies, relative to its largest value
SMALLEST = 1e-6  # eigenvalue of the landmarks' covariance, relative to the largest, that is kept


def has_exponential(features: MatrixLike) -> bool:
    """Return whether the features are a table: dense, and of at most 100 columns."""
    return not sparse.issparse(features) and np.shape(features)[1] <= MAX_WIDTH


@dataclass(frozen=True, eq=False, repr=False)
class ExponentialFunctions(FeatureBlock):
    """Block of up to 100 columns, whose covariance is ``exp(−‖x − x'‖₁ / 2d̄)``.

    ``‖x − x'‖₁`` is the sum of absolute differences of standardised features, and d̄ its mean.

    Attributes
    ----------
    features : array_like, shape (N, d)
        Each feature is divided by its standard deviation first.
    rng : int, default 0
        Of the 100 nodes that are drawn.

    Raises
    ------
    InvalidInput
        If features are not rows of finite numbers.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> gq.ExponentialFunctions(X).values.shape
    (300, 100)
    """

    rng: int = 0
    name = EXPONENTIAL

    @cached_property
    def values(self) -> Float[np.ndarray, "N m"]:
        """Columns F with ``F Fᵀ`` nearly the covariance, none if all rows are equal."""
        rows = np.asarray(self.features, dtype=np.float64)
        deviation = rows.std(axis=0)
        varies = deviation > SMALLEST_DEVIATION * np.abs(rows).max(axis=0, initial=0.0)
        if not varies.any():
            return np.zeros((len(rows), 0))
        rows = rows[:, varies] / deviation[varies]
        drawn = np.random.default_rng(self.rng).permutation(len(rows))[:N_LANDMARKS]
        landmarks = np.sort(drawn)
        distances = cdist(rows, rows[landmarks], "cityblock")
        n_pairs = distances.size - len(landmarks)  # of different nodes
        covariance = np.exp(distances * (-RATE * n_pairs / distances.sum()))
        values, vectors = eigh(covariance[landmarks])
        kept = values > SMALLEST * values[-1]
        return np.asarray(covariance @ (vectors[:, kept] / np.sqrt(values[kept])))
