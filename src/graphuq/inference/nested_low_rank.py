"""Nested expectation propagation in the white coordinates of each class, on all cores.

`nested_sites` has the model and the sites. Here the covariance at the labels is ``G = F Fᵀ`` with F
of shape (J, r). With more coordinates than labels, F is first turned to J of them. With
``B_k = I + Fᵀ W_k F = L_k L_kᵀ`` and ``X_k = L_k⁻¹ Fᵀ``, the matrices of `nested_sites` are
products of thin ones:

    E_k = W_k − (X_k W_k)ᵀ (X_k W_k),   Σ_k E_k = R Rᵀ,   T_k = R⁻¹ (X_k W_k)ᵀ,
    G E_k R⁻ᵀ = X_kᵀ T_kᵀ,   (G − G E_k G)_jj = Σ_i (X_k)_ij²,

so that a sweep costs O(K r J²) instead of O(K J³). The sweeps are extrapolated to their linear
fixed point (Anderson 1965). Of more than 100 labels they are in single precision while they change
much, which takes little more than half of the time.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import qr

from graphuq.inference.nested_sites import field_shifts, lead_variances, propose
from graphuq.inference.nested_sweeps import Sweep, first_sites, swept
from graphuq.utils.arrays import single_threaded_blas
from graphuq.utils.inverses import lower_inverses
from graphuq.utils.progress import Progress

FEW_LABELS = 100  # labels up to which threads cost more than they save
LABELS = 32  # labels whose covariances are in memory together, in each thread
ROUGH_TOLERANCE = 1e-2  # from which single precision is enough
SINGLE_TOLERANCE, MAX_SINGLE = 2e-2, 25  # else it is single down to this change, for so many sweeps

Map: TypeAlias = Callable[..., Iterable[Any]]
"""``map``, or that of a pool of threads."""


class LowRankSites(NamedTuple):
    """Sites at their fixed point, or after the last sweep, and factors of the Gaussian.

    Attributes
    ----------
    log_evidence, weights, shifts, pull, change, n_sweeps, converged
        As in `nested_sites.NestedSites`.
    white_mean : numpy.ndarray, shape (K, r)
        Posterior mean of the white coordinates of each class.
    roots : numpy.ndarray, shape (K, r, r)
        L_k⁻¹, or another root of ``B_k⁻¹``.
    common : numpy.ndarray, shape (K, J, r)
        ``T_k L_k⁻¹``. The posterior covariance of the white coordinates of classes k and l is
        ``δ_kl roots_kᵀ roots_k + common_kᵀ common_l``.
    """

    log_evidence: float
    weights: Float[np.ndarray, "J K"]
    shifts: Float[np.ndarray, "J K"]
    pull: Float[np.ndarray, "J K"]
    change: float
    n_sweeps: int
    converged: bool
    white_mean: Float[np.ndarray, "K r"]
    roots: Float[np.ndarray, "K r r"]
    common: Float[np.ndarray, "K J r"]

    @property
    def covariance(self) -> Float[np.ndarray, "n n"]:
        """Covariance of the white coordinates of all classes, concatenated."""
        _, n_labels, r = self.common.shape
        common = self.common.transpose(1, 0, 2).reshape(n_labels, -1)
        found = common.T @ common
        for k, root in enumerate(self.roots):
            block = slice(k * r, (k + 1) * r)
            found[block, block] += root.T @ root
        return np.asarray(found)

    def covariances_at(self, rows: Float[np.ndarray, "B r"]) -> Float[np.ndarray, "B K K"]:
        """Return the covariance of the K fields at nodes, given their rows of F."""
        shared = self.common @ rows.T  # (K, J, B)
        found = np.einsum("kjb,ljb->bkl", shared, shared, optimize=True)
        classes = np.arange(len(self.roots))
        found[:, classes, classes] += ((self.roots @ rows.T) ** 2).sum(axis=1).T
        return np.asarray(found)

    def white_draws(self, rng: np.random.Generator, n: int) -> Float[np.ndarray, "K S r"]:
        """Return draws of the white coordinates of each class."""
        n_classes, n_labels, r = self.common.shape
        white = rng.normal(size=(n_classes, n, r)) @ self.roots
        white += rng.normal(size=(n, n_labels)) @ self.common
        return np.asarray(white + self.white_mean[:, None])


def fit_low_rank_sites(
    factor: Float[np.ndarray, "J r"],
    labels: Int[np.ndarray, " J"],
    n_classes: int,
    noise_std: float,
    max_sweeps: int,
    tolerance: float,
    start: Any = None,
    progress: Progress | None = None,
    goes_on: Callable[[float], bool] | None = None,
) -> LowRankSites:
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

    Raises
    ------
    numpy.linalg.LinAlgError
        If rounding errors make a matrix indefinite.
    """
    n_labels, r = factor.shape
    if r > n_labels:  # the labels see J of the r directions; the others keep their prior
        settings = labels, n_classes, noise_std, max_sweeps, tolerance, start, progress, goes_on
        with single_threaded_blas():
            turn, seen = qr(factor.T)
            turned = fit_low_rank_sites(np.ascontiguousarray(seen[:n_labels].T), *settings)
            back, unseen = turn[:, :n_labels].T, turn[:, n_labels:].T
            return turned._replace(
                white_mean=turned.white_mean @ back,
                roots=np.stack([np.vstack([root @ back, unseen]) for root in turned.roots]),
                common=turned.common @ back,
            )
    with single_threaded_blas(), ThreadPoolExecutor(os.cpu_count()) as pool:
        run: Map = pool.map if n_labels > FEW_LABELS else map
        sweep = _Sweeping(factor, labels, tolerance, run)
        first = first_sites(labels, n_classes, noise_std, start)
        found = swept(first, sweep, labels, max_sweeps, tolerance, progress, goes_on)
        given = found.last.given
        roots = np.stack(given.roots).astype(np.float64)
        common = np.stack(list(run(np.matmul, given.thin, roots)))
    return LowRankSites(
        **found.described(labels, tolerance),
        white_mean=np.einsum("kba,kb->ka", roots, given.white_mean),
        roots=roots,
        common=common,
    )


