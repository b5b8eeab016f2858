"""Summaries for several classes, in blocks of rows.

S(u) is the unit vector of the largest field, so that its mean is the probability of each class.
With a `link`, the label is random given u, and each draw gives probabilities instead of one class.
If a draw does not determine u, noise of the conditional distribution is added, with one random
number per draw and class for all nodes.
"""

from functools import singledispatch
from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq.inference import GaussianApproximation, GaussianMixture, Point
from graphuq.inference.draws import Draws
from graphuq.posterior.field import ClassField
from graphuq.results.summaries.base import (
    BATCHES,
    BATCHES_A_CHAIN,
    BLOCK_ELEMENTS,
    Link,
    NodeSummaries,
    Rows,
    conditional_distribution,
    nodes_read_from_draws,
    slices,
)
from graphuq.results.summaries.mixtures import mixture_summaries
from graphuq.results.summaries.random_label import random_label_shares
from graphuq.utils.arrays import mapped, parallel_map
from graphuq.utils.concurrency import cached_property

MANY_NUMBERS = 1_000_000_000  # nodes × draws × classes above which draws are thinned
ROWS_IN_CACHE = 16  # rows whose fields in all draws fit the CPU cache
FEW_DRAWS, MAX_DRAWS = (
    500,
    6_000,
)  # thinned draws for all nodes, and for nodes whose error exceeds MAX_ERROR
MAX_ERROR = 0.005  # Monte-Carlo error of a class probability with few draws


@singledispatch
def summarize(
    answer: Draws | GaussianApproximation | GaussianMixture | Point,
    field: ClassField,
    rows: Rows,
    link: Link = None,
) -> NodeSummaries:
    """Return means, deviations and Monte-Carlo errors at nodes.

    ``link`` is that of a label that is drawn given u; see `Likelihood.link`.
    """
    raise TypeError(f"no summaries of {type(answer).__name__}")


@summarize.register
def _(answer: GaussianMixture, field: ClassField, rows: Rows, link: Link = None) -> NodeSummaries:
    return mixture_summaries(answer, rows, link, summarize)


@summarize.register
def _(answer: Draws, field: ClassField, rows: Rows, link: Link = None) -> NodeSummaries:
    present = answer.hyperparameters.get("n_classes")
    return _adaptive_summaries(field, answer.white, present, rows, answer.tail_std, link)


@summarize.register
def _(
    answer: GaussianApproximation, field: ClassField, rows: Rows, link: Link = None
) -> NodeSummaries:
    from graphuq.results.summaries.gaussian_fields import gaussian_summaries  # imports Numba

    return gaussian_summaries(answer, field, rows, link)


def label_errors(
    draws: Draws, field: ClassField, rows: Rows, link: Link = None
) -> Float[np.ndarray, "B K"]:
    """Return the Monte-Carlo errors of class probabilities."""
    white, n_numbers = draws.white, _n_numbers(field, draws.white, rows)
    if n_numbers > MANY_NUMBERS:
        return summarize(draws, field, rows, link).label_mcse
    present = draws.hyperparameters.get("n_classes")
    averages = _Averages(field, white, present, draws.tail_std, None, link)
    return np.asarray(_at_rows(averages, rows, only_errors=True)[0])


def _n_numbers(field: ClassField, white: Float[np.ndarray, "C S n"], rows: Rows) -> int:
    """Return how many numbers the fields of all classes are in all draws."""
    return len(rows.scale) * white.shape[0] * white.shape[1] * field.n_classes


def _adaptive_summaries(
    field: ClassField,
    white: Float[np.ndarray, "C S n"],
    present: Float[np.ndarray, "C S"] | None,
    rows: Rows,
    units: Float[np.ndarray, "C S *K"] | None = None,
    link: Link = None,
) -> NodeSummaries:
    """Return summaries from few draws at nodes that are nearly certain, and from more elsewhere."""
    if _n_numbers(field, white, rows) <= MANY_NUMBERS:
        return _summaries(_Averages(field, white, present, units, None, link), rows)
    found = _summaries(_Averages(field, white, present, units, FEW_DRAWS, link), rows)
    unsure = np.flatnonzero(found.label_mcse.max(axis=1) > MAX_ERROR)
    if len(unsure):
        more = _Averages(field, white, present, units, MAX_DRAWS, link)
        again = _summaries(more, rows[unsure])
        for name, values in vars(found).items():
            values[unsure] = getattr(again, name)
    return found


