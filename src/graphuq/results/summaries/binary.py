"""Summaries for two classes, in blocks of rows, with Rao-Blackwellised averages.

Given a draw, u at an unlabelled node is Gaussian with known mean and deviation (`field`). Each
draw then gives a probability instead of a sign. Its average has the same mean and less variance.
"""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import erf, ndtr

from graphuq.inference import GaussianApproximation, GaussianMixture, Point
from graphuq.inference.draws import Draws
from graphuq.posterior.field import LabelledField
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
from graphuq.utils.arrays import double_precision, mapped, parallel_map

MANY_ELEMENTS = 1_000_000  # rows × draws above which averages are computed in single precision
MIN_UNIT = 1e-20  # smallest deviation of a tail by which u is divided, to avoid overflow


@singledispatch
def summarize(
    answer: Draws | GaussianApproximation | GaussianMixture | Point,
    field: LabelledField,
    rows: Rows,
    link: Link = None,
) -> NodeSummaries:
    """Return means, deviations and Monte-Carlo errors at nodes.

    Parameters
    ----------
    answer : Draws or Gaussian
        What a sampler or an approximation found.
    field : LabelledField
    rows : Rows
    link : tuple of numpy.ndarray, optional
        See `Likelihood.link`.

    Returns
    -------
    NodeSummaries
        The Monte-Carlo error is the larger of that of batch means and that of chain means. It is
        zero for Gaussian and point results, which have no Monte-Carlo error. If draws times nodes
        exceed a million, averages are computed in single precision. The rounding of 1e-6 is far
        below the Monte-Carlo error.
    """
    raise TypeError(f"no summaries of {type(answer).__name__}")


