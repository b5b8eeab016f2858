"""Functions of many points of a target at once, as programs of JAX."""

from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq.utils.arrays import Array
from graphuq.utils.with_jax import eqx, jax, jnp, with_dtype


def log_likelihoods(
    target: Any, white: Float[np.ndarray, "S n"], precision: str
) -> Float[np.ndarray, " S"]:
    """Return the log likelihood of each point, computed in a precision."""
    with jax.enable_x64(precision == "float64"):
        traced = with_dtype(target, precision), jnp.asarray(white, precision)
        return np.asarray(_log_likelihoods(*traced), np.float64)


def coefficients(target: Any, white: Float[np.ndarray, "S n"]) -> Any:
    """Return coefficients, hyperparameters and deviation of the tail of a hierarchical target."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, _coefficients(with_dtype(target, jnp.float64), white))


@eqx.filter_jit
def _log_likelihoods(target: Any, white: Array) -> Array:
    return jax.vmap(target.log_likelihood)(white)


@eqx.filter_jit
def _coefficients(target: Any, white: Array) -> Any:
    def parts(x: Array) -> Any:
        return target.coefficients(x), target.values(x), target.tail_std(x)

    return jax.vmap(parts)(jnp.asarray(white))
