"""Nested expectation propagation of many classes, in which far classes share a site.

A label says that its class is ahead of every other class (`nested_sites`). Of many classes few
are near the label: a priori the fields at their labels go with the field at this one. All others
look nearly alike from there, and share one site, the mean of what each of them would have. For s
labels that are of a class or near it, a sweep takes O(J³ + K J s²) operations.

With the shared precisions D the weights of class k are ``W_k = D + Δ_k``, where Δ_k is zero except
at the s labels S. Let ``A = (G⁻¹ + D)⁻¹``, ``N = I − D A`` and ``M_k = Δ_k (I + A_SS Δ_k)⁻¹``. The
matrices of `nested_sites` are those of one class, changed at few labels:

    A_k = A − A_·S M_k A_S·,   Σ_k E_k = N V⁻¹ Nᵀ  with  V⁻¹ = K (D + D G D) + Σ_k M_k,
    log|I + G W_k| = log|I + G D| + log|I + A_SS Δ_k|,
    Var(v − u_k)_j = V_jj − 2 V_jS t + tᵀ V_SS t + (A_k)_jj  with  t = M_k A_Sj.

If no class is far, the fixed point is that of `nested_sites`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import qr
from scipy.sparse import coo_array

from graphuq.errors import require
from graphuq.inference.class_covariance import ClassCovariance
from graphuq.inference.near_classes import FEW_CLASSES, Group, are_many, far_classes, groups_of
from graphuq.inference.nested_sites import field_shifts, propose
from graphuq.inference.nested_start import StartingSites
from graphuq.inference.nested_sweeps import Sweep, first_sites, swept
from graphuq.posterior.field import covariances_at
from graphuq.utils.inverses import inverse_of, lower_inverses
from graphuq.utils.progress import Progress

MAX_COORDINATES = 16_000  # of all classes, whose covariance matrix fills 2 GB
N_NEAR, MIN_NEAR = 48, 16  # labels of a class or near it, on average, and least near classes
MAX_BYTES = 8e9  # of the matrices of a sweep
MATRICES, TABLES = 6, 20  # J × J and J × K arrays of a sweep, at most
COORDINATE_MATRICES = 3  # of all coordinates, in a sweep of `nested_coordinates`


class SharedSites(NamedTuple):
    """Sites at their fixed point, or after the last sweep, and the Gaussian.

    Attributes
    ----------
    log_evidence, weights, shifts, pull, change, n_sweeps, converged
        As in `nested_sites.NestedSites`; ``change`` is that of the shared sites too.
    white_mean : numpy.ndarray, shape (K, r)
        Posterior mean of the white coordinates of each class.
    covariance : ClassCovariance
        Of the white coordinates of all classes.
    """

    log_evidence: float
    weights: Float[np.ndarray, "J K"]
    shifts: Float[np.ndarray, "J K"]
    pull: Float[np.ndarray, "J K"]
    change: float
    n_sweeps: int
    converged: bool
    white_mean: Float[np.ndarray, "K r"]
    covariance: ClassCovariance

    def covariances_at(self, rows: Float[np.ndarray, "B r"]) -> Float[np.ndarray, "B K K"]:
        """Return the covariance of the K fields at nodes, given their rows of F."""
        return np.asarray(covariances_at(rows, np.asarray(self.covariance)))

    def white_draws(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "K S r"]:
        """Return draws of the white coordinates of each class."""
        return np.swapaxes(self.white_mean + self.covariance.draws(rng, n), 0, 1)


def shares_sites(n_labels: int, n_coordinates: int, n_classes: int) -> bool:
    """Return whether far classes share sites.

    They do if classes are many, or the covariance matrix of all coordinates is large.
    """
    is_large = n_classes * n_coordinates > MAX_COORDINATES
    return (is_large or are_many(n_labels, n_classes)) and bytes_of_sweeps(
        n_labels, n_classes
    ) <= MAX_BYTES


def n_near_classes(n_labels: int, n_classes: int) -> int:
    """Return how many classes are near a label: fewer, the more labels a class has."""
    if n_classes <= FEW_CLASSES:
        return n_classes - 1
    return max(MIN_NEAR, N_NEAR * n_classes // n_labels - 1)


def bytes_of_sweeps(n_labels: int, n_classes: int) -> float:
    """Return how much memory the sweeps need."""
    return 8.0 * n_labels * (MATRICES * n_labels + TABLES * n_classes)


def fit_shared_sites(
    factor: Float[np.ndarray, "J r"],
    labels: Int[np.ndarray, " J"],
    n_classes: int,
    noise_std: float,
    max_sweeps: int,
    tolerance: float,
    start: StartingSites | None = None,
    progress: Progress | None = None,
    goes_on: Callable[[float], bool] | None = None,
    n_near: int | None = None,
) -> SharedSites:
    """Iterate the sites of all labels to their fixed point.

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
    n_near : int, optional
        Classes that are near a label; by default those of `n_near_classes`.

    Raises
    ------
    InvalidInput
        If the matrices of a sweep do not fit into memory.
    numpy.linalg.LinAlgError
        If rounding errors make a matrix indefinite.
    """
    n_labels, r = factor.shape
    _check_memory(n_labels, n_classes)
    back, unseen = np.eye(r), np.zeros((0, r))
    if r > n_labels:  # the labels see J of the r directions; the others keep their prior
        turn, seen = qr(factor.T)
        factor = np.ascontiguousarray(seen[:n_labels].T)
        back, unseen = turn[:, :n_labels].T, turn[:, n_labels:].T
    prior = factor @ factor.T
    n_near = n_near_classes(n_labels, n_classes) if n_near is None else n_near
    is_far = far_classes(prior, labels, n_classes, n_near)
    groups = list(groups_of(is_far))

    def sweep(sites: Float[np.ndarray, "2 J K"]) -> Sweep:
        given = _Given(factor, prior, sites, is_far, groups)
        proposed, _, log_sites = propose(labels, sites, given.mean, given.variances)
        new = _with_shared(proposed, is_far)
        return Sweep(given, new, _change(sites, new, given), float(log_sites))

    first = _with_shared(first_sites(labels, n_classes, noise_std, start), is_far)
    found = swept(first, sweep, labels, max_sweeps, tolerance, progress, goes_on)
    given = found.last.given
    covariance = given.covariance()
    return SharedSites(
        **found.described(labels, tolerance),
        white_mean=given.white_mean @ back,
        covariance=covariance._replace(
            base=back.T @ covariance.base @ back + unseen.T @ unseen,
            toward=back.T @ covariance.toward,
            shared=back.T @ covariance.shared,
        ),
    )


def check_coordinates(n_labels: int, n_coordinates: int, n_classes: int) -> None:
    """Raise `InvalidInput` if sweeps in coordinates do not fit into memory."""
    n_bytes = 8.0 * COORDINATE_MATRICES * (n_classes * n_coordinates) ** 2
    require(
        n_bytes <= MAX_BYTES,
        "y",
        f"expectation propagation of {n_labels} labels of {n_classes} classes, in {n_coordinates} "
        f"coordinates each, fills {n_bytes / 1e9:.0f} GB",
        f"give at most {int(_most_labels(n_classes))} labels, or fewer eigenpairs",
    )


def _check_memory(n_labels: int, n_classes: int) -> None:
    n_bytes = bytes_of_sweeps(n_labels, n_classes)
    require(
        n_bytes <= MAX_BYTES,
        "y",
        f"expectation propagation of {n_labels} labels of {n_classes} classes fills "
        f"{n_bytes / 1e9:.0f} GB",
        f"give at most {int(_most_labels(n_classes))} labels",
    )


def _most_labels(n_classes: int) -> float:
    """Return the number of labels whose matrices fill `MAX_BYTES`."""
    half = TABLES * n_classes / (2 * MATRICES)
    return float(np.sqrt(half**2 + MAX_BYTES / (8 * MATRICES)) - half)


def _with_shared(
    sites: Float[np.ndarray, "2 J K"], is_far: Bool[np.ndarray, "J K"]
) -> Float[np.ndarray, "2 J K"]:
    """Return sites in which the far classes of each label have their mean."""
    count = np.maximum(is_far.sum(axis=1), 1)
    mean = np.einsum("ajk,jk->aj", sites, is_far) / count
    return np.where(is_far, mean[..., None], sites)


def _change(
    sites: Float[np.ndarray, "2 J K"], new: Float[np.ndarray, "2 J K"], given: "_Given"
) -> float:
    """Return the largest change of a mean or a variance, to first order in that of the sites."""
    weights, shifts = sites
    center = ((weights * given.mean).sum(axis=1) + shifts.sum(axis=1)) / weights.sum(axis=1)
    precision, shift = new - sites
    moved = np.abs(shift - precision * (center[:, None] - given.mean)) * np.sqrt(given.variances)
    return float(np.maximum(moved, np.abs(precision) * given.variances).max())


class _Given:
    """The K fields given sites: factors, means and variances at the labels."""

    def __init__(
        self,
        factor: Float[np.ndarray, "J r"],
        prior: Float[np.ndarray, "J J"],
        sites: Float[np.ndarray, "2 J K"],
        is_far: Bool[np.ndarray, "J K"],
        groups: list[Group],
    ) -> None:
        n_labels, n_classes = is_far.shape
        self.weights, self.groups = sites[0], groups
        self.pull = field_shifts(*sites)
        far, some = is_far.argmax(axis=1), is_far.any(axis=1)
        rows = np.arange(n_labels)
        self.shared = np.where(some, self.weights[rows, far], 0.0)  # D
        pull = np.where(some, self.pull[rows, far], 0.0)
        scaled = np.sqrt(self.shared)[:, None] * factor
        lower = np.linalg.cholesky(np.eye(factor.shape[1]) + scaled.T @ scaled)
        self._root = lower_inverses(lower)
        self._factor = factor
        white = self._root @ factor.T
        self._a = white.T @ white
        inverse = n_classes * (self.shared[:, None] * prior * self.shared)
        inverse[rows, rows] += n_classes * self.shared
        self.changes, determinants = self._of_groups(inverse)
        self._v, log_v = inverse_of(inverse)
        # Means: A_k b_k + A_k W_k V Σ_l W_l A_l b_l = A c + A_·S y_k, with Σ_l b_l = 0.
        before, gathered = self._a @ pull, np.zeros(n_labels)
        for group, change in zip(groups, self.changes, strict=True):
            own = self._own(self.pull, pull, group)
            found = _times(change, before[group.places] + self._within(group, own))
            gathered += np.bincount(group.places.ravel(), found.ravel(), n_labels)
        common = self._v @ gathered
        center = common + factor @ (factor.T @ (self.shared * common))
        base = pull + self.shared * center
        self.mean, self.variances = np.empty((2, n_labels, n_classes))
        self.white_mean = np.empty((n_classes, factor.shape[1]))
        toward, before = self._root.T @ white, self._a @ base
        for group, change in zip(groups, self.changes, strict=True):
            own = self._own(self.pull, pull, group)
            own = own + self._own(self.weights, self.shared, group) * center[group.places]
            own = own - _times(change, before[group.places] + self._within(group, own))
            seen = self._a[group.places]
            self.mean[:, group.classes] = before[:, None] + (own[:, None] @ seen)[:, 0].T
            of_class = toward.T[group.places]
            self.white_mean[group.classes] = toward @ base + (own[:, None] @ of_class)[:, 0]
            self.variances[:, group.classes] = self._lead_variances(group, change, seen).T
        self.log_gaussian = 0.5 * float((self.pull * self.mean).sum())
        log_shared = 2 * float(np.log(np.diagonal(lower)).sum())  # log|I + G D|
        self.log_gaussian -= 0.5 * ((n_classes - 2) * log_shared + determinants + log_v)

    def covariance(self) -> ClassCovariance:
        """Return the covariance of the white coordinates."""
        base = self._root.T @ self._root
        together = tuple(zip(self.groups, self.changes, strict=True))
        shared = self._factor.T * self.shared
        toward = base @ self._factor.T
        return ClassCovariance(base, toward, shared, self._v, self._a, together)

    def _of_groups(self, inverse: Float[np.ndarray, "J J"]) -> tuple[list[np.ndarray], float]:
        """Return M_k of all classes and Σ log|I + A_SS Δ_k|; add Σ M_k to the inverse."""
        changes, total = [], 0.0
        for group in self.groups:
            size = group.places.shape[1]
            own = self._own(self.weights, self.shared, group)[:, :, None]
            system = np.eye(size) + own * self._a[group.places[:, :, None], group.places[:, None]]
            found = np.linalg.solve(system, own * np.eye(size))
            changes.append(0.5 * (found + np.swapaxes(found, 1, 2)))
            total += float(np.linalg.slogdet(system)[1].sum())
            rows = np.repeat(group.places, size, axis=1).ravel()
            columns = np.tile(group.places, size).ravel()
            inverse += coo_array((changes[-1].ravel(), (rows, columns)), inverse.shape).toarray()
        return changes, total

    def _own(
        self, table: Float[np.ndarray, "J K"], shared: Float[np.ndarray, " J"], group: Group
    ) -> Float[np.ndarray, "c s"]:
        """Return by how much entries of near labels differ from the shared ones."""
        found = table[group.places, group.classes[:, None]] - shared[group.places]
        return np.where(group.used, found, 0.0)

    def _within(self, group: Group, own: Float[np.ndarray, "c s"]) -> Float[np.ndarray, "c s"]:
        """Return ``A_SS`` times the entries of each class."""
        return _times(self._a[group.places[:, :, None], group.places[:, None]], own)

    def _lead_variances(
        self,
        group: Group,
        change: Float[np.ndarray, "c s s"],
        seen: Float[np.ndarray, "c s J"],
    ) -> Float[np.ndarray, "c J"]:
        """Return the variances of ``v − u_k`` at each label."""
        moved = change @ seen
        inner = self._v[group.places[:, :, None], group.places[:, None]] @ moved
        inner -= 2 * self._v[group.places]
        inner -= seen
        inner *= moved
        return np.asarray(self._a.diagonal() + self._v.diagonal() + inner.sum(axis=1))


def _times(
    matrices: Float[np.ndarray, "c s s"], vectors: Float[np.ndarray, "c s"]
) -> Float[np.ndarray, "c s"]:
    """Return the product of each matrix with its vector."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])
