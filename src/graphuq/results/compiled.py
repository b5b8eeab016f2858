"""Log probabilities of labels and their derivatives, as programs of JAX."""

from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq.utils.part import unchecked
from graphuq.utils.with_jax import eqx, jax, jnp, with_dtype


def slopes(
    likelihood: Any, u: Float[np.ndarray, "J *K"], labels: Float[np.ndarray, " J"]
) -> tuple[Float[np.ndarray, "J *K"], Float[np.ndarray, "J *KK"]]:
    """Return gradient and Hessian of the log probability of each label in its u."""
    with jax.enable_x64(True):
        found = _derivatives(with_dtype(likelihood, jnp.float64), u, labels)
        first, second = map(np.asarray, found)
    return first, second


def log_probs(
    likelihood: Any,
    u: Float[np.ndarray, "S B *K"],
    labels: Float[np.ndarray, "M B"],
    values: dict[str, np.ndarray],
) -> Float[np.ndarray, "S M B"]:
    """Return log probabilities of sets of labels, for each draw of u and of hyperparameters."""
    with jax.enable_x64(True):
        return np.asarray(_log_probs(with_dtype(likelihood, jnp.float64), u, labels, values))


@eqx.filter_jit
def _derivatives(likelihood: Any, u: Any, labels: Any) -> Any:
    def log_prob(u: Any, y: Any) -> Any:
        return likelihood.log_prob(u[None], y[None])[0]

    return jax.vmap(jax.grad(log_prob))(u, labels), jax.vmap(jax.hessian(log_prob))(u, labels)


@eqx.filter_jit
def _log_probs(likelihood: Any, u: Any, labels: Any, values: dict[str, Any]) -> Any:
    def given(u: Any, values: dict[str, Any]) -> Any:
        part = unchecked(likelihood, values)
        return jax.lax.map(lambda y: part.log_prob(u, y), labels)

    return jax.vmap(given)(u, values)
