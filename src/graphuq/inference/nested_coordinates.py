"""Nested expectation propagation of more labels than coordinates, in white coordinates.

With ``W_j = diag(w) − w wᵀ / Σ w`` of `nested_sites`, the coordinates of all classes have the
posterior precision ``I + Σ_j W_j ⊗ F_j F_jᵀ`` of order K r. For J labels a sweep takes about
``2 J r² K (K + 1) + (K r)³`` operations, all of them in products and inverses of matrices.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference.nested_shared import check_coordinates
from graphuq.inference.nested_sites import field_shifts, propose
from graphuq.inference.nested_start import StartingSites
from graphuq.inference.nested_sweeps import Sweep, first_sites, swept
from graphuq.posterior.field import covariances_at
from graphuq.utils.inverses import inverse_of
from graphuq.utils.progress import Progress

BLOCK = 4_000_000  # numbers of the matrices of some labels
MANY_LABELS = 10_000  # labels from which a part of them is fitted first
PART = 8  # labels for each of that part


class CoordinateSites(NamedTuple):
    """Sites at their fixed point, or after the last sweep, and the Gaussian.

    Attributes
    ----------
    log_evidence, weights, shifts, pull, change, n_sweeps, converged
        As in `nested_sites.NestedSites`.
    white_mean : numpy.ndarray, shape (K, r)
        Posterior mean of the white coordinates of each class.
    covariance : numpy.ndarray, shape (K r, K r)
        Of the white coordinates of all classes, concatenated.
    """

    log_evidence: float
    weights: Float[np.ndarray, "J K"]
    shifts: Float[np.ndarray, "J K"]
    pull: Float[np.ndarray, "J K"]
    change: float
    n_sweeps: int
    converged: bool
    white_mean: Float[np.ndarray, "K r"]
    covariance: Float[np.ndarray, "n n"]

    def covariances_at(self, rows: Float[np.ndarray, "B r"]) -> Float[np.ndarray, "B K K"]:
        """Return the covariance of the K fields at nodes, given their rows of F."""
        return np.asarray(covariances_at(rows, self.covariance))

    def white_draws(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "K S r"]:
        """Return draws of the white coordinates of each class."""
        noise = rng.normal(size=(n, len(self.covariance)))
        found = noise @ np.linalg.cholesky(self.covariance).T
        return np.swapaxes(self.white_mean + found.reshape(n, *self.white_mean.shape), 0, 1)


def fit_coordinate_sites(
    factor: Float[np.ndarray, "J r"],
    labels: Int[np.ndarray, " J"],
    n_classes: int,
    noise_std: float,
    max_sweeps: int,
    tolerance: float,
    start: StartingSites | None = None,
    progress: Progress | None = None,
    goes_on: Callable[[float], bool] | None = None,
) -> CoordinateSites:
    """Iterate the sites of all labels to their fixed point.

    Without a start, a part of very many labels is fitted first.

    Parameters
    ----------
    factor : numpy.ndarray, shape (J, r)
        F, the map from the white coordinates of a class to its field at the labels.
    labels, n_classes, noise_std, max_sweeps, tolerance, start
        See `nested_sites.fit_sites`.
    progress : callable, optional
        Called after each sweep.
    goes_on : callable, optional
        Called with the log evidence after each sweep; sweeps end where it returns False.

    Raises
    ------
    InvalidInput
        If the matrices of a sweep do not fit into memory.
    numpy.linalg.LinAlgError
        If rounding errors make a matrix indefinite.
    """
    n_labels = len(labels)
    check_coordinates(n_labels, factor.shape[1], n_classes)
    sites = first_sites(labels, n_classes, noise_std, start)
    if start is None and n_labels > MANY_LABELS:
        part = np.random.default_rng(0).permutation(n_labels)[: n_labels // PART]
        settings = labels[part], n_classes, noise_std, max_sweeps, max(tolerance, 1e-2)
        nothing = StartingSites(*sites[:, :0])  # which is a start: the part is fitted whole
        few = fit_coordinate_sites(factor[part], *settings, nothing, progress)
        moments = _moments(factor, few.white_mean, few.covariance, sites)
        sites, *_ = propose(labels, sites, *moments)
        sites[:, part] = few.weights, few.shifts

    def sweep(sites: Float[np.ndarray, "2 J K"]) -> Sweep:
        given = _Given(factor, sites)
        new, *totals = propose(labels, sites, given.mean, given.variances)
        return Sweep(given, new, *map(float, totals))

    found = swept(sites, sweep, labels, max_sweeps, tolerance, progress, goes_on)
    given = found.last.given
    return CoordinateSites(
        **found.described(labels, tolerance),
        white_mean=given.white_mean,
        covariance=given.covariance,
    )


class _Given:
    """Mean and covariance of the white coordinates of all classes given sites."""

    def __init__(self, factor: Float[np.ndarray, "J r"], sites: Float[np.ndarray, "2 J K"]) -> None:
        (weights, _), r = sites, factor.shape[1]
        n_classes, share = weights.shape[1], weights / weights.sum(axis=1, keepdims=True)
        precision = np.eye(n_classes * r)
        for k in range(n_classes):
            for other in range(k + 1):  # the lower triangle is enough
                between = -share[:, k] * weights[:, other]
                if k == other:
                    between = weights[:, k] * (np.delete(share, k, axis=1).sum(axis=1))
                block = factor.T @ (between[:, None] * factor)
                precision[k * r : (k + 1) * r, other * r : (other + 1) * r] += block
        self.covariance, log_determinant = inverse_of(precision)
        self.pull = field_shifts(*sites)
        natural = (factor.T @ self.pull).T.ravel()
        white = self.covariance @ natural
        self.white_mean = white.reshape(n_classes, r)
        self.log_gaussian = 0.5 * (float(natural @ white) - log_determinant)
        self.log_gaussian -= 0.5 * float(np.log(weights.sum(axis=1)).sum())
        self.mean, self.variances = _moments(factor, self.white_mean, self.covariance, sites)


def _moments(
    factor: Float[np.ndarray, "J r"],
    white_mean: Float[np.ndarray, "K r"],
    covariance: Float[np.ndarray, "n n"],
    sites: Float[np.ndarray, "2 J K"],
) -> tuple[Float[np.ndarray, "J K"], Float[np.ndarray, "J K"]]:
    """Return means of the fields at the labels, and variances of ``v − u_k``."""
    n_classes, r = white_mean.shape
    weights = sites[0]
    total = weights.sum(axis=1, keepdims=True)
    share, variances = weights / total, np.empty((len(factor), n_classes))
    size = max(1, BLOCK // (n_classes * r))
    for begin in range(0, len(factor), size):
        part = slice(begin, begin + size)
        rows, p = factor[part], share[part]
        spread = np.empty((n_classes, n_classes, len(rows)))
        for k in range(n_classes):
            both = (rows @ covariance[k * r : (k + 1) * r, : (k + 1) * r]).reshape(
                len(rows), k + 1, r
            )
            spread[k, : k + 1] = spread[: k + 1, k] = np.einsum("jkr,jr->kj", both, rows)
        with_center = np.einsum("klj,jl->jk", spread, p)
        center = (p * with_center).sum(axis=1, keepdims=True) + 1 / total[part]
        own = np.einsum("kkj->jk", spread)
        variances[part] = center + own - 2 * with_center
    return factor @ white_mean.T, variances
