"""Ginzburg-Landau likelihood: a double well at every node, and Gaussian labels."""

from typing import ClassVar

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from graphuq.distributions import Hyperparameter, check_range, parameter
from graphuq.likelihoods.base import Likelihood


class GinzburgLandau(Likelihood):
    r"""Real-valued labels with a double well at ±1 (Bertozzi et al. 2018, §3.4).

    The log likelihood is ``−(u² − 1)² / (4 ε)`` at every node and ``−(y − u)² / (2 γ²)`` at
    labelled nodes. It is not log-concave: the posterior may have many modes, one for each way to
    fill the wells. Both terms are normalised as Gaussian densities, of ``u² − 1`` observed to be 0
    and of the label. Therefore ε and γ can be learnt.

    Parameters
    ----------
    epsilon : float or Distribution, default 1.0
        ε > 0; smaller values make the wells deeper.
    noise_std : float or Distribution, default 1.0
        γ > 0, in units of u and of the label, with labels ±1.
    """

    epsilon: Hyperparameter = parameter(1.0)
    noise_std: Hyperparameter = parameter(1.0)
    uses_all_nodes: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_range("epsilon", self.epsilon, 0.0, open=True, remedy="use ε > 0")
        check_range("noise_std", self.noise_std, 0.0, open=True, remedy="use γ > 0")

    def log_prob(self, u: Float[Array, " J"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return minus the double well, minus the misfit where y is ±1; y = 0 means no label."""
        epsilon, noise_std = (jnp.asarray(v, u.dtype) for v in (self.epsilon, self.noise_std))
        well = (u**2 - 1) ** 2 / (4 * epsilon) + jnp.log(epsilon) / 2
        misfit = (y - u) ** 2 / (2 * noise_std**2) + jnp.log(noise_std)
        return -well - jnp.where(y != 0, misfit, 0.0)
