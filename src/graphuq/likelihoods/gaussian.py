"""Gaussian noise on real-valued labels; the harmonic function is its limit."""

import math
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from graphuq.distributions import Hyperparameter, check_range, parameter
from graphuq.likelihoods.base import Likelihood, PerLabel, Tilted
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

    def tilt(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> Tilted:
        """Return `log_partition` and its derivatives in closed form."""
        total = self.noise_std**2 + variance
        return Tilted(_log_normal(y - mean, total), (y - mean) / total, -1 / total)

    def tilted_label_mean(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> PerLabel:
        """Return ``E sign(u)`` of the Gaussian that is proportional to likelihood × Gaussian."""
        precision = 1 / variance + 1 / self.noise_std**2
        given = (mean / variance + y / self.noise_std**2) / precision
        label_mean: PerLabel = 2 * ndtr(given * np.sqrt(precision)) - 1
        return label_mean

    def tilted_slopes(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> dict[str, float]:
        """Return the derivative in γ; Z solves the heat equation ``∂Z/∂γ² = Z''/2``."""
        _, first, second = self.tilt(mean, variance, y)
        return {"noise_std": float(self.noise_std * (second + first**2).sum())}


def _log_normal(x: Float[Array, " J"], variance: float | Array) -> Float[Array, " J"]:
    density: Float[Array, " J"] = (
        -(x**2 / variance + array_namespace(x).log(2 * math.pi * variance)) / 2
    )
    return density
