"""Summaries of a mixture of Gaussians: those of the components, weighed."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

from graphuq.inference import GaussianMixture
from graphuq.results.summaries.base import BLOCK_ELEMENTS, Link, NodeSummaries, Rows, slices

BISECTIONS = 50  # of the range of a quantile, which leave its 10⁻¹⁵th part


def mixture_summaries(
    answer: GaussianMixture, rows: Rows, link: Link, summarize: Callable[..., NodeSummaries]
) -> NodeSummaries:
    """Return means and deviations of a mixture; ``summarize`` serves each component."""
    found = [
        summarize(one, field, rows, link)
        for one, field in zip(answer.components, answer.fields, strict=True)
    ]

    def weighed(values: list[np.ndarray]) -> np.ndarray:
        total = np.zeros_like(values[0])
        for weight, value in zip(answer.weights, values, strict=True):
            total += weight * value
        return total

    label = weighed([one.label_mean for one in found])
    mean = weighed([one.latent_mean for one in found])
    square = weighed([one.latent_std**2 + one.latent_mean**2 for one in found])
    std = np.sqrt(np.maximum(square - mean**2, 0.0))
    return NodeSummaries(label, np.zeros_like(label), mean, std)


def mixture_interval(
    answer: GaussianMixture, rows: Rows, probability: float, summarize: Callable[..., NodeSummaries]
) -> Float[np.ndarray, "B *K 2"]:
    """Return the equal-tailed interval of each node: quantiles of the mixture, by bisection."""
    found = [
        summarize(one, field, rows)
        for one, field in zip(answer.components, answer.fields, strict=True)
    ]
    means = np.stack([one.latent_mean for one in found])
    stds = np.maximum(np.stack([one.latent_std for one in found]), np.finfo(float).tiny)
    shape, weights = means.shape[1:], np.asarray(answer.weights)
    means, stds = means.reshape(len(weights), -1), stds.reshape(len(weights), -1)
    ends = np.empty((means.shape[1], 2))
    for part in slices(len(ends), BLOCK_ELEMENTS // len(weights)):
        for end, level in enumerate(((1 - probability) / 2, (1 + probability) / 2)):
            ends[part, end] = _quantiles(weights, means[:, part], stds[:, part], level)
    return ends.reshape(*shape, 2)


def _quantiles(
    weights: Float[np.ndarray, " m"],
    means: Float[np.ndarray, "m B"],
    stds: Float[np.ndarray, "m B"],
    level: float,
) -> Float[np.ndarray, " B"]:
    """Return a quantile of each mixture; it lies between those of its components."""
    own = means + stds * ndtri(level)
    low, high = own.min(axis=0), own.max(axis=0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        below = weights @ ndtr((middle - means) / stds) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2
