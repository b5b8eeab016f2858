"""Prior with a learnt spectrum of any decreasing shape."""

from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq.distributions import Gamma, Hyperparameter, check_range, is_learnt, parameter
from graphuq.errors import require
from graphuq.priors.base import Prior, check_truncation
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.checks import check_integer, describe, is_vector

SMALLEST = 1e-4  # smaller eigenvalues are replaced by it, since log 0 is infinite


class LearnedSpectrum(Prior):
    r"""Prior ``s_j² = κ f(λ_j)²`` with a learnt decreasing function f (Chen, model G).

    ``log f²`` is piecewise linear in ``log λ``. Its knots are evenly spaced in ``log λ``, from
    λ = 1e-4 to 2. Hence ``f² = Π_k (λ / t_k)^{−d_k}`` over the segments below λ, and each slope
    ``d_k ≥ 0`` is a local exponent. The function f decreases for all slopes, and normalisation
    determines its scale. Every power of λ is a special case. So is, except for rounded corners,
    every Matérn spectrum: that of (τ, α) has slopes 0 below λ = τ² and α above. Beyond the last
    knot (with an unnormalised Laplacian) f continues with the last slope.

    Parameters
    ----------
    slopes : Distribution or array of shape (n_knots,), default Gamma(0.5, 0.125)
        Distribution or values of d_k, independent of each other. The default has mean 4 and
        median 1.8.
    n_knots : int, default 8
        Number of segments, at least 1.
    truncation, include_constant
        See `Matern`.

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
        """Return ``n_knots`` for ``slopes``: one value per segment."""
        return self.n_knots if name == "slopes" else None

    def log_variances(self, eigenvalues: Float[Array, " n"]) -> Float[Array, " n"]:
        """Return ``−Σ_k d_k · (length of segment k below log λ)``."""
        xp = array_namespace(eigenvalues)
        ends = np.linspace(np.log(SMALLEST), np.log(2.0), self.n_knots + 1)
        starts, lengths = ends[:-1], np.diff(ends)
        lengths[-1] = np.inf
        log = xp.log(xp.maximum(eigenvalues, SMALLEST))[:, None]
        below = xp.clip(log - xp.asarray(starts)[None, :], 0.0, xp.asarray(lengths)[None, :])
        result: Float[Array, " n"] = -(below.astype(eigenvalues.dtype) @ xp.asarray(self.slopes))
        return result
