"""Atomic noise: each label is flipped with a probability of its class."""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from graphuq.errors import require
from graphuq.likelihoods.base import StepLikelihood


class AtomicNoise(StepLikelihood):
    r"""A label is right with probability p where u ≥ 0, and q where u < 0.

    Bertozzi et al. 2018, §3.3.

    Parameters
    ----------
    p, q : float, default 0.9
        Probabilities in (0, 1) of the label +1 where u ≥ 0, and of −1 where u < 0; p + q > 1,
        or labels would speak against themselves.
    """

    p: float = 0.9
    q: float = 0.9

    def __check_init__(self) -> None:
        for name, value in (("p", self.p), ("q", self.q)):
            require(0 < value < 1, name, f"{value!r}", "use a probability in (0, 1)")
        require(
            self.p + self.q > 1,
            "p",
            f"p + q = {self.p + self.q:g}: labels would speak against themselves",
            "use p + q > 1",
        )

    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """``log p`` and ``log(1 − q)`` of a label +1, ``log q`` and ``log(1 − p)`` of −1."""
        p, q = jnp.asarray(self.p, y.dtype), jnp.asarray(self.q, y.dtype)
        right = jnp.where(y > 0, jnp.log(p), jnp.log(q))
        wrong = jnp.where(y > 0, jnp.log1p(-q), jnp.log1p(-p))
        return right, wrong
