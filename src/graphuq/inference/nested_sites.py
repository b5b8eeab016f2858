"""Nested expectation propagation of the multinomial probit, in the space of the labels.

The method is that of Riihimäki, Jylänki & Vehtari (2013). A label of class y says that the noisy
value ``v = u_y + γ z`` of its own field is ahead of every other field plus noise:
``p(y | u, z) = ∏_{k ≠ y} Φ((v − u_k) / γ)``. A Gaussian site of precision τ_k and shift ν_k
replaces each factor. Given the K fields, v is Gaussian, so it is integrated in closed form.

With ``w_y = 1/γ²`` and ``w_k = τ_k`` the sites and the noise form a star with v in its centre:

- v given u has the mean ``(Σ w_k u_k + Σ ν_k) / Σ w`` and the variance ``1 / Σ w``;
- the K fields at the label have the precision ``W = diag(w) − w wᵀ / Σ w``;
- their shift is ``b_k = w_k Σν / Σw − ν_k``, with ``ν_y = 0``.

One sweep costs O(K J³) for J labels. The matching of sites is compiled by Numba; a module that uses
this one imports it late.
"""

import math
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference.nested_start import StartingSites
from graphuq.utils.arrays import njit_cached
from graphuq.utils.inverses import inverses, lower_inverses

INITIAL_DAMPING, MIN_DAMPING = 0.9, 0.1  # share of each update, in the first sweep and at least
DAMPING_LOSS = 0.7  # factor of the damping after a sweep in which the change grew
TAIL = -37.0  # below it erfc underflows, and the expansion of Φ is accurate to 2e-6


class NestedSites(NamedTuple):
    """Gaussian sites of one class prior at J labels of K classes, and their factors.

    Attributes
    ----------
    log_evidence : float
        Approximate log probability of the labels.
    log_normalizer : float
        ``log ∫ N(u; 0, G) exp(bᵀ u − uᵀ W u/2) du``, which is ``(bᵀ E[u] − log|I + W G|)/2``.
    weights : numpy.ndarray, shape (J, K)
        w: precision τ of each other class, and 1/γ² in the column of the label's own class.
    shifts : numpy.ndarray, shape (J, K)
        ν of each other class, and 0 in the column of the label's own class.
    pull : numpy.ndarray, shape (J, K)
        b: shift of the K fields at each label, after the noise is integrated.
    change : float
        Largest change that the next sweep would make: of a mean of ``v − u_k`` in standard
        deviations, or of a variance as a share.
    n_sweeps : int
    converged : bool
        Whether the change is at most the tolerance.
    covariance : numpy.ndarray, shape (J, J)
        G, the prior covariance of each class.
    gains : numpy.ndarray, shape (K, J, J)
        ``E_k = (W_k⁻¹ + G)⁻¹`` with ``W_k = diag(w_·k)``.
    inner_root : numpy.ndarray, shape (J, J)
        Inverse of the lower Cholesky factor of ``Σ_k E_k``.
    """

    log_evidence: float
    log_normalizer: float
    weights: Float[np.ndarray, "J K"]
    shifts: Float[np.ndarray, "J K"]
    pull: Float[np.ndarray, "J K"]
    change: float
    n_sweeps: int
    converged: bool
    covariance: Float[np.ndarray, "J J"]
    gains: Float[np.ndarray, "K J J"]
    inner_root: Float[np.ndarray, "J J"]


def fit_sites(
    covariances: Float[np.ndarray, "M J J"],
    labels: Int[np.ndarray, " J"],
    n_classes: int,
    noise_std: float,
    max_sweeps: int = 100,
    tolerance: float = 1e-3,
    start: NestedSites | StartingSites | None = None,
) -> list[NestedSites | None]:
    """Iterate the sites of all labels to their fixed point, for each of several priors.

    The classes have independent fields with the same prior covariance at the labels. Two classes
    have two fields here. They give the probabilities of one field with the same covariance and
    the same ``noise_std``. For small matrices, several covariances together take a third of the
    time of one after the other.

    Parameters
    ----------
    covariances : numpy.ndarray, shape (M, J, J)
        G of each prior, positive semi-definite.
    labels : numpy.ndarray of int, shape (J,)
        Classes, from 0 to ``n_classes`` − 1.
    n_classes : int
        K, at least 2.
    noise_std : float
        γ > 0, in units of u.
    max_sweeps : int, default 100
        Largest number of sweeps over all labels.
    tolerance : float, default 1e-3
        Bound of `NestedSites.change`. The evidence is stationary in the sites, so its error is of
        second order.
    start : NestedSites or StartingSites, optional
        Sites of the first labels, of the same classes and noise, to start from. By default, and for
        later labels, they are zero.

    Returns
    -------
    list of length M
        Sites of each prior, or None where its covariance is not positive semi-definite.
    """
    given = labels, n_classes, noise_std, max_sweeps, tolerance, start
    try:
        return _fit(covariances, *given)
    except np.linalg.LinAlgError:
        if len(covariances) == 1:
            return [None]
    return [fit_sites(one[None], *given)[0] for one in covariances]


