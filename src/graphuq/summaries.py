"""Draws → numbers for every node, by row blocks, Rao-Blackwellised.

Given a draw, u at an unlabelled node is Gaussian with known mean and deviation (`field`), so
each draw gives a probability, not a sign; its average has the same mean and less variance.
"""

import dataclasses
from collections.abc import Iterator
from functools import partial, singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import erf, ndtr, ndtri

from graphuq.field import LabelledField
from graphuq.inference import Gaussian
from graphuq.inference.chains import Draws

BLOCK_ELEMENTS = 500_000  # rows × draws held at once: a temporary fits the cache
COMPILED_ELEMENTS = 20_000_000  # rows × draws from which compiled single precision is faster
BATCHES_A_CHAIN = 20  # at most, for the Monte-Carlo error by batch means
QUANTILE_DRAWS = 2_000  # at most, evenly spaced, for credible intervals


@dataclasses.dataclass(frozen=True, eq=False)
class NodeSummaries:
    """Posterior numbers for B nodes.

    Attributes
    ----------
    label_mean, label_mcse : numpy.ndarray, shape (B,)
        ``E sign(u)``, and its Monte-Carlo standard error.
    latent_mean, latent_std : numpy.ndarray, shape (B,)
        Mean and standard deviation of u.
    """

    label_mean: Float[np.ndarray, " B"]
    label_mcse: Float[np.ndarray, " B"]
    latent_mean: Float[np.ndarray, " B"]
    latent_std: Float[np.ndarray, " B"]


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Nodes to summarise: their rows of the eigenvector matrix.

    ``at_labelled`` gives, for each, its position among the labelled nodes, or −1.
    """

    eigenvectors: Float[np.ndarray, "B L"]
    scale: Float[np.ndarray, " B"]
    at_labelled: np.ndarray

    def __getitem__(self, part: slice | np.ndarray) -> "Rows":
        """Some of the rows."""
        return Rows(self.eigenvectors[part], self.scale[part], self.at_labelled[part])


def conditional_moments(
    field: LabelledField, white: Float[np.ndarray, "S n"], rows: Rows
) -> tuple[Float[np.ndarray, "B S"], Float[np.ndarray, " B"]]:
    """Mean, for each draw, and standard deviation of u at nodes given u at the labelled ones."""
    mean = rows.scale[:, None] * (rows.eigenvectors @ np.asarray(field.mean_coefficients(white)).T)
    std = rows.scale * field.conditional_std(rows.eigenvectors)
    known = np.flatnonzero(rows.at_labelled >= 0)
    if len(known):
        at_labelled = jax.vmap(field.at_labelled)(white)
        mean[known] = np.asarray(at_labelled)[:, rows.at_labelled[known]].T
        std[known] = 0.0
    return mean, std


@singledispatch
def summarize(answer: Draws | Gaussian, field: LabelledField, rows: Rows) -> NodeSummaries:
    """Means, deviations and Monte-Carlo errors at nodes.

    Parameters
    ----------
    answer : Draws or Gaussian
        What a sampler or an approximation found.
    field : LabelledField
    rows : Rows

    Returns
    -------
    NodeSummaries
        The Monte-Carlo error is the larger of that of batch means and that of chain means; 0 for
        a Gaussian, whose own error it does not know. Where draws times nodes exceed 20 million,
        averages are taken in single precision: rounding of 1e-6, far below that error.
    """
    raise TypeError(f"no summaries of {type(answer).__name__}")


@summarize.register
def _(answer: Gaussian, field: LabelledField, rows: Rows) -> NodeSummaries:
    _, std = _gaussian_moments(answer, field, rows)
    label, mean = _gaussian_means(answer, field, rows)
    known = rows.at_labelled >= 0
    label[known] = answer.labelled_label_mean[rows.at_labelled[known]]
    return NodeSummaries(label, np.zeros_like(label), mean, std)


@summarize.register
def _(answer: Draws, field: LabelledField, rows: Rows) -> NodeSummaries:
    draws = answer
    n_batches = min(BATCHES_A_CHAIN, draws.n_samples // 2)
    n_used = draws.n_samples - draws.n_samples % n_batches
    white = draws.white[:, -n_used:].reshape(draws.n_chains * n_used, -1).astype(np.float64)
    known, ratio = np.zeros((2, len(rows.scale))), np.zeros(len(white))
    if draws.reference is not None and draws.log_ratio is not None:
        known = np.stack(_gaussian_means(draws.reference, field, rows))
        log_ratio = draws.log_ratio[:, -n_used:].ravel()
        ratio = np.exp(np.min(log_ratio) - log_ratio)
    shape = draws.n_chains, n_batches
    many = len(rows.scale) * len(white) > COMPILED_ELEMENTS
    dtype = np.float32 if many else np.float64
    summarize_values = _compiled_values if many else partial(_summarize_values, np, erf)
    summarize_rows = _compiled_rows if many else partial(_summarize_rows, np, erf)
    out = np.empty((4, len(rows.scale)))
    unlabelled = np.flatnonzero(rows.at_labelled < 0)
    labelled = np.flatnonzero(rows.at_labelled >= 0)
    with jax.enable_x64(True):
        coefficients = np.asarray(field.mean_coefficients(white)).T.astype(dtype)
        ratio = ratio.astype(dtype)
        for nodes in _blocks(unlabelled, len(white)):
            part = rows[nodes]
            loadings = (part.scale[:, None] * part.eigenvectors).astype(dtype)
            std = (part.scale * field.conditional_std(part.eigenvectors)).astype(dtype)
            out[:, nodes] = summarize_rows(
                loadings, coefficients, std, known[:, nodes].astype(dtype), ratio, shape
            )
        if len(labelled):
            at_labelled = np.asarray(jax.vmap(field.at_labelled)(white)).T
            for nodes in _blocks(labelled, len(white)):
                mean = at_labelled[rows.at_labelled[nodes]].astype(dtype)
                std = np.zeros(len(nodes), dtype)
                out[:, nodes] = summarize_values(
                    mean, std, known[:, nodes].astype(dtype), ratio, shape
                )
    return NodeSummaries(*out)


def _blocks(nodes: np.ndarray, n_draws: int) -> Iterator[np.ndarray]:
    """Equally many nodes at a time, the last block repeating some: one program serves all."""
    block = max(1, min(max(64, BLOCK_ELEMENTS // n_draws), len(nodes)))
    for begin in range(0, len(nodes), block):
        begin = min(begin, len(nodes) - block)
        yield nodes[begin : begin + block]


def _summarize_values(
    xp: Any,
    erf: Any,
    mean: Any,
    std: Any,
    known: Any,
    ratio: Any,
    shape: tuple[int, int],
) -> Any:
    """Label mean, its error, latent mean and deviation of nodes, from u's mean given each draw.

    ``xp`` is NumPy or jax.numpy: the first needs no compilation, the second less memory traffic.
    """
    root = np.sqrt(2.0).astype(std.dtype)
    # Where u is determined by the draw, its sign is; where no mode lives (0/0), it is even.
    label = xp.where(
        std[:, None] > 0, erf(mean / (root * xp.where(std > 0, std, 1))[:, None]), xp.sign(mean)
    )
    label = _controlled(xp, label, known[0], ratio)
    n_chains, n_batches = shape
    batches = label.reshape(len(std), n_chains, n_batches, -1).mean(axis=-1)
    flat = batches.reshape(len(std), -1)
    mcse = flat.std(axis=1, ddof=1) / np.sqrt(n_chains * n_batches).astype(std.dtype)
    if n_chains > 1:
        between = batches.mean(axis=2).std(axis=1, ddof=1)
        mcse = xp.maximum(mcse, between / np.sqrt(n_chains).astype(std.dtype))
    latent_mean = _controlled(xp, mean, known[1], ratio).mean(axis=1)
    latent_std = xp.sqrt(mean.var(axis=1) + std**2)
    return xp.stack([xp.clip(flat.mean(axis=1), -1, 1), mcse, latent_mean, latent_std])


def _summarize_rows(
    xp: Any,
    erf: Any,
    loadings: Any,
    coefficients: Any,
    std: Any,
    known: Any,
    ratio: Any,
    shape: Any,
) -> Any:
    return _summarize_values(xp, erf, loadings @ coefficients, std, known, ratio, shape)


_compiled_values = jax.jit(partial(_summarize_values, jnp, jax.lax.erf), static_argnums=4)
_compiled_rows = jax.jit(partial(_summarize_rows, jnp, jax.lax.erf), static_argnums=5)


def _controlled(xp: Any, values: Any, known: Any, ratio: Any) -> Any:
    """Values f (B, S) less a control variate, with the same mean and less variance.

    With r the density of a Gaussian q over the posterior, ``r (f − E_q f)`` has posterior mean
    zero, whatever the constant in r; where q is close it is all but f less its mean. It is
    taken off with the coefficient of least squares: 1 if q is the posterior, about 0 if r is
    wild or, as without reference, zero.
    """
    control = ratio[None, :] * (values - known[:, None])
    mean = control.mean(axis=1)
    variance = (control**2).mean(axis=1) - mean**2
    covariance = (control * values).mean(axis=1) - mean * values.mean(axis=1)
    usable = variance > 1e-6 * mean**2
    coefficient = xp.where(usable, covariance / xp.where(usable, variance, 1), 0)
    return values - coefficient[:, None] * control


def _gaussian_means(
    gaussian: Gaussian, field: LabelledField, rows: Rows
) -> tuple[Float[np.ndarray, " B"], Float[np.ndarray, " B"]]:
    """Mean of sign(u), and of u, under the Gaussian at nodes."""
    mean, std = _gaussian_moments(gaussian, field, rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        label = 2 * ndtr(np.where(std > 0, mean / std, np.sign(mean) * np.inf)) - 1
    label[(std == 0) & (mean == 0)] = 0.0
    return label, mean


def _gaussian_moments(
    gaussian: Gaussian, field: LabelledField, rows: Rows
) -> tuple[Float[np.ndarray, " B"], Float[np.ndarray, " B"]]:
    """Mean and standard deviation of u at nodes."""
    loadings = rows.eigenvectors @ np.asarray(field.coefficient_map)
    spread = ((loadings @ gaussian.seen_covariance) * loadings).sum(axis=1)
    variance = field.conditional_std(rows.eigenvectors) ** 2 + np.maximum(spread, 0.0)
    mean, std = rows.scale * (loadings @ gaussian.seen_mean), rows.scale * np.sqrt(variance)
    known = np.flatnonzero(rows.at_labelled >= 0)
    mean[known] = gaussian.labelled_mean[rows.at_labelled[known]]
    std[known] = np.sqrt(gaussian.labelled_variance[rows.at_labelled[known]])
    return mean, std


@singledispatch
def credible_interval(
    answer: Draws | Gaussian, field: LabelledField, rows: Rows, probability: float
) -> Float[np.ndarray, "B 2"]:
    """Equal-tailed credible interval of u at nodes.

    Of draws: quantiles of draws completed by the conditional law, each draw's mean plus its
    deviation times a normal score, the scores stratified and shuffled once.
    """
    raise TypeError(f"no intervals of {type(answer).__name__}")


@credible_interval.register
def _(
    answer: Gaussian, field: LabelledField, rows: Rows, probability: float
) -> Float[np.ndarray, "B 2"]:
    mean, std = _gaussian_moments(answer, field, rows)
    half = ndtri((1 + probability) / 2) * std
    return np.stack([mean - half, mean + half], axis=1)


@credible_interval.register
def _(
    answer: Draws, field: LabelledField, rows: Rows, probability: float
) -> Float[np.ndarray, "B 2"]:
    draws = answer
    white = draws.white.reshape(-1, draws.white.shape[-1]).astype(np.float64)
    white = white[:: max(1, -(-len(white) // QUANTILE_DRAWS))]
    scores = ndtri((np.arange(len(white)) + 0.5) / len(white))
    np.random.default_rng(0).shuffle(scores)
    tails = [(1 - probability) / 2, (1 + probability) / 2]
    out = np.empty((len(rows.scale), 2))
    unlabelled = np.flatnonzero(rows.at_labelled < 0)
    labelled = np.flatnonzero(rows.at_labelled >= 0)
    with jax.enable_x64(True):
        for nodes in [*_blocks(unlabelled, len(white)), labelled]:
            mean, std = conditional_moments(field, white, rows[nodes])
            out[nodes] = np.quantile(mean + std[:, None] * scores, tails, axis=1).T
    return out
