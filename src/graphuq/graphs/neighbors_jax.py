"""Exact nearest neighbours by blocked matrix products in JAX: for an accelerator."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from graphuq.utils.progress import Progress

BLOCK_ELEMENTS = 1 << 28  # distances held at once: one gigabyte
ROWS = 1 << 17  # of the features, at once


def nearest(
    features: Float[np.ndarray, "N d"],
    queries: Float[np.ndarray, "R d"] | None,
    n_neighbors: int,
    progress: Progress | None = None,
) -> Int[np.ndarray, "R k"]:
    """Indices of the nearest rows, nearest first, a row itself among them.

    ``|x|² / 2 − qᵀ x`` orders rows as distances do; features are moved to their mean first, so
    that single precision suffices. The features stay on the device, queries pass by in blocks.
    """
    center = features.mean(axis=0, dtype=np.float64).astype(np.float32)
    rows = jnp.asarray(features - center)
    asked = features if queries is None else queries
    n_rows, block = len(features), max(1, BLOCK_ELEMENTS // min(len(features), ROWS))
    found = np.empty((len(asked), n_neighbors), np.int32)
    for begin in range(0, len(asked), block):
        query = jnp.asarray(asked[begin : begin + block] - center)
        best = _nearest_of(query, rows[:ROWS], n_neighbors)
        for first in range(ROWS, n_rows, ROWS):
            scores, indices = _nearest_of(query, rows[first : first + ROWS], n_neighbors)
            best = _merged(*best, scores, indices + first, n_neighbors)
        found[begin : begin + block] = best[1]
        if progress is not None:
            progress("neighbours", min(begin + block, len(asked)), len(asked), np.nan)
    return found


@partial(jax.jit, static_argnums=2)
def _nearest_of(
    queries: Float[jax.Array, "R d"], rows: Float[jax.Array, "n d"], k: int
) -> tuple[jax.Array, jax.Array]:
    """Scores, largest first, and indices of the best rows: k, or all that there are."""
    product = jnp.matmul(queries, rows.T, precision=jax.lax.Precision.HIGHEST)
    return _largest(product - (rows**2).sum(axis=1)[None, :] / 2, k)


@partial(jax.jit, static_argnums=4)
def _merged(
    scores: jax.Array, indices: jax.Array, more: jax.Array, at: jax.Array, k: int
) -> tuple[jax.Array, jax.Array]:
    """The best of two lists."""
    both, place = _largest(jnp.concatenate([scores, more], axis=1), k)
    return both, jnp.take_along_axis(jnp.concatenate([indices, at], axis=1), place, axis=1)


def _largest(scores: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    found, place = jax.lax.top_k(scores, min(k, scores.shape[1]))
    return found, place
