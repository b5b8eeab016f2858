"""Summaries of ordered classes: one field, cut into classes by thresholds.

The probability that a label is above a threshold b is that of the label +1 of two classes, for the
field u − b. So these are differences of summaries of two classes.
"""

from typing import Any, TypeGuard

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from graphuq.inference import GaussianMixture
from graphuq.inference.draws import Draws
from graphuq.posterior.field import LabelledField
from graphuq.results.summaries import binary
from graphuq.results.summaries.base import BLOCK_ELEMENTS, Link, NodeSummaries, Rows, slices
from graphuq.results.summaries.mixtures import mixture_summaries


def cuts(link: Link) -> TypeGuard[tuple[np.ndarray, ...]]:
    """Return whether a link has thresholds between ordered classes."""
    return link is not None and len(link) == 3


def grade_shares(
    mean: Float[np.ndarray, "*n"], std: Float[np.ndarray, "*m"], link: Any
) -> Float[np.ndarray, "*n K"]:
    """Return the probability of each class given a Gaussian u, or u itself with deviation 0."""
    weights, scales, thresholds = link
    total: Any = 0.0
    for weight, scale in zip(weights, scales, strict=True):
        z = (thresholds - mean[..., None]) / np.sqrt(np.asarray(std)[..., None] ** 2 + scale**2)
        below = np.concatenate([np.zeros((*z.shape[:-1], 1)), ndtr(z)], axis=-1)
        above = np.concatenate([ndtr(-z), np.zeros((*z.shape[:-1], 1))], axis=-1)
        # The smaller one of both tails, so that no difference of numbers near 1 is taken.
        lower = np.concatenate([below[..., 1:], np.ones((*z.shape[:-1], 1))], axis=-1) - below
        upper = np.concatenate([np.ones((*z.shape[:-1], 1)), above[..., :-1]], axis=-1) - above
        total = total + weight * np.where(below < 0.5, lower, upper)
    return np.asarray(total)


def label_means_of_one_field(
    mean: Float[np.ndarray, "B S"], std: Float[np.ndarray, " B"], link: Link
) -> Float[np.ndarray, "B S *K"]:
    """Return label means, or probabilities of ordered classes, of Gaussians; may overwrite mean."""
    if cuts(link):
        return grade_shares(mean, std[:, None], link)
    return np.asarray(binary.expected_label(mean, std, link))


def shares_of_one_field(
    mean: Float[np.ndarray, "B S"], std: Float[np.ndarray, " B"], link: Link
) -> Float[np.ndarray, "B S K"]:
    """Return the probability of each class of Gaussians; may overwrite the mean."""
    label = label_means_of_one_field(mean, std, link)
    return label if cuts(link) else np.stack([1 - label, 1 + label], axis=2) / 2


def of_component(link: Any, number: int) -> Any:
    """Return the link of one component of a mixture."""
    weights, scales, thresholds = link
    return weights, scales[[number if len(scales) > 1 else 0]], thresholds


def one_link(link: Link, answer: Any) -> Link:
    """Return the link with one noise for all components of a mixture, of their mean variance."""
    if link is None or not cuts(link) or len(link[1]) == 1:
        return link
    variance = np.asarray(answer.weights) @ link[1][np.asarray(answer.numbers)] ** 2
    return link[0], np.sqrt(np.atleast_1d(variance)), link[2]


def summarize(answer: Any, field: LabelledField, rows: Rows, link: Any) -> NodeSummaries:
    """Return means, deviations and Monte-Carlo errors at nodes; see `binary.summarize`.

    The Monte-Carlo error of a class is at most the sum of those of both its thresholds, which is
    what it is given.
    """
    if isinstance(answer, GaussianMixture):
        links = iter([of_component(link, int(number)) for number in answer.numbers])
        return mixture_summaries(
            answer, rows, link, lambda one, own, rows, _: summarize(one, own, rows, next(links))
        )
    if not isinstance(answer, Draws):
        found = binary.summarize(answer, field, rows)
        shares = np.empty((len(rows.scale), len(link[2]) + 1))
        for part in slices(len(shares), BLOCK_ELEMENTS // shares.shape[1]):
            shares[part] = grade_shares(found.latent_mean[part], found.latent_std[part], link)
        return NodeSummaries(shares, np.zeros_like(shares), found.latent_mean, found.latent_std)
    weights, scales, thresholds = link
    of_each = [
        binary.summarize(answer, field, rows.below(b), (weights, scales)) for b in thresholds
    ]
    nothing = np.zeros(len(rows.scale))
    above = np.stack([(1 + one.label_mean) / 2 for one in of_each], axis=1)
    errors = np.stack([nothing, *(one.label_mcse / 2 for one in of_each), nothing], axis=1)
    ends = np.column_stack([nothing + 1, above, nothing])
    shares = np.maximum(ends[:, :-1] - ends[:, 1:], 0.0)
    return NodeSummaries(
        shares / shares.sum(axis=1, keepdims=True),
        errors[:, :-1] + errors[:, 1:],
        of_each[0].latent_mean + thresholds[0],
        of_each[0].latent_std,
    )


def label_errors(
    draws: Draws, field: LabelledField, rows: Rows, link: Link = None
) -> Float[np.ndarray, "B K"]:
    """Return the Monte-Carlo errors of label means alone."""
    return summarize(draws, field, rows, link).label_mcse
