"""Probit: noise is added before the threshold."""

from typing import ClassVar

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from graphuq.errors import require
from graphuq.likelihoods.base import Likelihood
from graphuq.special import log_normal_cdf


class Probit(Likelihood):
    r"""y_j = sign(u_j + γ ε_j), ε_j ~ N(0, 1)  (Bertozzi et al. 2018, §3.1).

    Parameters
    ----------
    noise_std : float, default 0.1
        γ > 0, in units of u, whose prior variance is 1 a node on average.
    """

    noise_std: float = 0.1
    smooth: ClassVar[bool] = True

    def __check_init__(self) -> None:
        require(self.noise_std > 0, "noise_std", f"{self.noise_std!r} is not positive", "use γ > 0")

    def log_prob(self, u: Float[Array, " J"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """``log Φ(y u / γ)``."""
        return log_normal_cdf(y * u / self.noise_std)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """``log Φ(y mean / √(γ² + variance))``."""
        return log_normal_cdf(y * mean / jnp.sqrt(self.noise_std**2 + variance))
