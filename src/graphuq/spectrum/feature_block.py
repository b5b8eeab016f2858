"""What all blocks of a basis share that are made of the features."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from graphuq.graphs.features import check_features, row_blocks
from graphuq.graphs.inputs import Features, MatrixLike


@dataclass(frozen=True, eq=False, repr=False)
class FeatureBlock:
    """Block of columns that features determine; a subclass has a ``name`` and ``values``.

    Attributes
    ----------
    features : array_like or sparse matrix, shape (N, d)

    Raises
    ------
    InvalidInput
        If features are not rows of finite numbers.
    """

    features: MatrixLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", check_features(self.features, "features"))


def has_varying_rows(features: Features) -> bool:
    """Return whether features vary: dense rows are not all equal, or sparse ones not all zero."""
    if not isinstance(features, np.ndarray):
        return bool(features.count_nonzero())
    parts = row_blocks(*features.shape)
    return any((features[part] != features[:1]).any() for part in parts)


def with_constant(columns: Float[np.ndarray, "N m"]) -> Float[np.ndarray, "N M"]:
    """Return columns whose rows have mean square length 1, and a column of ones.

    Without columns there is no constant, either.
    """
    if not columns.shape[1]:
        return columns
    scale = np.sqrt(len(columns) / (columns**2).sum())
    return np.hstack([columns * scale, np.ones((len(columns), 1))])
