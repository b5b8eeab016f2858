"""What every likelihood offers: the log probability of a label given the field."""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from graphuq.hyperparameters import Distribution, learnt_of
from graphuq.special import log_normal_cdf

QUADRATURE_NODES = 64


class Likelihood(eqx.Module):
    """Law of the observed labels given the field at the labelled nodes.

    Attributes
    ----------
    smooth : bool
        Whether `log_prob` has a useful gradient in ``u``.
    step : bool
        Whether `log_prob` depends on the sign of ``u`` alone; see `StepLikelihood`.
    everywhere : bool
        Whether it speaks of every node; then a y of 0 stands for a node without label.
    """

    smooth: ClassVar[bool]
    step: ClassVar[bool] = False
    everywhere: ClassVar[bool] = False

    @property
    def learnt(self) -> dict[str, Distribution]:
        """Hyperparameters that are distributions, by name."""
        return learnt_of(self)

    @abstractmethod
    def log_prob(self, u: Float[Array, " J"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Log probability of each label y ∈ {−1, +1}, up to a constant.

        The constant is free of ``u`` and of every hyperparameter that may be learnt.
        """

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """``log ∫ p(y | u) N(u; mean, variance) du`` at each label: what a Gaussian belief expects.

        By Gauss-Hermite quadrature; a closed form overrides it. Its first two derivatives in the
        mean are the moments that expectation propagation matches.
        """
        nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)
        u = mean[:, None] + jnp.sqrt(variance)[:, None] * jnp.asarray(nodes, mean.dtype)[None, :]
        values = jax.vmap(lambda column: self.log_prob(column, y), in_axes=1, out_axes=1)(u)
        log_weights = jnp.asarray(np.log(weights / weights.sum()), mean.dtype)
        return jax.nn.logsumexp(values + log_weights[None, :], axis=1)


class StepLikelihood(Likelihood):
    """``a + (b − a) H(y u)`` with the unit step H: the case g = 0 of the family of MATH §2.

    Samplers may know the two levels, b on the label's side of zero and a on the other, and then
    need no evaluation between them. sign(0) = +1.
    """

    smooth: ClassVar[bool] = False
    step: ClassVar[bool] = True

    @abstractmethod
    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """``log b`` and ``log a`` of each label."""

    def log_prob(self, u: Float[Array, " J"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """``log b`` where u has the sign of the label, ``log a`` elsewhere."""
        right, wrong = self.log_levels(y)
        return jnp.where(jnp.where(u >= 0, 1, -1) == y, right, wrong)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """``log(b Φ(z) + a Φ(−z))`` with ``z = y mean / √variance``."""
        z = y * mean / jnp.sqrt(variance)
        right, wrong = self.log_levels(y)
        return jnp.logaddexp(right + log_normal_cdf(z), wrong + log_normal_cdf(-z))
