"""Bayesian level set: noise is added after the threshold."""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from graphuq.hyperparameters import Hyperparameter, check_range, parameter
from graphuq.likelihoods.base import StepLikelihood


class LevelSet(StepLikelihood):
    r"""y_j = sign(u_j) + γ ε_j, ε_j ~ N(0, 1)  (Bertozzi et al. 2018, §3.2).

    ``−|y − sign(u)|² / (2 γ²)``: a label on the wrong side costs ``2/γ²``. Normalised over the two
    labels there are, so that γ can be learnt.

    Parameters
    ----------
    noise_std : float or Distribution, default 0.1
        γ > 0, in units of the label, with labels ±1.
    """

    noise_std: Hyperparameter = parameter(0.1)

    def __check_init__(self) -> None:
        check_range("noise_std", self.noise_std, 0.0, open=True, remedy="use γ > 0")

    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """``−log(1 + exp(−2/γ²))``, and that less ``2/γ²``."""
        cost = jnp.zeros_like(y) + 2 / jnp.asarray(self.noise_std, y.dtype) ** 2
        right = -jnp.log1p(jnp.exp(-cost))
        return right, right - cost
