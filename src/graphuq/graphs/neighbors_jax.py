"""Exact nearest neighbours on an accelerator, by blocked matrix products in JAX."""

from functools import partial

import numpy as np
from jaxtyping import Float, Int

from graphuq.utils.compilation_cache import use_compilation_cache
from graphuq.utils.progress import Progress
from graphuq.utils.with_jax import jax, jnp

BLOCK_ELEMENTS = 1 << 28  # number of distances in memory together: one gigabyte
ROWS = 1 << 17  # number of rows that a block of queries is compared with together


def nearest(
    features: Float[np.ndarray, "N d"],
    queries: Float[np.ndarray, "R d"] | None,
    n_neighbors: int,
    progress: Progress | None = None,
) -> Int[np.ndarray, "R k"]:
    """Find the nearest rows of each query, nearest first; a row counts as its own neighbour.

    ``|x|² / 2 − qᵀ x`` orders rows as the distances do. The mean is subtracted from all features
    first, so that single precision suffices. The features stay on the device, and queries are
    processed in blocks.

    Parameters
    ----------
    features : numpy.ndarray of float32, shape (N, d)
    queries : numpy.ndarray of float32, shape (R, d), or None
        None for the rows themselves.
    n_neighbors : int
        Number k of neighbours.
    progress : callable, optional
        See `graphuq.utils.progress`.

    Returns
    -------
    numpy.ndarray of int, shape (R, k)
    """
    use_compilation_cache()
    center = features.mean(axis=0, dtype=np.float64).astype(np.float32)
    rows = jnp.asarray(features - center)
    asked = features if queries is None else queries
    n_rows, block = len(features), max(1, BLOCK_ELEMENTS // min(len(features), ROWS))
    indices = np.empty((len(asked), n_neighbors), np.int32)
    for begin in range(0, len(asked), block):
        query = jnp.asarray(asked[begin : begin + block] - center)
        best = _best_rows(query, rows[:ROWS], n_neighbors)
        for first in range(ROWS, n_rows, ROWS):
            scores, places = _best_rows(query, rows[first : first + ROWS], n_neighbors)
            best = _merge_best(*best, scores, places + first, n_neighbors)
        indices[begin : begin + block] = best[1]
        if progress is not None:
            progress("neighbours", min(begin + block, len(asked)), len(asked), np.nan)
    return indices


@partial(jax.jit, static_argnums=2)
def _best_rows(
    queries: Float[jax.Array, "R d"], rows: Float[jax.Array, "n d"], k: int
) -> tuple[jax.Array, jax.Array]:
    """Return the k largest scores, or all if there are fewer, and the indices of their rows."""
    product = jnp.matmul(queries, rows.T, precision=jax.lax.Precision.HIGHEST)
    return _largest(product - (rows**2).sum(axis=1)[None, :] / 2, k)


@partial(jax.jit, static_argnums=4)
def _merge_best(
    scores: jax.Array, indices: jax.Array, more: jax.Array, at: jax.Array, k: int
) -> tuple[jax.Array, jax.Array]:
    """Return the k largest scores of two lists, and the indices of their rows."""
    both, place = _largest(jnp.concatenate([scores, more], axis=1), k)
    return both, jnp.take_along_axis(jnp.concatenate([indices, at], axis=1), place, axis=1)


def _largest(scores: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    """Return the k largest scores of each row, or all if there are fewer, and their places."""
    largest, place = jax.lax.top_k(scores, min(k, scores.shape[1]))
    return largest, place
