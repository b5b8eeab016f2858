"""Marginal distributions of u at single nodes: draws, soft labels and intervals."""

from functools import singledispatch
from types import ModuleType

import numpy as np
from jaxtyping import Float
from scipy.special import expit, ndtri

from graphuq.inference import GaussianApproximation, GaussianMixture, Point
from graphuq.inference.draws import Draws
from graphuq.likelihoods import Likelihood
from graphuq.posterior.field import ClassField, LabelledField
from graphuq.results.summaries import binary, multiclass, ordered
from graphuq.results.summaries.base import BLOCK_ELEMENTS, Link, Rows, conditional_moments, slices
from graphuq.results.summaries.mixtures import mixture_interval
from graphuq.results.summaries.ordered import cuts, grade_shares
from graphuq.results.summaries.random_label import class_shares
from graphuq.utils.arrays import double_precision

QUANTILE_DRAWS = 2_000  # largest number of evenly spaced draws for credible intervals
QUADRATURE_ELEMENTS = 2**16  # integrals of one block; each may need 64 values of u


def module_for(field: LabelledField | ClassField, link: Link = None) -> ModuleType:
    """Return the module that summarises a field.

    It is `binary` for one field a node, `ordered` if a link cuts it into classes, or `multiclass`.
    """
    if field.n_fields > 1:
        return multiclass
    return ordered if cuts(link) else binary


def latent_draws(
    draws: Draws, field: LabelledField | ClassField, rows: Rows, seed: int = 0
) -> Float[np.ndarray, "B S *K"]:
    """Return u at nodes in every draw, with noise of its conditional distribution.

    Each row is a sample of its node's marginal distribution.
    """
    white = draws.white.reshape(-1, draws.white.shape[-1]).astype(np.float64)
    with double_precision():
        mean, std = conditional_moments(field, white, rows)
    noise = np.random.default_rng(seed).normal(size=mean.shape)
    completed: Float[np.ndarray, "B S *K"] = mean + _deviations(std, draws.units, mean.ndim) * noise
    return completed


def class_probability_draws(
    draws: Draws, field: LabelledField | ClassField, rows: Rows, link: Link = None
) -> Float[np.ndarray, "B S K"]:
    """Probability of each class at nodes given each draw; its mean is the class probability.

    For two classes in closed form, since u given the draw is Gaussian. For more classes the draw
    of u is completed by `latent_draws`; `class_shares` gives the probability.
    """
    if field.n_fields == 1:
        white = draws.white.reshape(-1, draws.white.shape[-1]).astype(np.float64)
        with double_precision():
            mean, std = conditional_moments(field, white, rows)
        if cuts(link):
            return grade_shares(mean, std[:, None] * draws.units[:, 0], link)
        units = None if draws.tail_std is None else draws.units[:, 0]
        label = binary.expected_label(mean, std, link, units)
        return np.stack([1 - label, 1 + label], axis=2) / 2
    u = latent_draws(draws, field, rows)
    n_classes = draws.hyperparameters.get("n_classes")
    if n_classes is not None:  # classes that a draw does not have
        u[:, np.arange(field.n_fields) >= n_classes.reshape(-1, 1)] = -np.inf
    return class_shares(u, link)


