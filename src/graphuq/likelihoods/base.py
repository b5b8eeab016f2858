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
from graphuq.likelihoods.several_classes import codes, most_classes, restricted
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
    n_classes : int or Distribution
        How many classes it tells apart. Two: labels −1 and +1, and one field u. More, or a number
        that is learnt: codes from 0 on, and a column of u for each class.
    """

    smooth: ClassVar[bool]
    step: ClassVar[bool] = False
    everywhere: ClassVar[bool] = False

    @property
    def learnt(self) -> dict[str, Distribution]:
        """Hyperparameters that are distributions, by name."""
        return learnt_of(self)

    @property
    def link(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Weights w and scales s of a drawn label's mean ``Σ_k w_k erf(u / (s_k √2))``.

        None where the label is the sign of u, and not drawn.
        """
        return None

    @property
    def several(self) -> bool:
        """Whether there is a field for each class, and labels are codes from 0 on."""
        n_classes = getattr(self, "n_classes", 2)
        return not isinstance(n_classes, int) or n_classes > 2

    @property
    def n_fields(self) -> int:
        """Fields it sees at a node: one, or one for each class that there may be."""
        return most_classes(getattr(self, "n_classes", 2)) if self.several else 1

    @abstractmethod
    def log_prob(self, u: Float[Array, "J *K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Log probability of each label y, −1 or +1 or the code of its class, up to a constant.

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
    need no evaluation between them. sign(0) = +1. Of several classes, b is where the label's own
    field is the largest.
    """

    smooth: ClassVar[bool] = False
    step: ClassVar[bool] = True

    @abstractmethod
    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """``log b`` and ``log a`` of each label."""

    def log_prob(self, u: Float[Array, "J *K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """``log b`` where u has the sign, or the largest column, of the label; else ``log a``."""
        right, wrong = self.log_levels(y)
        if u.ndim == y.ndim:
            return jnp.where(jnp.where(u >= 0, 1, -1) == y, right, wrong)
        n_classes = getattr(self, "n_classes", u.shape[1])
        values = jnp.where(restricted(u, n_classes).argmax(axis=1) == codes(y), right, wrong)
        return jnp.where(codes(y) < n_classes, values, -jnp.inf)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """``log(b Φ(z) + a Φ(−z))`` with ``z = y mean / √variance``."""
        z = y * mean / jnp.sqrt(variance)
        right, wrong = self.log_levels(y)
        return jnp.logaddexp(right + log_normal_cdf(z), wrong + log_normal_cdf(-z))
