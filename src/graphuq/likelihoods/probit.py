"""Probit: noise is added before the threshold."""

from typing import ClassVar

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from graphuq.hyperparameters import Hyperparameter, check_range, parameter
from graphuq.likelihoods.base import Likelihood
from graphuq.special import log_normal_cdf


class Probit(Likelihood):
    r"""y_j = sign(u_j + γ ε_j), ε_j ~ N(0, 1)  (Bertozzi et al. 2018, §3.1).

    Parameters
    ----------
    noise_std : float or Distribution, default 0.1
        γ > 0, in units of u, whose prior variance is 1 a node on average.
    """

    noise_std: Hyperparameter = parameter(0.1)
    smooth: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_range("noise_std", self.noise_std, 0.0, open=True, remedy="use γ > 0")

    def log_prob(self, u: Float[Array, " J"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """``log Φ(y u / γ)``."""
        return log_normal_cdf(y * u / self.noise_std)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """``log Φ(y mean / √(γ² + variance))``."""
        return log_normal_cdf(y * mean / jnp.sqrt(self.noise_std**2 + variance))