@summarize.register
def _(
    answer: GaussianApproximation, field: LabelledField, rows: Rows, link: Link = None
) -> NodeSummaries:
    label, mean, std = np.empty((3, len(rows.scale)))
    for part in slices(len(rows.scale), BLOCK_ELEMENTS // len(answer.white_mean)):
        label[part], mean[part], std[part] = _gaussian_moments(
            answer, *conditional_distribution(field, rows[part]), link, rows[part].shift
        )
    known = np.flatnonzero(rows.at_labelled >= 0)
    at = rows.at_labelled[known]
    own_mean = field.without_weights(answer.labelled_mean[at], at) + rows.shift[known]
    own_std = field.without_weights(np.sqrt(answer.labelled_variance[at]), at)
    mean[known], std[known] = own_mean, own_std
    label[known] = _gaussian_label(own_mean, own_std, link)
    if link is None:
        label[known] = answer.labelled_label_mean[at]
    return NodeSummaries(label, np.zeros_like(label), mean, std)


@summarize.register
def _(
    answer: GaussianMixture, field: LabelledField, rows: Rows, link: Link = None
) -> NodeSummaries:
    return mixture_summaries(answer, rows, link, summarize)


@summarize.register
def _(answer: Draws, field: LabelledField, rows: Rows, link: Link = None) -> NodeSummaries:
    n_draws = answer.n_chains * answer.n_samples
    averages = _averages(answer, field, rows, link)
    averages.prepare()
    out = np.empty((4, len(rows.scale)))
    with double_precision():

        def average(part: slice) -> None:
            given = conditional_distribution(field, rows[part])
            out[:, part] = averages.at_rows(*given, rows[part].shift)

        parallel_map(average, slices(len(rows.scale), BLOCK_ELEMENTS // n_draws))
        known, at = nodes_read_from_draws(field, rows)
        if len(known):
            white = averages.white.astype(np.float64)
            at_labelled = mapped(field.at_labelled, white).T
            for part in slices(len(known), BLOCK_ELEMENTS // n_draws):
                own = at_labelled[at[part]], at[part], rows.shift[known[part]]
                out[:, known[part]] = averages.at_labelled(*own)
    return NodeSummaries(*out)


def label_errors(
    draws: Draws, field: LabelledField, rows: Rows, link: Link = None
) -> Float[np.ndarray, " B"]:
    """Return Monte-Carlo errors of label means alone, in a fraction of the time of `summarize`."""
    if len(nodes_read_from_draws(field, rows)[0]):
        return summarize(draws, field, rows, link).label_mcse
    averages = _averages(draws, field, rows, link)
    errors = np.empty(len(rows.scale))

    def average(part: slice) -> None:
        given = conditional_distribution(field, rows[part])
        _, errors[part] = averages.labels(*given, rows[part].shift)

    size = BLOCK_ELEMENTS // (draws.n_chains * draws.n_samples)
    with double_precision():
        parallel_map(average, slices(len(errors), size))
    return errors


@summarize.register
def _(answer: Point, field: LabelledField, rows: Rows, link: Link = None) -> NodeSummaries:
    mean = np.empty(len(rows.scale))
    for part in slices(len(mean), BLOCK_ELEMENTS // len(answer.seen)):
        mean[part] = conditional_distribution(field, rows[part])[0] @ answer.seen
    known = np.flatnonzero(rows.at_labelled >= 0)
    at = rows.at_labelled[known]
    mean[known] = field.without_weights(answer.labelled[at], at)
    mean += rows.shift
    return NodeSummaries(np.sign(mean), np.zeros_like(mean), mean, np.zeros_like(mean))


def _averages(draws: Draws, field: LabelledField, rows: Rows, link: Link) -> "_Averages":
    many = len(rows.scale) * draws.n_chains * draws.n_samples > MANY_ELEMENTS
    return _Averages(draws, field, np.dtype(np.float32 if many else np.float64), link)


class _Averages:
    """Means over draws, minus a control variate, with the Monte-Carlo error of label means.

    The control variate of f is ``c = r (f − E_q f)``. Here q is the reference Gaussian, and r its
    density divided by that of the posterior, up to a constant. The posterior mean of c is zero if
    the posterior has mass wherever q has (`graphuq.inference.reference.has_uncovered_mass`). If q
    is close to the posterior, c is nearly f minus its mean. The control variate is subtracted with
    the least-squares coefficient: 1 if q is the posterior, and about 0 if r varies strongly.
    Without a reference, r is zero. The deviations ``f − E_q f`` are averaged, so that single
    precision loses nothing.
    """

    def __init__(
        self, draws: Draws, field: LabelledField, dtype: np.dtype, link: Link = None
    ) -> None:
        self.link = link
        per_chain = min(max(2, min(BATCHES // draws.n_chains, BATCHES_A_CHAIN)), draws.n_samples)
        n_used = draws.n_samples - draws.n_samples % per_chain
        n_draws = draws.n_chains * n_used
        self.shape = draws.n_chains, per_chain
        self.white = draws.white[:, -n_used:].reshape(n_draws, -1)
        units = draws.units.reshape(draws.n_chains, -1)[:, -n_used:].ravel()
        self.units = None if draws.tail_std is None else units.astype(dtype)
        self.mean_square = float((units**2).mean())
        self.gaussian, ratio = None, np.zeros(n_draws)
        if draws.reference is not None and draws.log_ratio is not None:
            self.gaussian = draws.reference
            log_ratio = draws.log_ratio[:, -n_used:].ravel()
            ratio = np.exp(np.min(log_ratio) - log_ratio)
        in_batches = ratio.reshape(draws.n_chains * per_chain, -1)
        self.first = np.stack([np.ones_like(in_batches), in_batches], axis=2).astype(dtype)
        self.first /= in_batches.shape[1]
        self.second = (np.stack([ratio, ratio**2], axis=1) / n_draws).astype(dtype)
        self.erf: Callable[[Any], Any] = erf if dtype == np.float64 else _fast_erf
        seen = np.asarray(field.seen(self.white))
        own_mean = seen.mean(axis=0, dtype=np.float64)
        self.center = own_mean if self.gaussian is None else self.gaussian.white_mean
        self.weights = np.stack([np.ones(n_draws), ratio, ratio**2]) / n_draws
        self.seen = np.ones((seen.shape[1] + 1, n_draws), dtype)
        np.subtract(seen.T, self.center[:, None], out=self.seen[:-1], casting="same_kind")

    def at_rows(self, loadings: np.ndarray, std: np.ndarray, shift: np.ndarray) -> Any:
        """Return label mean, its error, latent mean and deviation of rows of the field."""
        mean, spread = self._latent(loadings, std)
        return np.stack([*self.labels(loadings, std, shift), mean + shift, spread])

    def labels(self, loadings: np.ndarray, std: np.ndarray, shift: np.ndarray) -> tuple[Any, Any]:
        """Return label mean and its error of rows of the field plus their prior mean."""
        dtype = self.first.dtype
        center = loadings @ self.center + shift
        mean = np.column_stack([loadings, center]).astype(dtype) @ self.seen
        known = np.zeros(len(std))
        if self.gaussian is not None:
            known = _gaussian_moments(self.gaussian, loadings, std, self.link, shift)[0]
        return self._label(mean, std.astype(dtype), known)

    def prepare(self) -> None:
        """Compute moments of the draws, which only the mean and deviation of u need."""
        own = self.seen[:-1].astype(np.float64)
        self.means = own @ self.weights[:2].T
        needed = self.weights[: 1 if self.gaussian is None else 3]
        self.moments = [(own * weight) @ own.T for weight in needed]

    def _latent(self, loadings: np.ndarray, std: np.ndarray) -> tuple[Any, Any]:
        plain, control = (loadings @ self.means).T
        variance, *others = (_quadratic(loadings, moment) for moment in self.moments)
        spread = np.maximum(variance - plain**2, 0.0)
        if others:
            covariance, second = others
            plain -= control * _regression_coefficient(
                control, second - control**2, covariance - control * plain
            )
        return loadings @ self.center + plain, np.sqrt(spread + std**2 * self.mean_square)

    def at_labelled(self, field: np.ndarray, at: np.ndarray, shift: np.ndarray) -> Any:
        """Return label mean, its error, latent mean and deviation, from nodes in each draw."""
        dtype, u = self.first.dtype, field + shift[:, None]
        known_label, known, _ = np.zeros((3, len(u)))
        if self.gaussian is not None:
            known_label, known, _ = _gaussian_at_labelled(self.gaussian, at, self.link, shift)
        label = self._label(u.astype(dtype), np.zeros(len(u), dtype), known_label)
        batches = self._batches((u - known[:, None]).astype(dtype))
        return np.stack([*label, known + batches.mean(axis=1), u.std(axis=1)])

    def _label(self, mean: np.ndarray, std: np.ndarray, known: np.ndarray) -> tuple[Any, Any]:
        values = expected_label(mean, std, self.link, self.units, self.erf)
        values -= known.astype(values.dtype)[:, None]
        batches = self._batches(values)
        n_chains, per_chain = self.shape
        mcse = batches.std(axis=1, ddof=1) / np.sqrt(n_chains * per_chain)
        if n_chains > 1:
            between = batches.reshape(-1, n_chains, per_chain).mean(axis=2).std(axis=1, ddof=1)
            mcse = np.maximum(mcse, between / np.sqrt(n_chains))
        return np.clip(known + batches.mean(axis=1), -1, 1), mcse

    def _batches(self, values: np.ndarray) -> Any:
        """Return batch means of each row, minus the control variate."""
        n_batches, size, _ = self.first.shape
        parts = np.moveaxis(values.reshape(-1, n_batches, size), 1, 0)
        plain, control = (parts @ self.first).astype(np.float64).T  # (B, batches)
        values *= values
        covariance, second = (values @ self.second).astype(np.float64).T
        mean = control.mean(axis=1)
        gain = _regression_coefficient(
            mean, second - mean**2, covariance - mean * plain.mean(axis=1)
        )
        return plain - gain[:, None] * control


def _regression_coefficient(mean: np.ndarray, variance: np.ndarray, covariance: np.ndarray) -> Any:
    """Return the least-squares coefficient of a control variate, or 0 if it hardly varies."""
    usable = variance > 1e-6 * mean**2
    return np.where(usable, covariance / np.where(usable, variance, 1.0), 0.0)


def expected_label(
    mean: np.ndarray,
    std: np.ndarray,
    link: Link,
    units: np.ndarray | None = None,
    erf: Callable[[Any], Any] = erf,
) -> Any:
    """Return the mean label of Gaussians (B, S); the array ``mean`` may be overwritten.

    The deviation of each is that of its row, times the unit of its column if units (S,) are given.
    """
    if link is None:
        if units is not None:  # the sign does not depend on the unit
            mean /= np.maximum(units, MIN_UNIT)
        return _expected_sign(mean, std, erf)
    total = np.zeros_like(mean)
    variance = std[:, None] ** 2 if units is None else (std[:, None] * units) ** 2
    for weight, scale in zip(*link, strict=True):
        inverse = 1 / np.sqrt(2 * (variance + scale**2)).astype(std.dtype)
        total += std.dtype.type(weight) * erf(mean * inverse)
    return total


def _expected_sign(mean: np.ndarray, std: np.ndarray, erf: Callable[[Any], Any]) -> Any:
    """Return ``E sign(u)`` of Gaussians (B, S) with one deviation a row; overwrites ``mean``."""
    smooth = std > 0
    inverse = 1 / (np.sqrt(2.0).astype(std.dtype) * np.where(smooth, std, 1))
    if smooth.all():
        mean *= inverse[:, None]
        return erf(mean)
    between = erf(mean[smooth] * inverse[smooth, None]) if smooth.any() else 0
    # A draw that determines u determines its sign. A node where no mode lives (0/0) has mean 0.
    nowhere = ~mean[:, :8].any(axis=1)  # eight draws are not all zero by chance
    signs = np.greater(mean, 0, out=mean, casting="unsafe")  # four times as fast as copysign
    signs *= 2
    signs -= 1
    signs[nowhere] = 0
    if smooth.any():
        signs[smooth] = between
    return signs


def _fast_erf(x: np.ndarray) -> Any:
    from graphuq.results.summaries.erf_single import erf_single  # imports Numba

    return erf_single(x)


def _gaussian_moments(
    gaussian: GaussianApproximation,
    loadings: np.ndarray,
    std: np.ndarray,
    link: Link,
    shift: np.ndarray,
) -> tuple[Any, Any, Any]:
    """Return mean label, mean and deviation of u under the Gaussian at unlabelled nodes."""
    mean = loadings @ gaussian.white_mean + shift
    spread = _quadratic(loadings, gaussian.white_covariance)
    std = np.sqrt(std**2 + np.maximum(spread, 0.0))
    return _gaussian_label(mean, std, link), mean, std


def _quadratic(rows: np.ndarray, matrix: np.ndarray) -> Any:
    """Return ``xᵀ A x`` of each row x."""
    return np.einsum("br,br->b", rows @ matrix, rows)


def _gaussian_at_labelled(
    gaussian: GaussianApproximation, at: np.ndarray, link: Link, shift: np.ndarray
) -> tuple[Any, Any, Any]:
    """Return mean label, mean and deviation of u under the Gaussian at labelled nodes."""
    mean, std = gaussian.labelled_mean[at] + shift, np.sqrt(gaussian.labelled_variance[at])
    return _gaussian_label(mean, std, link), mean, std


def _gaussian_label(mean: np.ndarray, std: np.ndarray, link: Link) -> Any:
    """Return the mean label of a Gaussian; 0 if u is 0 with certainty."""
    if link is not None:
        return sum(w * erf(mean / np.sqrt(2 * (std**2 + s**2))) for w, s in zip(*link, strict=True))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((std == 0) & (mean == 0), 0.0, 2 * ndtr(mean / std) - 1)
