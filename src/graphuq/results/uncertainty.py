"""Class probabilities and their uncertainty, from label means."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int


def class_probabilities(label_mean: Float[np.ndarray, "N *K"]) -> Float[np.ndarray, "N K"]:
    """Return ``(1 ∓ label_mean) / 2`` for two classes, else the label means themselves."""
    if label_mean.ndim == 2:
        return label_mean
    return np.stack([1 - label_mean, 1 + label_mean], axis=1) / 2


def probability_errors(label_mcse: Float[np.ndarray, "N *K"]) -> Float[np.ndarray, "N K"]:
    """Return the standard errors of class probabilities, from those of label means."""
    return label_mcse if label_mcse.ndim == 2 else np.stack([label_mcse, label_mcse], axis=1) / 2


def with_unseen(names: Sequence[Any], n_classes: int) -> list[Any]:
    """Return names of all classes; classes without labels are "unseen 1", "unseen 2" and so on."""
    unseen = range(1, n_classes - len(names) + 1)
    return [*names, *(f"unseen {k}" for k in unseen)]


def margin(label_mean: Float[np.ndarray, "N *K"]) -> Float[np.ndarray, " N"]:
    """Return the probability of the most probable class minus that of the next.

    For two classes it is ``|label_mean|``.
    """
    if label_mean.ndim == 1:
        return np.abs(label_mean)
    second, first = np.sort(label_mean, axis=1)[:, -2:].T
    return np.asarray(first - second)


def rank_by_uncertainty(label_mean: Float[np.ndarray, "N *K"]) -> Int[np.ndarray, " N"]:
    """Return indices from the least to the most certain label, by `margin`.

    Ties are in a random order with a fixed seed. The order of the data must not break ties,
    because it often depends on the true classes and would leak them.
    """
    shuffled = np.random.default_rng(0).permutation(len(label_mean))
    return shuffled[np.argsort(margin(label_mean[shuffled]), kind="stable")]
