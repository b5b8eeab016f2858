"""The mass matrix of series of any length: a triangular factor and its leading blocks."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular


class Factor(NamedTuple):
    """Lower triangular factor R of a precision ``R Rᵀ`` with its inverse, or their diagonals.

    A leading block of the inverse is the inverse of the leading block, so one factor serves all
    shorter series.

    Attributes
    ----------
    root, inverse : numpy.ndarray, shape (m, m) or (m,)
        R and R⁻¹, or their diagonals.
    centre : numpy.ndarray, shape (m, 1)
        Mean in the coordinates ``Rᵀg``.
    """

    root: np.ndarray
    inverse: np.ndarray
    centre: np.ndarray

    @classmethod
    def of(cls, root: np.ndarray, mean: Float[np.ndarray, " L"]) -> "Factor":
        """Return the factor of R, or of its diagonal, and of the mean of g."""
        if root.ndim == 1:
            return cls(root, 1 / root, (root * mean)[:, None])
        inverse = solve_triangular(root, np.eye(len(root)), lower=True)
        return cls(root, np.ascontiguousarray(inverse), (root.T @ mean)[:, None])

    def first(self, m: int) -> "Factor":
        """Return the factor of the first m modes."""
        part = (slice(m),) * self.root.ndim
        return Factor(self.root[part], self.inverse[part], self.centre[:m])

    def solve(self, x: Float[np.ndarray, "m C"]) -> Float[np.ndarray, "m C"]:
        """Return ``R⁻¹ x``."""
        return _product(self.inverse, x)

    def solve_transposed(self, x: Float[np.ndarray, "m C"]) -> Float[np.ndarray, "m C"]:
        """Return ``R⁻ᵀ x``."""
        return _product(self.inverse.T, x)

    def transposed_times(self, g: Float[np.ndarray, "m C"]) -> Float[np.ndarray, "m C"]:
        """Return ``Rᵀ g``."""
        return _product(self.root.T, g)

    @property
    def log_diagonal(self) -> Float[np.ndarray, "m 1"]:
        """Logarithms of the diagonal of R, shape (m, 1)."""
        diagonal = self.root if self.root.ndim == 1 else np.diagonal(self.root)
        result: Float[np.ndarray, "m 1"] = np.log(diagonal)[:, None]
        return result


def _product(matrix: np.ndarray, x: Float[np.ndarray, "m C"]) -> Float[np.ndarray, "m C"]:
    """Return the product with a matrix or a diagonal."""
    product: Float[np.ndarray, "m C"] = matrix[:, None] * x if matrix.ndim == 1 else matrix @ x
    return product


def geometric_mean_root(
    curvature: np.ndarray, covariance: np.ndarray, n_draws: float
) -> np.ndarray:
    """Return the lower triangular root of the geometric mean of H and Σ⁻¹.

    The mean is ``H^{1/2} (H^{1/2} Σ H^{1/2})^{−1/2} H^{1/2}``. For a Gaussian posterior
    ``H = Σ⁻¹``. Otherwise H measures how steep the density is, and Σ how wide it is. Seyboldt,
    Carlson & Carpenter (2026) take the same mean of the covariances of gradients and draws.

    Parameters
    ----------
    curvature : numpy.ndarray, shape (m, m) or (m,)
        H, the mean curvature, or its diagonal.
    covariance : numpy.ndarray, shape (m, m) or (m,)
        Σ, the covariance of draws, or its diagonal. It is shrunk towards H⁻¹, which counts like
        m more draws.
    n_draws : float
        Number of draws in Σ.
    """
    if curvature.ndim == 1:
        spread = _shrink(curvature * covariance, n_draws, 1.0)
        return np.sqrt(curvature) * spread**-0.25
    root = np.linalg.cholesky(curvature)
    if n_draws == 0:
        return root
    spread = _shrink(root.T @ covariance @ root, n_draws, np.eye(len(root)))
    values, vectors = np.linalg.eigh(spread)
    half = (root @ vectors) * np.maximum(values, np.finfo(float).eps) ** -0.25
    return np.linalg.cholesky(half @ half.T)


def _shrink(spread: np.ndarray, n_draws: float, unit: np.ndarray | float) -> np.ndarray:
    """Return the covariance shrunk towards a unit, which counts like as many draws as modes."""
    return (n_draws * spread + len(spread) * unit) / (n_draws + len(spread))
