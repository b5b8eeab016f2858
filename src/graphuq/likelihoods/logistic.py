"""Logistic likelihood: the sigmoid of Zhu, Lafferty and Ghahramani."""

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

N_TERMS = 18  # terms of an alternating series; each divides the error by 5.8


class Logistic(Likelihood):
    r"""Logistic model ``p(y | u) = 1 / (1 + e^{−2γ y u})``.

    Source: Zhu, Lafferty & Ghahramani 2003, (5). The label is random given u. Class probabilities
    are therefore those of labels, the sigmoid integrated over the posterior, and not those of the
    sign of u.

    Parameters
    ----------
    steepness : float or Distribution, default 1.0
        γ > 0, in units of 1/u. It is not a noise level: it is large where the γ of `Probit` is
        small. If it is learnt, probabilities are those of the sign of u.
    """

    steepness: Hyperparameter = parameter(1.0)

    def __check_init__(self) -> None:
        check_range("steepness", self.steepness, 0.0, open=True, remedy="use γ > 0")

    @property
    def link(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Weights and scales of the sigmoid, accurate to 3e-8, if γ is a number."""
        if self.learnt:
            return None
        return SIGMOID_WEIGHTS, SIGMOID_SCALES / (2 * float(self.steepness))

    def log_prob(self, u: Float[Array, " J"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return ``−log(1 + exp(−2γ y u))``."""
        return -array_namespace(u).logaddexp(0.0, -2 * self.steepness * y * u)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        r"""Return the log of the mean sigmoid under a Gaussian, to nearly full precision.

        The sigmoid is ``Σ_n (−1)^{n−1} e^{n x}`` left of zero, and 1 minus the mirrored series
        right of it. The mean of each term is a normal tail. With ``a = y mean / s`` and
        ``b = 2γ s``,

            Z = Φ(a) + Σ_n (−1)^{n−1} φ(a) [R(n b + a) − R(n b − a)],   R = (1 − Φ)/φ.

        The terms are moments of positive measures in n. The weights of Cohen, Rodriguez Villegas &
        Zagier (2000) sum such series.
        """
        xp = array_namespace(mean)
        std = xp.sqrt(variance)
        a, b = y * mean / std, 2 * self.steepness * std
        n, weights = alternating_weights(N_TERMS)
        steps = b[:, None] * xp.asarray(n, mean.dtype)[None, :]

        def tails(sign: float) -> Array:
            shift = sign * a[:, None]
            logs = log_normal_cdf(-(steps + shift)) + steps * (steps / 2 + shift)
            return (xp.exp(logs) * xp.asarray(weights, mean.dtype)[None, :]).sum(axis=1)

        return xp.log(xp.exp(log_normal_cdf(a)) + tails(1.0) - tails(-1.0))
