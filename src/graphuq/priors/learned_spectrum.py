"""A decreasing spectrum of any shape."""

from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq.distributions import Gamma, Hyperparameter, check_range, is_learnt, parameter
from graphuq.errors import require
from graphuq.priors.base import Prior, check_truncation
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.checks import check_integer, describe, is_vector
from graphuq.utils.deprecation import renamed_fields

SMALLEST = 1e-4  # eigenvalues below are taken for this one: logarithms must end somewhere


@renamed_fields(constant="include_constant")
class LearnedSpectrum(Prior):
    r"""``s_j² = κ f(λ_j)²`` with any decreasing f, learnt (Chen, model G).

    ``log f²`` is piecewise linear in ``log λ`` between knots evenly spaced there, from λ = 1e-4 to
    2: ``f² = Π_k (λ / t_k)^{−d_k}`` over the segments below λ, each slope ``d_k ≥ 0`` a local
    exponent. So f decreases whatever the slopes are, its scale is left to the normalisation,
    and every power law and, but for rounded corners, every Matérn spectrum is among them: that of
    (τ, α) has slopes 0 below λ = τ² and α above. An eigenvalue beyond the last knot (of an
    unnormalised Laplacian) goes on with the last slope.

    Parameters
    ----------
    slopes : Distribution or array of shape (n_knots,), default Gamma(0.5, 0.125)
        Of each d_k, independently: mean 4, and half of them below 1.8.
    n_knots : int, default 8
        Segments, at least 1.
    truncation, include_constant
        As in `Matern`.

    Examples
    --------
    >>> import graphuq as gq
    >>> list(gq.priors.LearnedSpectrum().learnt)
    ['slopes']
    """

    slopes: Any = parameter(Gamma(0.5, 0.125))
    n_knots: int = 8
    truncation: Hyperparameter = parameter(None)
    include_constant: bool | None = None

    def __check_init__(self) -> None:
        check_truncation(self.truncation)
        check_integer("n_knots", self.n_knots, "use an integer, 1 or more")
        require(self.n_knots >= 1, "n_knots", f"{self.n_knots}", "use 1 or more")
        if is_learnt(self.slopes):
            check_range("slopes", self.slopes, 0.0, open=False, remedy="use slopes >= 0")
        else:
            require(
                is_vector(self.slopes, self.n_knots) and np.min(self.slopes) >= 0,
                "slopes",
                f"{describe(self.slopes)} is not a vector of {self.n_knots} numbers >= 0",
                "give a NumPy array of n_knots numbers >= 0",
            )

    def n_values(self, name: str, n_modes: int) -> int | None:
        """A slope for each segment."""
        return self.n_knots if name == "slopes" else None

    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """``−Σ_k d_k · (length of segment k below log λ)``."""
        xp = array_namespace(eigenvalues)
        ends = np.linspace(np.log(SMALLEST), np.log(2.0), self.n_knots + 1)
        starts, lengths = ends[:-1], np.diff(ends)
        lengths[-1] = np.inf
        log = xp.log(xp.maximum(eigenvalues, SMALLEST))[:, None]
        below = xp.clip(log - xp.asarray(starts)[None, :], 0.0, xp.asarray(lengths)[None, :])
        result: Float[Array, " n"] = -(below.astype(eigenvalues.dtype) @ xp.asarray(self.slopes))
        return result
