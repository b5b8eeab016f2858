"""Nested expectation propagation without each of the labels in turn.

A cavity, the posterior without the site of a label, keeps the sites of all others. These know the
label that is left out, which matters for more than two classes. Here the other sites are fitted
again. Labels that say little of each other are left out together, so that the number of fits does
not grow with that of the labels.
"""

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference.nested_answer import fit_quickest
from graphuq.inference.nested_start import StartingSites

N_GROUPS = 10  # of labels that are left out together; up to so many labels are alone in theirs
TOLERANCE, MAX_SWEEPS = 1e-2, 25


def fields_without_each(
    factor: Float[np.ndarray, "J r"],
    labels: Int[np.ndarray, " J"],
    n_classes: int,
    noise_std: float,
    start: StartingSites | None = None,
) -> tuple[Float[np.ndarray, "J K"], Float[np.ndarray, "J K K"]]:
    """Return mean and covariance of the K fields at each label, given those of other groups.

    Parameters
    ----------
    factor : numpy.ndarray, shape (J, r)
        F, the map from the white coordinates of a class to its field at the labels.
    labels : numpy.ndarray of int, shape (J,)
        Classes, from 0.
    n_classes : int
        K.
    noise_std : float
        γ > 0.
    start : StartingSites, optional
        Sites given all labels.

    Raises
    ------
    numpy.linalg.LinAlgError
        If rounding errors make a matrix indefinite.
    """
    n_labels = len(labels)
    mean = np.empty((n_labels, n_classes))
    covariance = np.empty((n_labels, n_classes, n_classes))
    for group in far_groups(factor, labels):
        kept = np.setdiff1d(np.arange(n_labels), group)
        own = None if start is None else StartingSites(start.weights[kept], start.shifts[kept])
        settings = n_classes, noise_std, MAX_SWEEPS, TOLERANCE, own
        sites = fit_quickest(factor[kept], labels[kept], *settings)
        mean[group] = factor[group] @ sites.white_mean.T
        covariance[group] = sites.covariances_at(factor[group])
    return mean, covariance


def far_groups(
    factor: Float[np.ndarray, "J r"], labels: Int[np.ndarray, " J"]
) -> Iterator[Int[np.ndarray, " g"]]:
    """Yield the labels of each group, which are far from each other a priori.

    A label joins the group whose squared correlations with it have the smallest sum. The labels of
    a class are spread over all groups, so that no group holds a class.
    """
    n_labels = len(labels)
    n_groups = min(n_labels, N_GROUPS)
    unit = factor / np.maximum(np.linalg.norm(factor, axis=1), 1e-300)[:, None]
    near, group = np.zeros((n_groups, n_labels)), np.empty(n_labels, dtype=np.int64)
    counts = np.zeros((n_groups, labels.max() + 1))
    places = np.ceil(np.bincount(labels) / n_groups)
    largest = math.ceil(n_labels / n_groups)
    for j in range(n_labels):
        is_full = counts.sum(axis=1) >= largest
        free = counts[:, labels[j]] < places[labels[j]]
        usable = free & ~is_full if (free & ~is_full).any() else free
        group[j] = np.where(usable, near[:, j], np.inf).argmin()
        counts[group[j], labels[j]] += 1
        near[group[j]] += (unit @ unit[j]) ** 2
    for g in range(n_groups):
        yield np.flatnonzero(group == g)
