"""What all blocks of a basis share that are made of the features."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from graphuq.graphs.features import row_blocks
from graphuq.graphs.inputs import Features, MatrixLike
from graphuq.graphs.principal import PrincipalComponents


@dataclass(frozen=True, eq=False, repr=False)
class FeatureBlock:
    """Block of columns that features determine; a subclass has a ``name`` and ``values``.

    Attributes
    ----------
    features : array_like or sparse matrix, shape (N, d)
    components : PrincipalComponents, optional
        Those of the features, which several blocks may share.

    Raises
    ------
    InvalidInput
        If features are not rows of finite numbers.
    """

    features: MatrixLike
    components: PrincipalComponents = field(default=None, kw_only=True)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.components is None:
            object.__setattr__(self, "components", PrincipalComponents(self.features))
        object.__setattr__(self, "features", self.components.features)


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
    found = np.ones((len(columns), columns.shape[1] + 1))
    scale = np.sqrt(len(columns) / np.einsum("ij,ij->", columns, columns))
    np.multiply(columns, scale, out=found[:, :-1])
    return found
