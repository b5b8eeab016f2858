"""The limit γ → 0 of probit and level set: u has the sign of every label."""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from graphuq.likelihoods.base import StepLikelihood


class NoiseFree(StepLikelihood):
    """``y_j = sign(u_j)``: the prior conditioned on an orthant (Bertozzi et al. 2018, §3.5).

    Where labels contradict the graph the posterior is narrow; where no combination of the
    eigenvectors has all their signs it is empty, and samplers say so.
    """

    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """0 and −∞."""
        return jnp.zeros_like(y), jnp.full_like(y, -jnp.inf)
