"""Bayesian level set: noise is added after the threshold."""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from graphuq.errors import require
from graphuq.likelihoods.base import StepLikelihood


class LevelSet(StepLikelihood):
    r"""y_j = sign(u_j) + γ ε_j, ε_j ~ N(0, 1)  (Bertozzi et al. 2018, §3.2).

    ``−|y − sign(u)|² / (2 γ²)``: a label on the wrong side costs ``2/γ²``.

    Parameters
    ----------
    noise_std : float, default 0.1
        γ > 0, in units of the label, with labels ±1.
    """

    noise_std: float = 0.1

    def __check_init__(self) -> None:
        require(self.noise_std > 0, "noise_std", f"{self.noise_std!r} is not positive", "use γ > 0")

    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """0 and ``−2/γ²``."""
        return jnp.zeros_like(y), jnp.full_like(y, -2 / self.noise_std**2)
