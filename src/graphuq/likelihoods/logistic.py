"""Logistic: the sigmoid of Zhu, Lafferty and Ghahramani."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from graphuq.distributions import Hyperparameter, check_range, parameter
from graphuq.likelihoods.base import Likelihood
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.special_functions import (
    SIGMOID_SCALES,
    SIGMOID_WEIGHTS,
    alternating_weights,
    log_normal_cdf,
)

N_TERMS = 18  # of an alternating series whose error falls by 5.8 with each


class Logistic(Likelihood):
    r"""``p(y | u) = 1 / (1 + e^{−2γ y u})``  (Zhu, Lafferty & Ghahramani 2003, (5)).

    A label is a draw, whatever u: probabilities of classes are those of labels, the sigmoid
    integrated over the posterior, and not those of u's sign.

    Parameters
    ----------
    steepness : float or Distribution, default 1.0
        γ > 0, in units of 1/u: not a noise level, and large where `Probit`'s is small. Where it is
        learnt, probabilities are those of u's sign.
    """

    steepness: Hyperparameter = parameter(1.0)

    def __check_init__(self) -> None:
        check_range("steepness", self.steepness, 0.0, open=True, remedy="use γ > 0")

    @property
    def link(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Of the sigmoid, to 3e-8; None where the steepness is learnt."""
        if self.learnt:
            return None
        return SIGMOID_WEIGHTS, SIGMOID_SCALES / (2 * float(self.steepness))

    def log_prob(self, u: Float[Array, " J"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """``−log(1 + exp(−2γ y u))``."""
        return -array_namespace(u).logaddexp(0.0, -2 * self.steepness * y * u)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        r"""Of any mean and variance, to nearly full precision.

        The sigmoid is ``Σ_n (−1)^{n−1} e^{n x}`` left of zero and 1 less the mirrored series right
        of it, and each term's mean is a normal tail. With ``a = y mean / s`` and ``b = 2γ s``,

            Z = Φ(a) + Σ_n (−1)^{n−1} φ(a) [R(n b + a) − R(n b − a)],   R = (1 − Φ)/φ,

        moments of positive measures in n, which the weights of Cohen, Rodriguez Villegas & Zagier
        (2000) sum.
        """
        std = jnp.sqrt(variance)
        a, b = y * mean / std, 2 * self.steepness * std
        n, weights = alternating_weights(N_TERMS)
        steps = b[:, None] * jnp.asarray(n, mean.dtype)[None, :]

        def tails(sign: float) -> Array:
            shift = sign * a[:, None]
            logs = log_normal_cdf(-(steps + shift)) + steps * (steps / 2 + shift)
            return (jnp.exp(logs) * jnp.asarray(weights, mean.dtype)[None, :]).sum(axis=1)

        return jnp.log(jnp.exp(log_normal_cdf(a)) + tails(1.0) - tails(-1.0))
