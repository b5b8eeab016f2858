"""Of several classes: draws → the probability of each class at every node, by row blocks.

S(u) is the unit vector of the largest field, so that its mean is the probability of each class.
Where a draw leaves u open it is completed by noise of its conditional law, the same at all nodes.
"""

from functools import partial, singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from graphuq.field import ClassField
from graphuq.inference import Gaussian, Point
from graphuq.inference.draws import Draws
from graphuq.summaries.base import (
    BATCHES,
    BATCHES_A_CHAIN,
    BLOCK_ELEMENTS,
    NodeSummaries,
    Rows,
    apart_from,
    law_of,
    side_by_side,
    slices,
)

GAUSSIAN_DRAWS = 2_000  # of an approximation: its probabilities have no closed form


@singledispatch
def summarize(answer: Draws | Gaussian | Point, field: ClassField, rows: Rows) -> NodeSummaries:
    """Means, deviations and Monte-Carlo errors at nodes."""
    raise TypeError(f"no summaries of {type(answer).__name__}")


@summarize.register
def _(answer: Draws, field: ClassField, rows: Rows) -> NodeSummaries:
    per_chain = min(max(2, min(BATCHES // answer.n_chains, BATCHES_A_CHAIN)), answer.n_samples)
    n_used = answer.n_samples - answer.n_samples % per_chain
    white = answer.white[:, -n_used:].reshape(answer.n_chains * n_used, -1)
    return _summaries(field, white, rows, (answer.n_chains, per_chain), _present(answer, n_used))


@summarize.register
def _(answer: Gaussian, field: ClassField, rows: Rows) -> NodeSummaries:
    root = np.linalg.cholesky(answer.seen_covariance)
    z = np.random.default_rng(0).normal(size=(GAUSSIAN_DRAWS, len(root)))
    return _summaries(field, answer.seen_mean + z @ root.T, rows, (BATCHES, 1), None)


def _present(draws: Draws, n_used: int) -> Float[np.ndarray, " S"] | None:
    """How many classes there are in each draw, where that is learnt."""
    learnt = draws.hyperparameters.get("n_classes")
    return None if learnt is None else learnt[:, -n_used:].ravel()


def _summaries(
    field: ClassField,
    white: Float[np.ndarray, "S n"],
    rows: Rows,
    batches: tuple[int, int],
    present: Float[np.ndarray, " S"] | None,
) -> NodeSummaries:
    n_draws, n_classes = len(white), field.n_classes
    out = np.empty((4, len(rows.scale), n_classes))
    averages = _Averages(field, white, batches, present)
    known, at = apart_from(field.field, rows)

    parts = list(slices(len(rows.scale), 4 * BLOCK_ELEMENTS // (n_draws * n_classes)))
    longest = max((part.stop - part.start for part in parts), default=0)

    def average(part: slice) -> None:
        """At rows made up to one length, so that one compiled function serves them all."""
        loadings, std = law_of(field.field, rows[part])
        missing = longest - len(std)
        loadings, std = np.pad(loadings, ((0, missing), (0, 0))), np.pad(std, (0, missing))
        out[:, part] = averages.lawful(loadings, std)[:, : longest - missing]

    side_by_side(average, parts)
    if len(known):
        u = np.asarray(jax.vmap(field.at_labelled)(white))[:, at]
        out[:, known] = averages.of_fields(u.transpose(1, 2, 0))
    return NodeSummaries(*out)


class _Averages:
    """Means over draws, with the Monte-Carlo error of class probabilities."""

    def __init__(
        self,
        field: ClassField,
        white: Float[np.ndarray, "S n"],
        batches: tuple[int, int],
        present: Float[np.ndarray, " S"] | None,
    ) -> None:
        self.batches = batches
        seen = np.asarray(field.field.seen(field.by_class(white.astype(np.float64))))
        self.seen = seen.transpose(1, 0, 2)  # (K, S, r)
        self.means = self.seen.mean(axis=1)
        centred = self.seen - self.means[:, None]
        self.covariances = centred.transpose(0, 2, 1) @ centred / len(white)
        shape = field.n_classes, len(white)
        self.noise = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        self.absent = np.zeros(shape, np.float32)
        if present is not None:
            there = np.arange(field.n_classes)[:, None] < present[None, :]
            self.absent = np.where(there, 0.0, -np.inf).astype(np.float32)
        r = self.seen.shape[2]
        self.columns = self.seen.transpose(2, 0, 1).reshape(r, -1).astype(np.float32)  # (r, K S)

    def lawful(self, loadings: Any, std: Any) -> Any:
        """Class probabilities, their error, latent mean and deviation; see `law_of`."""
        u = (loadings.astype(np.float32) @ self.columns).reshape(len(loadings), *self.noise.shape)
        probability, error = self._probabilities(u, std.astype(np.float32))
        mean = loadings @ self.means.T
        spread = np.einsum("br,krs,bs->bk", loadings, self.covariances, loadings, optimize=True)
        latent_std = np.sqrt(np.maximum(spread, 0.0) + std[:, None] ** 2)
        return np.stack([probability, error, mean, latent_std])

    def of_fields(self, u: Float[np.ndarray, "B K S"]) -> Any:
        """The same of nodes whose fields are known in each draw."""
        known = np.zeros(len(u), np.float32)
        probability, error = self._probabilities(u.astype(np.float32), known)
        return np.stack([probability, error, u.mean(axis=2), u.std(axis=2)])

    def _probabilities(self, u: Any, std: Any) -> tuple[Any, Any]:
        n_chains, per_chain = self.batches
        shares = np.asarray(
            _shares(u, std, self.noise, self.absent, n_chains * per_chain), np.float64
        )
        # Where all are level, as at nodes where no mode lives, each class has its part.
        level = (std == 0) & ~u[:, :, :8].any(axis=(1, 2))  # not by chance in eight draws
        if level.any():
            there = np.isfinite(self.absent)
            shares[level] = (there / there.sum(axis=0)).mean(axis=1)
        mcse = shares.std(axis=1, ddof=1) / np.sqrt(shares.shape[1])
        if n_chains > 1:
            between = shares.reshape(len(shares), n_chains, per_chain, -1).mean(axis=2)
            mcse = np.maximum(mcse, between.std(axis=1, ddof=1) / np.sqrt(n_chains))
        return shares.mean(axis=1), mcse


@partial(jax.jit, static_argnums=4)
def _shares(u: Any, std: Any, noise: Any, absent: Any, n_batches: int) -> Any:
    """Share of the draws of each batch in which a class is the largest, (B, batches, K)."""
    n_rows, n_classes, n_draws = u.shape

    def value(k: int) -> Any:
        return u[:, k] + (std[:, None] * noise[k][None, :] + absent[k][None, :])

    best, winner = value(0), jnp.zeros((n_rows, n_draws), jnp.int16)
    for k in range(1, n_classes):
        leads = value(k) > best
        best = jnp.where(leads, value(k), best)
        winner = jnp.where(leads, jnp.int16(k), winner)
    by_batch = winner.reshape(n_rows, n_batches, n_draws // n_batches)
    counts = [(by_batch == k).sum(axis=2, dtype=jnp.int32) for k in range(n_classes)]
    return jnp.stack(counts, axis=2) * np.float32(n_batches / n_draws)
