"""Gaussian noise on real-valued labels; the harmonic function is its limit."""

import math
from typing import ClassVar

from jaxtyping import Float

from graphuq.distributions import Hyperparameter, check_range, parameter
from graphuq.likelihoods.base import Likelihood
from graphuq.utils.arrays import Array, array_namespace


class GaussianNoise(Likelihood):
    r"""Gaussian noise model ``y_j = u_j + γ ε_j``, ε_j ~ N(0, 1).

    The labels −1 and +1 are noisy values of the field. The posterior is Gaussian, and
    `ExpectationPropagation` and `Laplace` find it exactly. With `RegularizedLaplacian`, γ → 0 and
    σ → ∞, its mean is the harmonic function of the labels (Zhu, Lafferty & Ghahramani 2003, (2));
    see `graphuq.harmonic_function`.

    Parameters
    ----------
    noise_std : float or Distribution, default 0.1
        γ > 0, in units of u.
    """

    noise_std: Hyperparameter = parameter(0.1)
    has_gaussian_tails: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_range("noise_std", self.noise_std, 0.0, open=True, remedy="use γ > 0")

    def log_prob(self, u: Float[Array, " J"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return ``log N(y; u, γ²)``."""
        return _log_normal(y - u, array_namespace(u).asarray(self.noise_std, u.dtype) ** 2)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """Return ``log N(y; mean, γ² + variance)``."""
        return _log_normal(y - mean, self.noise_std**2 + variance)


def _log_normal(x: Float[Array, " J"], variance: float | Array) -> Float[Array, " J"]:
    density: Float[Array, " J"] = (
        -(x**2 / variance + array_namespace(x).log(2 * math.pi * variance)) / 2
    )
    return density
