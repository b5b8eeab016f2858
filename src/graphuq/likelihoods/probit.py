"""Probit likelihood: noise is added before the threshold."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr

from graphuq.distributions import Hyperparameter, check_range, is_learnt, parameter
from graphuq.likelihoods.base import Likelihood, PerLabel, Tilted
from graphuq.likelihoods.multiclass import (
    check_n_classes,
    class_count,
    codes,
    is_label_column,
    label_column,
    possible_classes,
)
from graphuq.utils.arrays import Array
from graphuq.utils.special_functions import log_normal_cdf, normal_hazard

NOISE_NODES = 32  # nodes of the quadrature over the noise of the label's own field
SIDE_NODES = 64  # nodes of the quadrature over the half-line on the other side of zero
HALF_RANGE = 9.0  # half the range of that quadrature, in standard deviations of the integrand


class Probit(Likelihood):
    r"""Probit model ``y_j = S(u_j + γ ε_j)``, ε_j ~ N(0, 1).

    Source: Bertozzi et al. 2018, §3.1. For two classes S is the sign of one field. For more it is
    the largest of K fields, each with its own noise.

    Parameters
    ----------
    noise_std : float or Distribution, default 0.1
        γ > 0, in units of u. The prior variance of u is 1 on average over the nodes.
    n_classes : int or Distribution, default 2
        K. With a distribution the number of classes is learnt; the labelled classes come first.
    random_labels : bool, default False
        What is reported of a node. False: S(u), its class without noise. True: a label with noise
        of its own, like those that were given, so that γ may stand for all that the field does
        not explain.
    """

    noise_std: Hyperparameter = parameter(0.1)
    n_classes: Hyperparameter = class_count(2)
    random_labels: bool = eqx.field(default=False, static=True)
    has_gaussian_tails: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_range("noise_std", self.noise_std, 0.0, open=True, remedy="use γ > 0")
        check_n_classes(self.n_classes)

    @property
    def latent_noise_std(self) -> Hyperparameter:
        """Standard deviation γ of the noise that is added to u before the threshold."""
        return self.noise_std

    @property
    def link(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Weight 1 and scale γ with ``random_labels``, if γ is a number."""
        if not self.random_labels or is_learnt(self.noise_std):
            return None
        return np.ones(1), np.array([float(self.noise_std)])

    @property
    def probit_noise_std(self) -> Hyperparameter:
        """Standard deviation γ of this probit."""
        return self.noise_std

    def log_prob(self, u: Float[Array, "J *K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return ``log Φ(y u / γ)``, or ``log E ∏_{k ≠ y} Φ(z + (u_y − u_k) / γ)``, z ~ N(0, 1).

        The expectation is computed by Gauss-Hermite quadrature. It is centred where the integrand
        is, at half the largest lead of another class. Its relative error is below 1e-6.
        """
        if u.ndim == y.ndim:
            return log_normal_cdf(y * u / self.noise_std)
        lead = (label_column(u, y)[:, None] - u) / self.noise_std
        counted = possible_classes(u, self.n_classes)[None, :] & ~is_label_column(u.shape, y)
        behind = jnp.where(counted, jnp.maximum(-lead, 0.0), 0.0).max(axis=1)
        center = jax.lax.stop_gradient(behind / 2)
        nodes, weights = np.polynomial.hermite_e.hermegauss(NOISE_NODES)
        log_weights = np.log(weights / weights.sum())

        def integrand(node: Array, log_weight: Array) -> Array:
            z = center + node
            factors = log_normal_cdf(z[:, None] + jnp.where(counted, lead, 0.0))
            # ratio of φ(z) to the density φ(node) of the quadrature rule
            shift = -center * (center / 2 + node)
            value: Array = log_weight + shift + jnp.where(counted, factors, 0.0).sum(axis=1)
            return value

        values = jax.vmap(integrand)(jnp.asarray(nodes, u.dtype), jnp.asarray(log_weights, u.dtype))
        possible = codes(y) < jnp.asarray(self.n_classes)
        return jnp.where(possible, jax.nn.logsumexp(values, axis=0), -jnp.inf)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """Return ``log Φ(y mean / √(γ² + variance))``, for two classes."""
        return log_normal_cdf(y * mean / jnp.sqrt(self.noise_std**2 + variance))

    def tilt(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> Tilted:
        """Return `log_partition` and its derivatives in closed form, for two classes."""
        total = self.noise_std**2 + variance
        z = y * mean / np.sqrt(total)
        slope = normal_hazard(z)
        return Tilted(log_ndtr(z), y * slope / np.sqrt(total), -slope * (z + slope) / total)

    def tilted_slopes(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> dict[str, float]:
        """Return the derivative in γ; Z solves the heat equation ``∂Z/∂γ² = Z''/2``."""
        _, first, second = self.tilt(mean, variance, y)
        return {"noise_std": float(self.noise_std * (second + first**2).sum())}

    def tilted_label_mean(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> PerLabel:
        """Return ``y (1 − 2 p)`` with p the share of Z on the other side of zero.

        p is found by Gauss-Legendre quadrature on that half-line. The integrand is bounded by a
        Gaussian of precision 1/γ² + 1/variance. The nodes cover that Gaussian, so that the result
        is accurate whichever of noise and variance is smaller.
        """
        precision = 1 / self.noise_std**2 + 1 / variance
        center, width = -y * mean / (variance * precision), HALF_RANGE / np.sqrt(precision)
        near = np.maximum(center - width, 0.0)
        half = (np.maximum(center + width, near + width / HALF_RANGE) - near)[:, None] / 2
        nodes, weights = np.polynomial.legendre.leggauss(SIDE_NODES)
        depth = near[:, None] + half * (nodes + 1)
        logs = log_ndtr(-depth / self.noise_std)
        logs -= (depth + (y * mean)[:, None]) ** 2 / (2 * variance[:, None])
        largest = logs.max(axis=1)
        mass = (np.exp(logs - largest[:, None]) * (weights * half)).sum(axis=1)
        log_density = largest - np.log(2 * np.pi * variance) / 2
        log_partition = log_ndtr(y * mean / np.sqrt(self.noise_std**2 + variance))
        label_mean: np.ndarray = y * (1 - 2 * mass * np.exp(log_density - log_partition))
        return label_mean
