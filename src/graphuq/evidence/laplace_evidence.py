"""Laplace's evidence of a prior covariance at the labelled nodes, and its gradient, by JAX."""

import math

import numpy as np
from jaxtyping import Float

from graphuq.likelihoods import Likelihood
from graphuq.utils.arrays import Array
from graphuq.utils.newton import minimize_by_newton
from graphuq.utils.with_jax import eqx, jax, jnp, with_dtype

MAX_NEWTON = 100  # steps
MAX_RESIDUAL = 1e-6  # of the mode, above which it was not found


def laplace_evidence(
    covariance: Float[np.ndarray, "J J"],
    likelihood: Likelihood,
    labels: Float[np.ndarray, " J"],
    tolerance: float,
) -> tuple[float, tuple[np.ndarray, dict[str, float]]]:
    """Return the value, NaN if the mode was not found, and its gradients.

    The gradients are those in the covariance, and by name in numbers of the likelihood.
    """
    with jax.enable_x64(True):
        prior, own, given = with_dtype((covariance, likelihood, labels), jnp.float64)
        value, (by_covariance, by_likelihood), left = _laplace(prior, own, given, tolerance)
    numbers = {name: float(x) for name, x in vars(by_likelihood).items() if eqx.is_array(x)}
    found = float(value) if float(left) <= MAX_RESIDUAL else math.nan
    return found, (np.asarray(by_covariance), numbers)


@eqx.filter_jit
def _laplace(
    covariance: Array, likelihood: Likelihood, labels: Array, tolerance: float
) -> tuple[Array, tuple[Array, Likelihood], Array]:
    """Return Laplace's evidence, its gradient in covariance and likelihood, and the residual.

    The evidence is ``log p(y | u) − ½ aᵀ G a − ½ log|I + W G|`` at the mode ``u = G a``, which
    Newton's method in a finds (Rasmussen & Williams 2006, algorithm 3.1). The mode moves with the
    hyperparameters. One further Newton step, with its matrix held fixed, has the right derivative.
    """

    def slopes(likelihood: Likelihood, u: Array) -> Array:
        result: Array = jax.grad(lambda v: likelihood.log_prob(v, labels).sum())(u)
        return result

    def curvature(likelihood: Likelihood, u: Array) -> Array:
        return -jax.jvp(lambda v: slopes(likelihood, v), (u,), (jnp.ones_like(u),))[1]

    def objective(a: Array) -> Array:
        u = covariance @ a
        return 0.5 * a @ u - likelihood.log_prob(u, labels).sum()

    def residual(a: Array) -> Array:
        return slopes(likelihood, covariance @ a) - a

    def step(a: Array, residual: Array) -> Array:
        """Return Newton's step for ``a = ∇ log p(y | G a)``."""
        system = jnp.eye(len(a)) + curvature(likelihood, covariance @ a)[:, None] * covariance
        return jnp.linalg.solve(system, residual)

    found = minimize_by_newton(
        objective, residual, step, jnp.zeros_like(labels), MAX_NEWTON, tolerance
    )
    mode = jax.lax.stop_gradient(found.x)
    system = jnp.eye(len(mode)) + curvature(likelihood, covariance @ mode)[:, None] * covariance

    def evidence(parts: tuple[Array, Likelihood]) -> Array:
        prior, own = parts
        missing = slopes(own, prior @ mode) - mode
        a = mode + jnp.linalg.solve(system, missing)
        u = prior @ a
        spread = jnp.eye(len(a)) + curvature(own, u)[:, None] * prior
        return own.log_prob(u, labels).sum() - 0.5 * a @ u - 0.5 * jnp.linalg.slogdet(spread)[1]

    value, gradient = eqx.filter_value_and_grad(evidence)((covariance, likelihood))
    return value, gradient, jnp.abs(found.residual).max()
