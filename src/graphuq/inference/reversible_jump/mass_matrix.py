"""A Gaussian's precision as a triangular factor whose leading blocks serve shorter series."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular


class Factor(NamedTuple):
    """Lower triangular R of a precision ``R Rᵀ``, and its inverse; or their diagonals alone.

    Leading blocks of the inverse are inverses of the leading blocks. ``centre`` is the mean in the
    coordinates ``Rᵀg``.
    """

    root: Any  # (m, m) or (m,)
    inverse: Any
    centre: Any  # (m, 1)

    @classmethod
    def of(cls, root: Any, mean: Float[np.ndarray, " L"]) -> "Factor":
        """From R, or its diagonal, and the mean of g."""
        if root.ndim == 1:
            return cls(root, 1 / root, (root * mean)[:, None])
        inverse = solve_triangular(root, np.eye(len(root)), lower=True)
        return cls(root, np.ascontiguousarray(inverse), (root.T @ mean)[:, None])

    def first(self, m: int) -> "Factor":
        """Of the first so many modes."""
        part = (slice(m),) * self.root.ndim
        return Factor(self.root[part], self.inverse[part], self.centre[:m])

    def solve(self, x: Float[np.ndarray, "m C"]) -> Float[np.ndarray, "m C"]:
        """``R⁻¹x``."""
        return _product(self.inverse, x)

    def solve_transposed(self, x: Float[np.ndarray, "m C"]) -> Float[np.ndarray, "m C"]:
        """``R⁻ᵀx``."""
        return _product(self.inverse.T, x)

    def transposed_times(self, g: Float[np.ndarray, "m C"]) -> Float[np.ndarray, "m C"]:
        """``Rᵀg``."""
        return _product(self.root.T, g)

    @property
    def log_diagonal(self) -> Float[np.ndarray, "m 1"]:
        """``log R_jj``."""
        diagonal = self.root if self.root.ndim == 1 else np.diagonal(self.root)
        result: Float[np.ndarray, "m 1"] = np.log(diagonal)[:, None]
        return result


def _product(matrix: np.ndarray, x: Float[np.ndarray, "m C"]) -> Float[np.ndarray, "m C"]:
    """With a matrix or a diagonal."""
    product: Float[np.ndarray, "m C"] = matrix[:, None] * x if matrix.ndim == 1 else matrix @ x
    return product


def root_between(curvature: Any, covariance: Any, n_draws: float) -> Any:
    """Lower triangular root of a precision midway between a mean curvature and a covariance's.

    ``H^{1/2} (H^{1/2} Σ H^{1/2})^{−1/2} H^{1/2}``, the geometric mean of H and ``Σ⁻¹``. Where the
    posterior is Gaussian these are one; where walls stand far apart H says where they are steep,
    and Σ how far it is between them (Seyboldt, Carlson & Carpenter 2026 take the same mean, of
    gradients' covariance and draws'). Σ, of few draws, is drawn towards H⁻¹ as if by as many more
    draws as it has dimensions. Both may be given as diagonals.
    """
    if curvature.ndim == 1:
        spread = _shrunk(curvature * covariance, n_draws, 1.0)
        return np.sqrt(curvature) * spread**-0.25
    root = np.linalg.cholesky(curvature)
    if n_draws == 0:
        return root
    spread = _shrunk(root.T @ covariance @ root, n_draws, np.eye(len(root)))
    values, vectors = np.linalg.eigh(spread)
    half = (root @ vectors) * np.maximum(values, np.finfo(float).eps) ** -0.25
    return np.linalg.cholesky(half @ half.T)


def _shrunk(spread: Any, n_draws: float, unit: Any) -> Any:
    return (n_draws * spread + len(spread) * unit) / (n_draws + len(spread))
