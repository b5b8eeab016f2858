"""Ginzburg-Landau: a double well at every node, and Gaussian labels."""

from typing import ClassVar

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from graphuq.errors import require
from graphuq.likelihoods.base import Likelihood


class GinzburgLandau(Likelihood):
    r"""Labels relaxed to real values that wells draw to ±1 (Bertozzi et al. 2018, §3.4).

    ``−(u² − 1)² / (4 ε)`` at every node, ``−(y − u)² / (2 γ²)`` at labelled ones. Not
    log-concave: the posterior may have many modes, one for each way to fill the wells.

    Parameters
    ----------
    epsilon : float, default 1.0
        ε > 0: the smaller, the deeper the wells.
    noise_std : float, default 1.0
        γ > 0, in units of u and of the label, with labels ±1.
    """

    epsilon: float = 1.0
    noise_std: float = 1.0
    smooth: ClassVar[bool] = True
    everywhere: ClassVar[bool] = True

    def __check_init__(self) -> None:
        require(self.epsilon > 0, "epsilon", f"{self.epsilon!r} is not positive", "use ε > 0")
        require(self.noise_std > 0, "noise_std", f"{self.noise_std!r} is not positive", "use γ > 0")

    def log_prob(self, u: Float[Array, " J"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Minus the double well, minus the misfit where y is ±1; y = 0 is no label."""
        well = (u**2 - 1) ** 2 / (4 * self.epsilon)
        misfit = (y - u) ** 2 / (2 * self.noise_std**2)
        return -well - jnp.where(y != 0, misfit, 0.0)