class _Sweeping:
    """Sweeps over the sites of all labels, in single precision while that is enough."""

    def __init__(
        self, factor: Float[np.ndarray, "J r"], labels: Int[np.ndarray, " J"], tolerance: float,
        run: Map,
    ) -> None:  # fmt: skip
        self.factor, self.labels, self.run, self.tolerance = factor, labels, run, tolerance
        self._single = factor.astype(np.float32)
        self._left = MAX_SINGLE if len(labels) > FEW_LABELS else 0

    def __call__(self, sites: Float[np.ndarray, "2 J K"]) -> Sweep:
        if self._left:
            self._left -= 1
            try:
                found = self._sweep(self._single, sites)
            except np.linalg.LinAlgError:
                self._left = 0
            else:
                if found.change > SINGLE_TOLERANCE or self.tolerance >= ROUGH_TOLERANCE:
                    return found
                self._left = 0
        return self._sweep(self.factor, sites)

    def _sweep(self, factor: Float[np.ndarray, "J r"], sites: Float[np.ndarray, "2 J K"]) -> Sweep:
        given = _Given(factor, sites[0], sites[1], self.run)
        variances = given.lead_variances(sites[0], self.run)
        new, *totals = propose(self.labels, sites, given.mean, variances)
        return Sweep(given, new, *map(float, totals))


class _Given:
    """The K fields given sites: factors, means and variances at the labels."""

    def __init__(
        self,
        factor: Float[np.ndarray, "J r"],
        weights: Float[np.ndarray, "J K"],
        shifts: Float[np.ndarray, "J K"],
        run: Map,
    ) -> None:
        n_labels, n_classes = weights.shape
        self.pull, precision = field_shifts(weights, shifts), factor.dtype
        inner = np.diag(weights.sum(axis=1)).astype(precision)
        weights, pull = weights.astype(precision), self.pull.astype(precision)
        self.roots, self.white, determinants = [], [], []  # L_k⁻¹, X_k
        for root, white, product, determinant in run(lambda w: _of_class(factor, w), weights.T):
            self.roots.append(root)
            self.white.append(white)
            determinants.append(determinant)
            inner -= product
        lower = np.linalg.cholesky(inner)  # R
        inverse = lower_inverses(lower)
        self.thin = list(run(lambda x, w: inverse @ (x * w).T, self.white, weights.T))  # T_k
        own = [x @ b for x, b in zip(self.white, pull.T, strict=True)]
        shared = sum(t @ x for t, x in zip(self.thin, own, strict=True))
        self.white_mean = np.stack([x + t.T @ shared for x, t in zip(own, self.thin, strict=True)])
        of_class = zip(self.white, self.white_mean, strict=True)
        self.mean = np.stack([x.T @ m for x, m in of_class], axis=1)
        self.own = np.stack([(x**2).sum(axis=0) for x in self.white])
        self.log_gaussian = 0.5 * float((self.pull * self.mean).sum())
        self.log_gaussian -= float(sum(determinants) + np.log(np.diagonal(lower)).sum())
        self.variances = np.empty((n_labels, n_classes))

    def lead_variances(
        self, weights: Float[np.ndarray, "J K"], run: Map
    ) -> Float[np.ndarray, "J K"]:
        """Return the variances of ``v − u_k`` at each label, some labels at a time."""

        def fill(begin: int) -> None:
            part = slice(begin, begin + LABELS)
            of_class = zip(self.white, self.thin, strict=True)
            spread = np.stack([x[:, part].T @ t.T for x, t in of_class])
            self.variances[part] = lead_variances(weights[part], spread, self.own[:, part])

        list(run(fill, range(0, len(weights), LABELS)))
        return self.variances


def _of_class(
    factor: Float[np.ndarray, "J r"], weights: Float[np.ndarray, " J"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return L_k⁻¹, X_k, ``(X_k W_k)ᵀ (X_k W_k)`` and ``log|L_k|``.

    SciPy holds Python's global lock: inverting the small factor is shorter than solving with it.
    """
    scaled = np.sqrt(weights)[:, None] * factor
    inner = scaled.T @ scaled
    inner[np.diag_indices(len(inner))] += 1.0
    lower = np.linalg.cholesky(inner)
    root = lower_inverses(lower)
    white = root @ factor.T
    weighted = white * weights
    return root, white, weighted.T @ weighted, float(np.log(np.diagonal(lower)).sum())