def _fit(
    covariances: Float[np.ndarray, "M J J"],
    labels: Int[np.ndarray, " J"],
    n_classes: int,
    noise_std: float,
    max_sweeps: int,
    tolerance: float,
    start: NestedSites | StartingSites | None,
) -> list[NestedSites | None]:
    n, n_labels = len(covariances), len(labels)
    sites = np.zeros((2, n, n_labels, n_classes))
    if start is not None:
        sites[:, :, : len(start.weights)] = np.stack([start.weights, start.shifts])[:, None]
    sites[0][:, np.arange(n_labels), labels] = noise_std**-2.0
    found: list[NestedSites | None] = [None] * n
    left, damping, last = np.arange(n), np.full(n, INITIAL_DAMPING), np.full(n, np.inf)
    n_sweeps = 0
    while len(left):
        n_sweeps += 1
        given = _Given(covariances[left], *sites)
        new, change, log_sites = propose(labels, sites, given.mean, given.lead_variances())
        stops = ~(change > tolerance) | (n_sweeps >= max_sweeps)
        for i in np.flatnonzero(stops).tolist():
            log_norm = float(log_sites[i] + log_norm_of_noise(labels, *sites[:, i]))
            found[left[i]] = given.sites(i, log_norm, float(change[i]), n_sweeps, tolerance)
        loss = np.where(change > last, DAMPING_LOSS, 1.0)
        damping, last = np.maximum(loss * damping, MIN_DAMPING)[~stops], change[~stops]
        left, sites, new = left[~stops], sites[:, ~stops], new[:, ~stops]
        sites = sites + damping[:, None, None] * (new - sites)
    return found


class _Given:
    """The K fields given sites, for each of several covariances: factors and means."""

    def __init__(
        self,
        covariance: Float[np.ndarray, "M J J"],
        weights: Float[np.ndarray, "M J K"],
        shifts: Float[np.ndarray, "M J K"],
    ) -> None:
        self.covariance, self.weights, self.shifts = covariance, weights, shifts
        roots = np.sqrt(np.swapaxes(weights, 1, 2))
        both = roots[..., :, None] * roots[..., None, :]
        self.systems = both * covariance[:, None] + np.eye(weights.shape[1])
        self.gains = both * inverses(self.systems)
        self.lower = np.linalg.cholesky(self.gains.sum(axis=1))
        self.inner_root = lower_inverses(self.lower)
        self.pull = field_shifts(weights, shifts)
        before = np.swapaxes(covariance @ self.pull, 1, 2)[..., None]
        gained = self.gains @ before
        common = np.swapaxes(self.inner_root, 1, 2) @ (self.inner_root @ gained.sum(axis=1))
        gained -= self.gains @ common[:, None]
        self.mean = covariance @ (self.pull - np.swapaxes(gained[..., 0], 1, 2))  # G (b − Q G b)

    def lead_variances(self) -> Float[np.ndarray, "M J K"]:
        """Return the variances of `lead_variances`."""
        product = self.covariance[:, None] @ self.gains
        own = np.diagonal(self.covariance, axis1=1, axis2=2)[:, None]
        own = own - np.einsum("mkji,mji->mkj", product, self.covariance)
        spread = product @ np.swapaxes(self.inner_root, 1, 2)[:, None]
        return lead_variances(self.weights, spread, own)

    def sites(
        self, i: int, log_norm: float, change: float, n_sweeps: int, tolerance: float
    ) -> NestedSites:
        """Return the sites of covariance i; ``log_norm`` is that of all sites and the noise."""
        roots = np.linalg.cholesky(self.systems[i])
        log_gaussian = 0.5 * float((self.pull[i] * self.mean[i]).sum())
        log_gaussian -= float(np.log(np.diagonal(roots, axis1=1, axis2=2)).sum())
        log_gaussian -= float(np.log(np.diagonal(self.lower[i])).sum())
        log_evidence = log_gaussian + log_norm
        return NestedSites(
            log_evidence=log_evidence,
            log_normalizer=log_gaussian + 0.5 * float(np.log(self.weights[i].sum(axis=1)).sum()),
            weights=self.weights[i],
            shifts=self.shifts[i],
            pull=self.pull[i],
            change=change,
            n_sweeps=n_sweeps,
            converged=bool(change <= tolerance and np.isfinite(log_evidence)),
            covariance=self.covariance[i],
            gains=self.gains[i],
            inner_root=self.inner_root[i],
        )