def soft_label_mean(
    answer: Draws | GaussianApproximation | GaussianMixture | Point,
    field: LabelledField | ClassField,
    rows: Rows,
    likelihood: Likelihood,
) -> Float[np.ndarray, " B"]:
    """Return ``E p(y = +1 | u)`` at nodes, the noise of a label included, for two classes.

    `Likelihood.log_partition` gives the integral over a Gaussian, for each draw or approximation.
    """
    if isinstance(answer, GaussianMixture):
        parts = zip(answer.weights, answer.components, answer.fields, strict=True)
        return sum(w * soft_label_mean(one, own, rows, likelihood) for w, one, own in parts)
    if not isinstance(answer, Draws):
        found = module_for(field).summarize(answer, field, rows)
        return soft_labels(likelihood, found.latent_mean, found.latent_std)
    white = answer.white.reshape(-1, answer.white.shape[-1]).astype(np.float64)
    out = np.empty(len(rows.scale))
    with double_precision():
        for part in slices(len(out), BLOCK_ELEMENTS // len(white)):
            mean, std = conditional_moments(field, white, rows[part])
            spread = _deviations(std, answer.units, 2)
            out[part] = soft_labels(likelihood, mean, spread).mean(axis=1)
    return out


def soft_labels(
    likelihood: Likelihood,
    mean: Float[np.ndarray, "*n"],
    std: Float[np.ndarray, "*m"] | float = 0.0,
) -> Float[np.ndarray, "*n"]:
    """Return ``p(y = +1)`` for Gaussian or known u.

    The probabilities of both labels add up to the same constant for all u.
    """
    # A deviation of zero becomes one that is negligible beside any mean but zero.
    variance = np.broadcast_to(np.maximum(std, 1e-150) ** 2, mean.shape).ravel()
    flat, share = mean.ravel(), np.empty(mean.size)
    with double_precision():
        for part in slices(len(flat), QUADRATURE_ELEMENTS):
            label = np.ones(len(flat[part]))
            plus, minus = (
                np.asarray(likelihood.log_partition(flat[part], variance[part], y))
                for y in (label, -label)
            )
            share[part] = expit(plus - minus)
    return share.reshape(mean.shape)


def _deviations(
    std: Float[np.ndarray, " B"], units: Float[np.ndarray, "S #K"], n_axes: int
) -> Float[np.ndarray, "B S *K"]:
    """Return the deviation of u at nodes given each draw, by class if there are several."""
    deviations: np.ndarray = std[:, None, None] * units
    return deviations[:, :, 0] if n_axes == 2 else deviations


@singledispatch
def credible_interval(
    answer: Draws | GaussianApproximation | GaussianMixture | Point,
    field: LabelledField | ClassField,
    rows: Rows,
    probability: float,
) -> Float[np.ndarray, "B *K 2"]:
    """Return the equal-tailed credible interval of u, or of each class's u, at nodes.

    For draws, these are quantiles of each draw's conditional mean plus its deviation times a
    normal score. The scores are stratified and shuffled once.
    """
    raise TypeError(f"no intervals of {type(answer).__name__}")


@credible_interval.register
def _(
    answer: GaussianApproximation | Point,
    field: LabelledField | ClassField,
    rows: Rows,
    probability: float,
) -> Float[np.ndarray, "B *K 2"]:
    answer_at = module_for(field).summarize(answer, field, rows)
    mean, std = answer_at.latent_mean, answer_at.latent_std
    half = ndtri((1 + probability) / 2) * std
    return np.stack([mean - half, mean + half], axis=-1)


@credible_interval.register
def _(
    answer: GaussianMixture, field: LabelledField | ClassField, rows: Rows, probability: float
) -> Float[np.ndarray, "B *K 2"]:
    return mixture_interval(answer, rows, probability, module_for(field).summarize)


@credible_interval.register
def _(
    answer: Draws, field: LabelledField | ClassField, rows: Rows, probability: float
) -> Float[np.ndarray, "B *K 2"]:
    white = answer.white.reshape(-1, answer.white.shape[-1]).astype(np.float64)
    stride = max(1, -(-len(white) // QUANTILE_DRAWS))
    white, units = white[::stride], answer.units[::stride]
    scores = ndtri((np.arange(len(white)) + 0.5) / len(white))
    np.random.default_rng(0).shuffle(scores)
    tails = [(1 - probability) / 2, (1 + probability) / 2]
    classes = (field.n_fields,) if field.n_fields > 1 else ()
    scores = scores.reshape(1, -1, *[1] * len(classes))
    out = np.empty((len(rows.scale), *classes, 2))
    n_numbers = len(white) * int(np.prod(classes))
    with double_precision():
        for part in slices(len(out), BLOCK_ELEMENTS // n_numbers):
            mean, std = conditional_moments(field, white, rows[part])
            completed = mean + _deviations(std, units, mean.ndim) * scores
            out[part] = np.moveaxis(np.quantile(completed, tails, axis=1), 0, -1)
    return out
