"""Derivative in parameters of the weights of a graph, by JAX."""

from typing import Any

import numpy as np

from graphuq.evidence.changed_values import with_values
from graphuq.utils.arrays import Array
from graphuq.utils.with_jax import eqx, jax, jnp


def weight_gradient(
    pairs: Any, weight: Any, laplacian: str, values: dict[str, Any], diagonal: Any, off: Any
) -> dict[str, np.ndarray]:
    """Return the derivative in parameters of the weights, from that in entries of L."""
    with jax.enable_x64(True):
        found = _weight_gradient(pairs, weight, laplacian, values, diagonal, off)
        return {name: np.asarray(value) for name, value in found.items()}


@eqx.filter_jit
def _weight_gradient(
    pairs: Any, weight: Any, laplacian: str, values: dict[str, Any], diagonal: Array, off: Array
) -> dict[str, Any]:
    """Return the derivative in parameters of the weights, from that in entries of L."""

    def entries(values: dict[str, Any]) -> tuple[Any, Any]:
        weights = pairs.weights(with_values(weight, values))
        degrees = pairs.degrees(weights)
        if laplacian == "unnormalized":
            return degrees, -weights
        occupied = degrees > 0
        root = jnp.where(occupied, 1 / jnp.sqrt(jnp.where(occupied, degrees, 1.0)), 0.0)
        return occupied.astype(weights.dtype), -pairs.scaled(weights, root)

    _, pull = jax.vjp(entries, values)
    found: dict[str, Any] = pull((diagonal, off))[0]
    return found
