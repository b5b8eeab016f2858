"""Bayesian level set: noise is added after the threshold."""

from typing import ClassVar

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from graphuq.errors import require
from graphuq.likelihoods.base import Likelihood
from graphuq.special import log_normal_cdf


class LevelSet(Likelihood):
    r"""y_j = sign(u_j) + γ ε_j, ε_j ~ N(0, 1)  (Bertozzi et al. 2018, §3.2).

    A label on the wrong side costs ``2/γ²``. sign(0) = +1.

    Parameters
    ----------
    noise_std : float, default 0.1
        γ > 0, in units of the label, with labels ±1.
    """

    noise_std: float = 0.1
    smooth: ClassVar[bool] = False

    def __check_init__(self) -> None:
        require(self.noise_std > 0, "noise_std", f"{self.noise_std!r} is not positive", "use γ > 0")

    def log_prob(self, u: Float[Array, " J"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """``−|y − sign(u)|² / (2 γ²)``."""
        sign = jnp.where(u >= 0, 1, -1)
        return -((y - sign) ** 2) / (2 * self.noise_std**2)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """``log(Φ(z) + e^{−2/γ²} Φ(−z))`` with ``z = y mean / √variance``."""
        z = y * mean / jnp.sqrt(variance)
        return jnp.logaddexp(log_normal_cdf(z), log_normal_cdf(-z) - 2 / self.noise_std**2)
