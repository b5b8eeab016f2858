"""The Gaussian of nested expectation propagation in white coordinates, from sites at the labels.

The factors of `nested_low_rank` give mean and covariance of the coordinates of all classes.
"""

import time

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.nested_start import StartingSites


def nested_answer(
    factor: Float[np.ndarray, "J r"],
    labels: Int[np.ndarray, " J"],
    n_classes: int,
    noise_std: float,
    max_sweeps: int,
    tolerance: float,
    start: StartingSites | None = None,
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
    """
    from graphuq.inference.nested_low_rank import fit_low_rank_sites  # imports Numba

    began = time.perf_counter()
    try:
        sites = fit_low_rank_sites(
            factor, labels, n_classes, noise_std, max_sweeps, tolerance, start
        )
    except np.linalg.LinAlgError:
        return None
    if not sites.converged:
        return None
    n_labels, r = factor.shape
    common = sites.common.transpose(1, 0, 2).reshape(n_labels, -1)
    white_covariance = common.T @ common
    variance = np.empty((n_labels, n_classes))
    for k, root in enumerate(sites.roots):
        block = slice(k * r, (k + 1) * r)
        white_covariance[block, block] += root.T @ root
        variance[:, k] = ((factor @ white_covariance[block, block]) * factor).sum(axis=1)
    return GaussianApproximation(
        white_mean=sites.white_mean.ravel(),
        white_covariance=white_covariance,
        labelled_mean=factor @ sites.white_mean.T,
        labelled_variance=variance,
        labelled_label_mean=np.full_like(variance, np.nan),  # `summaries` estimates it from draws
        log_evidence=sites.log_evidence,
        n_iterations=sites.n_sweeps,
        seconds=time.perf_counter() - began,
        description=f"expectation propagation, {sites.n_sweeps} sweeps",
        class_precision=site_precisions(sites.weights),
        class_shift=sites.pull,
    )


def starting_sites(
    precision: Float[np.ndarray, "j K K"],
    shift: Float[np.ndarray, "j K"],
    labels: Int[np.ndarray, " J"],
    noise_std: float,
) -> StartingSites:
    """Return the sites of the first j labels from their `site_precisions` and shifts.

    With ``w_y = 1/γ²``, ``Σ w = w_y / (1 − γ² W_yy)`` and ``w_k = −γ² W_yk Σ w``; and
    ``Σ ν = b_y γ² Σ w``, ``ν_k = w_k Σ ν / Σ w − b_k``.
    """
    rows, own = np.arange(len(precision)), labels[: len(precision)]
    of_own = np.asarray(precision)[rows, own] * noise_std**2  # (j, K)
    total = 1 / (noise_std**2 * (1 - of_own[rows, own]))
    weights = -of_own * total[:, None]
    weights[rows, own] = noise_std**-2.0
    pulled = np.asarray(shift)[rows, own] * noise_std**2  # Σ ν / Σ w
    shifts = weights * pulled[:, None] - shift
    shifts[rows, own] = 0.0
    return StartingSites(weights, shifts)


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