def draw_shifts(
    sites: NestedSites, rng: np.random.Generator, prior_values: Float[np.ndarray, "S J K"]
) -> Float[np.ndarray, "S J K"]:
    """Turn prior draws at the labels into shifts that make them posterior draws.

    This is Matheron's rule. For a prior draw f of any linear function of the field of class k,
    ``f + Cov(f, u_Lk) α_k`` is a draw from the Gaussian posterior.

    Parameters
    ----------
    sites : NestedSites
    rng : numpy.random.Generator
    prior_values : numpy.ndarray, shape (S, J, K)
        Prior draws u⁰ of the K fields at the labels.

    Returns
    -------
    numpy.ndarray, shape (S, J, K)
        ``α = (I − Q G)(b + e) − Q u⁰`` with ``e ~ N(0, W)``, where
        ``Q = (W⁻¹ + G)⁻¹ = E − E R (Rᵀ E R)⁻¹ Rᵀ E`` and R stacks K identity matrices
        (Rasmussen & Williams 2006, (3.45)–(3.47), with these w).
    """
    weights, pull = sites.weights.T[..., None], sites.pull.T[..., None]  # classes first
    noise = rng.standard_normal(prior_values.shape).transpose(2, 1, 0)  # (K, J, S)
    shift = np.ascontiguousarray(np.sqrt(weights) * noise)
    shift += pull - weights * (shift.sum(axis=0) / weights.sum(axis=0))  # covariance W
    gained = sites.gains @ (prior_values.transpose(2, 1, 0) + sites.covariance @ shift)
    common = sites.inner_root.T @ (sites.inner_root @ gained.sum(axis=0))
    alpha = shift - gained + sites.gains @ common
    return np.ascontiguousarray(alpha.transpose(2, 1, 0))


def log_norm_of_noise(
    labels: Int[np.ndarray, " J"],
    weights: Float[np.ndarray, "J K"],
    shifts: Float[np.ndarray, "J K"],
) -> float:
    """Return ``Σ_j (Σν)² / 2Σw − log γ``, what integrating the noise adds to the evidence."""
    own = weights[np.arange(len(labels)), labels]
    return 0.5 * float((shifts.sum(axis=1) ** 2 / weights.sum(axis=1) + np.log(own)).sum())


def field_shifts(
    weights: Float[np.ndarray, "*M J K"], shifts: Float[np.ndarray, "*M J K"]
) -> Float[np.ndarray, "*M J K"]:
    """Return the shifts ``b_k = w_k Σν / Σw − ν_k`` of the K fields at each label."""
    share = shifts.sum(axis=-1, keepdims=True) / weights.sum(axis=-1, keepdims=True)
    return weights * share - shifts


def lead_variances(
    weights: Float[np.ndarray, "*M J K"],
    spread: Float[np.ndarray, "*M K J r"],
    own: Float[np.ndarray, "*M K J"],
) -> Float[np.ndarray, "*M J K"]:
    """Return the variances of ``v − u_k`` at labels, where v is the noisy value of the own class.

    They are ``1/Σw + Var(p·u − u_k)`` with ``p = w / Σw``. The K fields at label j have the
    covariance ``diag(own[:, j]) + A Aᵀ`` with ``A = spread[:, j, :]``.
    """
    total = weights.sum(axis=-1)
    share = np.swapaxes(weights / total[..., None], -1, -2)
    center = np.einsum("...kj,...kji->...ji", share, spread)
    common = 1 / total + (share**2 * own).sum(axis=-2)
    variances = common[..., None, :] + own * (1 - 2 * share)
    for k in range(weights.shape[-1]):
        variances[..., k, :] += np.square(center - spread[..., k, :, :]).sum(axis=-1)
    return np.swapaxes(variances, -1, -2)