def _summaries(averages: "_Averages", rows: Rows) -> NodeSummaries:
    return NodeSummaries(*_at_rows(averages, rows, only_errors=False))


def _at_rows(
    averages: "_Averages", rows: Rows, only_errors: bool
) -> Float[np.ndarray, "summaries B K"]:
    """Return probabilities, errors, latent means and deviations, or the errors alone."""
    n_classes, n_draws = averages.shape
    out = np.empty((1 if only_errors else 4, len(rows.scale), n_classes))
    known, at = nodes_read_from_draws(averages.field.field, rows)

    def average(part: slice) -> None:
        given = conditional_distribution(averages.field.field, rows[part])
        out[:, part] = averages.at_rows(*given, only_errors)

    parallel_map(average, slices(len(rows.scale), 4 * BLOCK_ELEMENTS // (n_draws * n_classes)))
    if len(known):
        white = averages.used.reshape(n_draws, -1)
        u = mapped(averages.field.at_labelled, white)[:, at]
        out[:, known] = averages.at_labelled(u.transpose(1, 2, 0), only_errors)
    return out


class _Averages:
    """Means over draws, with the Monte-Carlo error of class probabilities."""

    def __init__(
        self,
        field: ClassField,
        white: Float[np.ndarray, "C S n"],
        present: Float[np.ndarray, "C S"] | None,
        units: Float[np.ndarray, "C S *K"] | None = None,
        max_draws: int | None = None,
        link: Link = None,
    ) -> None:
        self.field, self.link = field, link
        n_chains, n_samples = white.shape[:2]
        units = np.ones((1, 1, 1)) if units is None else units.reshape(n_chains, n_samples, -1)
        units = np.broadcast_to(units, (n_chains, n_samples, field.n_classes))
        self.every, self.mean_square = white, (units**2).mean(axis=(0, 1))
        if max_draws is not None:  # thin each chain
            stride = max(1, n_chains * n_samples // max_draws)
            white = white[:, ::-stride][:, ::-1]
            present = None if present is None else present[:, ::-stride][:, ::-1]
            units = units[:, ::-stride][:, ::-1]
            n_samples = white.shape[1]
        per_chain = min(max(2, min(BATCHES // n_chains, BATCHES_A_CHAIN)), n_samples)
        self.batches = n_chains, per_chain
        n_used = n_samples - n_samples % per_chain
        self.used = white[:, -n_used:]
        seen = self._seen(self.used)
        self.shape = shape = field.n_classes, seen.shape[1]
        self.units = units[:, -n_used:].reshape(-1, shape[0]).T
        self.unit = np.sqrt((self.units**2).mean(axis=0))
        self.absent = np.zeros(shape, np.float32)
        if present is not None:
            there = np.arange(field.n_classes)[:, None] < present[:, -n_used:].ravel()[None, :]
            self.absent = np.where(there, 0.0, -np.inf).astype(np.float32)
        self.columns = seen.astype(np.float32).transpose(0, 2, 1)  # (K, r, S), no copy for BLAS

    @cached_property
    def noise(self) -> Float[np.ndarray, "K S"]:
        """Noise of the field at a node given what the draws know of it."""
        return (np.random.default_rng(0).normal(size=self.shape) * self.units).astype(np.float32)

    @cached_property
    def moments(self) -> tuple[Float[np.ndarray, "K r"], Float[np.ndarray, "K r r"]]:
        """Mean and covariance of each class over all draws."""
        seen = self._seen(self.every)
        means = seen.mean(axis=1)
        centred = seen - means[:, None]
        return means, centred.transpose(0, 2, 1) @ centred / seen.shape[1]

    def _seen(self, white: Float[np.ndarray, "C S n"]) -> Float[np.ndarray, "K T r"]:
        """Return the coordinates on which conditional means depend, for each class and draw."""
        flat = white.reshape(-1, white.shape[2]).astype(np.float64, copy=False)
        return np.asarray(self.field.field.seen(self.field.by_class(flat))).transpose(1, 0, 2)

    def at_rows(self, loadings: np.ndarray, std: np.ndarray, only_errors: bool) -> Any:
        """Return class probabilities, their error, latent mean and deviation.

        See `conditional_distribution`.
        """
        u = np.empty((len(loadings), *self.shape), np.float32)
        np.matmul(loadings.astype(np.float32), self.columns, out=u.transpose(1, 0, 2))
        probability, error = self._probabilities(u, std.astype(np.float32))
        if only_errors:
            return error[None]
        means, covariances = self.moments
        mean = loadings @ means.T
        spread = np.stack(
            [np.einsum("br,br->b", loadings @ c, loadings) for c in covariances], axis=1
        )
        latent_std = np.sqrt(np.maximum(spread, 0.0) + std[:, None] ** 2 * self.mean_square)
        return np.stack([probability, error, mean, latent_std])

    def at_labelled(self, u: Float[np.ndarray, "B K S"], only_errors: bool) -> Any:
        """Return class probabilities, their error, latent mean and deviation, given u."""
        known = np.zeros(len(u), np.float32)
        probability, error = self._probabilities(u.astype(np.float32), known)
        if only_errors:
            return error[None]
        return np.stack([probability, error, u.mean(axis=2), u.std(axis=2)])

    def _probabilities(self, u: np.ndarray, std: np.ndarray) -> tuple[Any, Any]:
        n_chains, per_chain = self.batches
        # If all fields are equal, as at nodes where no mode lives, classes share equally.
        level = (std == 0) & ~u[:, :, :8].any(axis=(1, 2))  # eight draws are not all zero by chance
        n_batches = n_chains * per_chain
        if self.link is None:
            shares = _shares(u, std, self.noise, self.absent, n_batches).astype(np.float64)
        else:
            shares = self._random_label_shares(u, std, n_batches)
        if level.any():
            there = np.isfinite(self.absent)
            shares[level] = (there / there.sum(axis=0)).mean(axis=1)
        mcse = shares.std(axis=1, ddof=1) / np.sqrt(shares.shape[1])
        if n_chains > 1:
            between = shares.reshape(len(shares), n_chains, per_chain, -1).mean(axis=2)
            mcse = np.maximum(mcse, between.std(axis=1, ddof=1) / np.sqrt(n_chains))
        return shares.mean(axis=1), mcse

    def _random_label_shares(self, u: np.ndarray, std: np.ndarray, n_batches: int) -> Any:
        """Return the mean probabilities of a label with noise of its own, for each batch."""
        assert self.link is not None
        u = u + self.absent if self.absent.any() else u
        variance = (std[:, None] * self.unit) ** 2 if std.any() else np.zeros((len(u), 1))
        return sum(
            weight * random_label_shares(u, np.sqrt(variance + scale**2), n_batches)
            for weight, scale in zip(*self.link, strict=True)
        )


def _shares(
    u: Float[np.ndarray, "B K S"],
    std: Float[np.ndarray, " B"],
    noise: Float[np.ndarray, "K S"],
    absent: Float[np.ndarray, "K S"],
    n_batches: int,
) -> Float[np.ndarray, "B n K"]:
    """Return the share of draws of each batch in which a class is the largest; overwrites u."""
    n_rows, n_classes, n_draws = u.shape
    begins = np.arange(0, n_draws, n_draws // n_batches)
    shares = np.empty((n_rows, n_batches, n_classes), np.float32)
    open_, some = bool(std.any()), bool(absent.any())
    for begin in range(0, n_rows, ROWS_IN_CACHE):  # blocks that fit the cache
        part = slice(begin, min(begin + ROWS_IN_CACHE, n_rows))
        own = u[part]
        if open_:
            own += std[part, None, None] * noise
        if some:
            own += absent
        largest = own.max(axis=1)
        for k in range(n_classes):
            leads = (own[:, k] >= largest).view(np.int8)
            shares[part, :, k] = np.add.reduceat(leads, begins, axis=1, dtype=np.int32)
    # Classes whose fields are exactly equal share the draw.
    shares /= shares.sum(axis=2, keepdims=True)
    return shares
