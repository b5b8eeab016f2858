"""Draws → numbers for every node, by row blocks, Rao-Blackwellised.

Given a draw, u at an unlabelled node is Gaussian with known mean and deviation (`field`), so
each draw gives a probability, not a sign; its average has the same mean and less variance.
"""

import dataclasses
from functools import partial, singledispatch

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

from graphuq.field import LabelledField
from graphuq.inference import Gaussian
from graphuq.inference.chains import Draws

BLOCK_ELEMENTS = 4_000_000  # rows × draws held at once: 32 MB a temporary
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

    def __getitem__(self, part: slice) -> "Rows":
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
        a Gaussian, whose own error it does not know.
    """
    raise TypeError(f"no summaries of {type(answer).__name__}")


@summarize.register
def _(answer: Gaussian, field: LabelledField, rows: Rows) -> NodeSummaries:
    mean, std = _gaussian_moments(answer, field, rows)
    with np.errstate(invalid="ignore"):
        label = 2 * ndtr(np.where(std > 0, mean / std, np.sign(mean) * np.inf)) - 1
    label[(std == 0) & (mean == 0)] = 0.0
    known = rows.at_labelled >= 0
    label[known] = answer.labelled_label_mean[rows.at_labelled[known]]
    return NodeSummaries(label, np.zeros_like(label), mean, std)


@summarize.register
def _(answer: Draws, field: LabelledField, rows: Rows) -> NodeSummaries:
    draws = answer
    n_chains, n_samples = draws.n_chains, draws.n_samples
    n_batches = min(BATCHES_A_CHAIN, n_samples // 2)
    n_used = n_samples - n_samples % n_batches
    white = draws.white[:, -n_used:].reshape(n_chains * n_used, -1).astype(np.float64)
    block = max(1, BLOCK_ELEMENTS // len(white))
    n_rows = len(rows.scale)
    out = np.empty((4, n_rows))
    with jax.enable_x64(True):
        for begin in range(0, n_rows, block):
            part = slice(begin, begin + block)
            mean, std = conditional_moments(field, white, rows[part])
            missing = min(block, n_rows) - len(std)  # one shape, so that one program serves all
            padded = np.pad(mean, ((0, missing), (0, 0))), np.pad(std, (0, missing))
            numbers = _summarize_block(*padded, n_chains, n_batches)
            out[:, part] = np.asarray(numbers)[:, : len(std)]
    return NodeSummaries(*out)


@partial(jax.jit, static_argnums=(2, 3))
def _summarize_block(mean: jax.Array, std: jax.Array, n_chains: int, n_batches: int) -> jax.Array:
    # Where u is determined by the draw, its sign is; where no mode lives (0/0), it is even.
    label = jnp.where(
        std[:, None] > 0,
        jax.lax.erf(mean / jnp.where(std > 0, std * jnp.sqrt(2.0), 1.0)[:, None]),
        jnp.sign(mean),
    )
    batches = label.reshape(len(std), n_chains, n_batches, -1).mean(axis=-1)
    mcse = batches.reshape(len(std), -1).std(axis=1, ddof=1) / np.sqrt(n_chains * n_batches)
    if n_chains > 1:
        between = batches.mean(axis=2).std(axis=1, ddof=1) / np.sqrt(n_chains)
        mcse = jnp.maximum(mcse, between)
    latent_std = jnp.sqrt(mean.var(axis=1) + std**2)
    return jnp.stack([label.mean(axis=1), mcse, mean.mean(axis=1), latent_std])


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
    block = max(1, BLOCK_ELEMENTS // len(white))
    out = np.empty((len(rows.scale), 2))
    with jax.enable_x64(True):
        for begin in range(0, len(out), block):
            part = slice(begin, begin + block)
            mean, std = conditional_moments(field, white, rows[part])
            out[part] = np.quantile(mean + std[:, None] * scores, tails, axis=1).T
    return out
