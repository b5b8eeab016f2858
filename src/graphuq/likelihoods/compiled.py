"""Integrals of a likelihood over a Gaussian, and their derivatives, as programs of JAX."""

from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq.utils.arrays import Array
from graphuq.utils.special_functions import uniform_quadrature
from graphuq.utils.with_jax import eqx, jax, jnp, with_dtype

QUADRATURE_NODES = 64  # nodes of the quadrature on each half-line
WIDTH = 9.0  # half the range of the quadrature over a Gaussian, in standard deviations

PerLabel = Float[np.ndarray, " J"]


def with_derivatives(
    likelihood: Any, mean: PerLabel, variance: PerLabel, y: PerLabel
) -> tuple[PerLabel, PerLabel, PerLabel]:
    """Return ``log_partition``, and its first and second derivative in the mean."""
    with jax.enable_x64(True):
        found = _with_derivatives(with_dtype(likelihood, jnp.float64), mean, variance, y)
        value, first, second = map(np.asarray, found)
    return value, first, second


def mean_sign(likelihood: Any, mean: PerLabel, variance: PerLabel, y: PerLabel) -> PerLabel:
    """Return ``E sign(u)`` under likelihood × Gaussian, by quadrature on each half-line."""
    with jax.enable_x64(True):
        return np.asarray(_mean_sign(with_dtype(likelihood, jnp.float64), mean, variance, y))


def slopes(likelihood: Any, mean: PerLabel, variance: PerLabel, y: PerLabel) -> dict[str, float]:
    """Return the derivative of the sum of ``log_partition`` in each hyperparameter, by name."""
    with jax.enable_x64(True):
        found = _slopes(with_dtype(likelihood, jnp.float64), mean, variance, y)
    numbers = [
        name for name, value in vars(likelihood).items() if isinstance(value, float | np.floating)
    ]
    return {name: float(getattr(found, name)) for name in numbers}


@eqx.filter_jit
def _with_derivatives(likelihood: Any, mean: Array, variance: Array, y: Array) -> tuple[Array, ...]:
    def total(mean: Array) -> Array:
        return likelihood.log_partition(mean, variance, y).sum()

    derivatives = jax.jvp(jax.grad(total), (mean,), (jnp.ones_like(mean),))
    return likelihood.log_partition(mean, variance, y), *derivatives


@eqx.filter_jit
def _mean_sign(likelihood: Any, mean: Array, variance: Array, y: Array) -> Array:
    nodes, weights = uniform_quadrature(QUADRATURE_NODES)
    deviation = jnp.sqrt(variance)

    def log_mass(sign: float) -> Array:
        near = jnp.maximum(sign * mean - WIDTH * deviation, 0.0)
        far = jnp.maximum(sign * mean + WIDTH * deviation, near + deviation)
        half = (far - near)[:, None] / 2
        u = sign * (near[:, None] + half * (nodes + 1)[None, :])
        log_gaussian = -((u - mean[:, None]) ** 2) / (2 * variance[:, None])
        log_prob = jax.vmap(lambda column: likelihood.log_prob(column, y), in_axes=1, out_axes=1)(u)
        return jax.nn.logsumexp(log_prob + log_gaussian + jnp.log(weights[None, :] * half), axis=1)

    return jnp.tanh((log_mass(1.0) - log_mass(-1.0)) / 2)


@eqx.filter_jit
def _slopes(likelihood: Any, mean: Array, variance: Array, y: Array) -> Any:
    def total(traced: Any) -> Array:
        return traced.log_partition(mean, variance, y).sum()

    return eqx.filter_grad(total)(likelihood)  # type: ignore[no-untyped-call]