def propose(
    labels: Int[np.ndarray, " J"],
    sites: Float[np.ndarray, "2 *M J K"],
    mean: Float[np.ndarray, "*M J K"],
    variances: Float[np.ndarray, "*M J K"],
) -> tuple[Float[np.ndarray, "2 *M J K"], Float[np.ndarray, "*M"], Float[np.ndarray, "*M"]]:
    """Return the undamped new sites, the largest change of each fit, and its log norm of sites."""
    new, shape = np.array(sites), mean.shape[:-2]
    flat = (int(np.prod(shape)), *mean.shape[-2:])  # one memory layout, so that it is compiled once
    moments = (np.ascontiguousarray(values).reshape(flat) for values in (mean, variances))
    change, log_sites = np.zeros((2, flat[0]))
    codes = np.ascontiguousarray(labels, dtype=np.int64)
    _propose(codes, new.reshape(2, *flat), *moments, change, log_sites)
    return new, change.reshape(shape), log_sites.reshape(shape)


@njit_cached
@no_type_check
def _propose(
    labels: np.ndarray,
    sites: np.ndarray,
    mean: np.ndarray,
    variances: np.ndarray,
    change: np.ndarray,
    log_sites: np.ndarray,
) -> None:
    """Replace the sites, and fill the largest change and the log norm of all sites."""
    n_fits, n_labels, n_classes = mean.shape
    for m in range(n_fits):
        for j in range(n_labels):
            center = total = 0.0
            for k in range(n_classes):
                center += sites[0, m, j, k] * mean[m, j, k] + sites[1, m, j, k]
                total += sites[0, m, j, k]
            center /= total
            noise = 1 / sites[0, m, j, labels[j]]
            for k in range(n_classes):
                if k == labels[j]:
                    continue
                precision, shift = sites[0, m, j, k], sites[1, m, j, k]
                lead = center - mean[m, j, k]
                site = _matching_site(precision, shift, lead, variances[m, j, k], noise)
                sites[0, m, j, k], sites[1, m, j, k] = site[0], site[1]
                change[m] = max(change[m], site[2])
                log_sites[m] += site[3]


@njit_cached
@no_type_check
def _matching_site(
    precision: float, shift: float, mean: float, variance: float, noise: float
) -> tuple[float, float, float, float]:
    """Return the site that matches the moments of ``Φ(h / γ)`` × cavity, change and log norm.

    Mean and variance are those of h with the present site; ``noise`` is γ².
    """
    remainder = 1 / variance - precision
    if not remainder > 0:
        return precision, shift, np.inf, 0.0  # rounding error only: the sites are log-concave
    cavity = 1 / remainder
    at = cavity * (mean / variance - shift)
    total = noise + cavity
    z = at / math.sqrt(total)
    hazard = _hazard(z)
    first, second = hazard / math.sqrt(total), -hazard * (z + hazard) / total
    scale = 1 + cavity * second  # variance of likelihood × cavity over that of the cavity
    change = max(
        abs(at + cavity * first - mean) / math.sqrt(variance),
        abs(cavity * scale - variance) / variance,
    )
    log_norm = _log_cdf(z) + 0.5 * math.log1p(precision * cavity)
    log_norm -= 0.5 * ((shift + at / cavity) ** 2 / (precision + remainder) - at * at / cavity)
    return max(-second / scale, 0.0), (first - at * second) / scale, change, log_norm


@njit_cached
@no_type_check
def _log_cdf(x: float) -> float:
    """Return ``log Φ(x)``."""
    if x > TAIL:
        return math.log(0.5 * math.erfc(-x * 0.7071067811865476))
    return -0.5 * x * x - math.log(-x * 2.5066282746310002) + math.log1p(-1 / (x * x))


@njit_cached
@no_type_check
def _hazard(x: float) -> float:
    """Return ``φ(x) / Φ(x)``."""
    if x > TAIL:
        return math.exp(-0.5 * x * x) * 0.7978845608028654 / math.erfc(-x * 0.7071067811865476)
    return -x - 1 / x + 2 / (x * x * x)
