"""The Gaussian of nested expectation propagation in white coordinates, from sites at the labels."""

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.class_covariance import of_classes
from graphuq.inference.label_leads import Leads
from graphuq.inference.nested_start import StartingSites
from graphuq.utils.progress import Progress

if TYPE_CHECKING:
    from graphuq.inference.nested_coordinates import CoordinateSites
    from graphuq.inference.nested_low_rank import LowRankSites
    from graphuq.inference.nested_shared import SharedSites

MANY_LABELS = 4096  # labels up to which matrices of pairs of them are made
BLOCK = 2_000  # labels whose variances are computed together


def nested_answer(
    factor: Float[np.ndarray, "J r"],
    labels: Int[np.ndarray, " J"],
    n_classes: int,
    noise_std: float,
    max_sweeps: int,
    tolerance: float,
    start: StartingSites | None = None,
    progress: Progress | None = None,
) -> GaussianApproximation | None:
    """Return the fixed point of nested expectation propagation, or None if it is not reached.

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
    max_sweeps, tolerance
        See `nested_sites.fit_sites`.
    start : StartingSites, optional
        Sites of the first labels.
    progress : callable, optional
        Called after each sweep.
    """
    began, n_labels = time.perf_counter(), len(labels)
    try:
        sites = fit_quickest(
            factor, labels, n_classes, noise_std, max_sweeps, tolerance, start, progress
        )
    except np.linalg.LinAlgError:
        return None
    if not sites.converged:
        return None
    white_covariance = sites.covariance
    together = of_classes(white_covariance, n_classes)
    at_labels = factor @ sites.white_mean.T
    blocks = (factor[i : i + BLOCK] for i in range(0, n_labels, BLOCK))
    variance = np.concatenate([together.at(rows).variance for rows in blocks])
    return GaussianApproximation(
        white_mean=sites.white_mean.ravel(),
        white_covariance=white_covariance,
        labelled_mean=at_labels,
        labelled_variance=variance,
        labelled_label_mean=np.full_like(variance, np.nan),  # `summaries` estimates it from draws
        log_evidence=sites.log_evidence,
        n_iterations=sites.n_sweeps,
        seconds=time.perf_counter() - began,
        description=f"expectation propagation, {sites.n_sweeps} sweeps",
        class_weights=sites.weights,
        class_shift=sites.pull,
        leads=Leads.of(labels, sites.weights, sites.shifts, at_labels, noise_std),
    )


def fit_quickest(
    factor: Float[np.ndarray, "J r"], labels: Int[np.ndarray, " J"], n_classes: int, *settings: Any
) -> "LowRankSites | SharedSites | CoordinateSites":
    """Return the sites of all labels, at the labels or in coordinates: where sweeps are shorter.

    Of many classes, far ones share theirs. Settings are those of
    `nested_low_rank.fit_low_rank_sites`.

    Raises
    ------
    InvalidInput
        If the matrices of a sweep do not fit into memory.
    numpy.linalg.LinAlgError
        If rounding errors make a matrix indefinite.
    """
    from graphuq.inference.nested_coordinates import fit_coordinate_sites  # imports Numba
    from graphuq.inference.nested_low_rank import fit_low_rank_sites
    from graphuq.inference.nested_shared import fit_shared_sites, shares_sites

    size = *factor.shape, n_classes
    fit: Any = fit_coordinate_sites if _is_shorter_in_coordinates(*size) else fit_low_rank_sites
    if shares_sites(*size):
        fit = fit_shared_sites
    found: LowRankSites | SharedSites | CoordinateSites = fit(factor, labels, n_classes, *settings)
    return found


def _is_shorter_in_coordinates(n_labels: int, n_coordinates: int, n_classes: int) -> bool:
    """Return whether a sweep takes fewer operations in coordinates, or the labels are too many."""
    if n_labels > MANY_LABELS:
        return True
    r = min(n_labels, n_coordinates)  # the labels see so many directions
    at_labels = n_classes * r * n_labels * (2 * r + 4 * n_labels) + n_labels**3
    pairs = n_classes * (n_classes + 1)
    in_coordinates = 2 * n_labels * n_coordinates**2 * pairs + (n_classes * n_coordinates) ** 3
    return in_coordinates < at_labels


def starting_sites(
    weights: Float[np.ndarray, "j K"], pull: Float[np.ndarray, "j K"], labels: Int[np.ndarray, " J"]
) -> StartingSites:
    """Return the sites of the first j labels from their weights, and the shifts of their fields.

    As ``b_k = w_k Σν / Σw − ν_k`` and ``ν_y = 0``, the ratio ``Σν / Σw`` is ``b_y / w_y``.
    """
    rows, own = np.arange(len(weights)), labels[: len(weights)]
    ratio = np.asarray(pull)[rows, own] / np.asarray(weights)[rows, own]
    shifts = weights * ratio[:, None] - pull
    shifts[rows, own] = 0.0
    return StartingSites(np.asarray(weights), shifts)


def site_precisions(weights: Float[np.ndarray, "J K"]) -> Float[np.ndarray, "J K K"]:
    """Return ``diag(w) − w wᵀ / Σ w`` of each label.

    Rows sum to 0. Where one weight exceeds all others, ``w_y − w_y² / Σ w`` would cancel; the
    diagonal is minus the sum of the others instead.
    """
    between = weights[:, :, None] * weights[:, None, :] / weights.sum(axis=1)[:, None, None]
    diagonal = np.arange(weights.shape[1])
    between[:, diagonal, diagonal] = 0.0
    found = -between
    found[:, diagonal, diagonal] = between.sum(axis=2)
    return found
