"""What every likelihood offers: the log probability of a label given the field."""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

QUADRATURE_NODES = 64


class Likelihood(eqx.Module):
    """Law of the observed labels given the field at the labelled nodes.

    Attributes
    ----------
    smooth : bool
        Whether `log_prob` has a useful gradient in ``u``.
    """

    smooth: ClassVar[bool]

    @abstractmethod
    def log_prob(self, u: Float[Array, " J"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Log probability of each label y ∈ {−1, +1}, up to a constant free of ``u``."""

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
