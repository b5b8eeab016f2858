"""From label means to probabilities of classes, and how sure they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int


def class_probabilities(label_mean: Float[np.ndarray, "N *K"]) -> Float[np.ndarray, "N K"]:
    """Of two classes ``(1 ∓ label_mean) / 2``; of several the label means themselves."""
    if label_mean.ndim == 2:
        return label_mean
    return np.stack([1 - label_mean, 1 + label_mean], axis=1) / 2


def with_unseen(names: Sequence[Any], n_classes: int) -> list[Any]:
    """Names of all classes, those of which no label was given numbered."""
    unseen = range(1, n_classes - len(names) + 1)
    return [*names, *(f"unseen {k}" for k in unseen)]


def margin(label_mean: Float[np.ndarray, "N *K"]) -> Float[np.ndarray, " N"]:
    """Probability of the most probable class over that of the next; for two, |label_mean|."""
    if label_mean.ndim == 1:
        return np.abs(label_mean)
    second, first = np.sort(label_mean, axis=1)[:, -2:].T
    return np.asarray(first - second)


def rank_by_uncertainty(label_mean: Float[np.ndarray, "N *K"]) -> Int[np.ndarray, " N"]:
    """Indices from the least to the most certain label, by `margin`; ties in random order.

    Always the same order. One of the data, that knows the classes, must not break ties: it would
    leak them.
    """
    shuffled = np.random.default_rng(0).permutation(len(label_mean))
    return shuffled[np.argsort(margin(label_mean[shuffled]), kind="stable")]
