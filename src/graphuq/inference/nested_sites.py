"""Nested expectation propagation of the multinomial probit, in the space of the labels.

The method is that of Riihimäki, Jylänki & Vehtari (2013). A label of class y says that the noisy
value ``v = u_y + γ z`` of its own field is ahead of every other field plus noise:
``p(y | u, z) = ∏_{k ≠ y} Φ((v − u_k) / γ)``. A Gaussian site of precision τ_k and shift ν_k
replaces each factor. Given the K fields, v is Gaussian, so it is integrated in closed form.

With ``w_y = 1/γ²`` and ``w_k = τ_k`` the sites and the noise form a star with v in its centre:

- v given u has the mean ``(Σ w_k u_k + Σ ν_k) / Σ w`` and the variance ``1 / Σ w``;
- the K fields at the label have the precision ``W = diag(w) − w wᵀ / Σ w``;
- their shift is ``b_k = w_k Σν / Σw − ν_k``, with ``ν_y = 0``.

One sweep costs O(K J³) for J labels. Compiled by Numba; a module that uses it imports it late.
"""

import math
from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference.nested_answer import StartingSites
from graphuq.utils.arrays import njit_cached

INITIAL_DAMPING, MIN_DAMPING = 0.9, 0.1  # share of each update, in the first sweep and at least
DAMPING_LOSS = 0.7  # factor of the damping after a sweep in which the change grew
TAIL = -37.0  # below it erfc underflows, and the expansion of Φ is accurate to 2e-6


class NestedSites(NamedTuple):
    """Gaussian sites of one class prior at J labels of K classes, and their factors.

    Attributes
    ----------
    log_evidence : float
        Approximate log probability of the labels.
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
    covariance: Float[np.ndarray, "J J"],
    labels: Int[np.ndarray, " J"],
    n_classes: int,
    noise_std: float,
    max_sweeps: int = 100,
    tolerance: float = 1e-3,
    start: NestedSites | StartingSites | None = None,
) -> NestedSites:
    """Iterate the sites of all labels to their fixed point.

    The classes have independent fields with the same prior covariance at the labels. Two classes
    have two fields here. They give the probabilities of one field with the same covariance and
    the same ``noise_std``.

    Parameters
    ----------
    covariance : numpy.ndarray, shape (J, J)
        G, positive semi-definite.
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

    Raises
    ------
    numpy.linalg.LinAlgError
        If the covariance is not positive semi-definite.
    """
    covariance = np.ascontiguousarray(covariance, dtype=np.float64)
    codes = np.ascontiguousarray(labels, dtype=np.int64)
    n_labels = len(codes)
    weights, shifts = np.zeros((2, n_labels, n_classes))
    if start is not None:
        weights[: len(start.weights)], shifts[: len(start.weights)] = start.weights, start.shifts
    weights[np.arange(n_labels), codes] = noise_std**-2.0
    gains, inner_root = np.empty((n_classes, n_labels, n_labels)), np.empty((n_labels, n_labels))
    state = weights, shifts, gains, inner_root
    log_evidence, change, n_sweeps = _iterate(covariance, codes, *state, max_sweeps, tolerance)
    return NestedSites(
        log_evidence=log_evidence,
        weights=weights,
        shifts=shifts,
        pull=field_shifts(weights, shifts),
        change=change,
        n_sweeps=n_sweeps,
        converged=bool(change <= tolerance and np.isfinite(log_evidence)),
        covariance=covariance,
        gains=gains,
        inner_root=inner_root,
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
    weights = sites.weights
    total = weights.sum(axis=1, keepdims=True)
    noise = np.sqrt(weights) * rng.standard_normal(prior_values.shape)
    noise -= weights * (noise.sum(axis=2, keepdims=True) / total)  # covariance W
    shift = np.moveaxis(sites.pull + noise, 0, 2).swapaxes(0, 1)  # (K, J, S)
    values = np.moveaxis(prior_values, 0, 2).swapaxes(0, 1)
    gained = sites.gains @ (values + sites.covariance @ shift)
    common = sites.inner_root.T @ (sites.inner_root @ gained.sum(axis=0))
    alpha = shift - gained + sites.gains @ common
    return np.ascontiguousarray(np.moveaxis(alpha.swapaxes(0, 1), 2, 0))


@njit_cached
@no_type_check
def _iterate(
    covariance: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    shifts: np.ndarray,
    gains: np.ndarray,
    inner_root: np.ndarray,
    max_sweeps: int,
    tolerance: float,
) -> tuple[float, float, int]:
    """Sweep until the sites converge; the last four arrays then belong to the same sites."""
    damping, last, change, log_evidence = INITIAL_DAMPING, np.inf, np.inf, -np.inf
    n_sweeps = 0
    new_weights, new_shifts = weights.copy(), shifts.copy()
    variances = np.empty_like(weights)
    while n_sweeps < max_sweeps and change > tolerance:
        if n_sweeps:
            weights += damping * (new_weights - weights)
            shifts += damping * (new_shifts - shifts)
        n_sweeps += 1
        log_determinant = _factorize(covariance, weights, gains, inner_root)
        pull = field_shifts(weights, shifts)
        mean = _field_means(covariance, pull, gains, inner_root)
        spread, own = _covariance_factors(covariance, gains, inner_root)
        lead_variances(weights, spread, own, variances)
        change, log_sites = propose(
            labels, weights, shifts, mean, variances, new_weights, new_shifts
        )
        log_evidence = log_determinant + log_norm_of_noise(labels, weights, shifts)
        log_evidence += log_sites + 0.5 * (pull * mean).sum()
        if change > last:
            damping = max(DAMPING_LOSS * damping, MIN_DAMPING)
        last = change
    return log_evidence, change, n_sweeps


@njit_cached
@no_type_check
def log_norm_of_noise(labels: np.ndarray, weights: np.ndarray, shifts: np.ndarray) -> float:
    """Return ``Σ_j (Σν)² / 2Σw − log γ``, what integrating the noise adds to the evidence."""
    total = 0.0
    for j in range(len(labels)):
        total += 0.5 * shifts[j].sum() ** 2 / weights[j].sum()
        total += 0.5 * math.log(weights[j, labels[j]])
    return total


@njit_cached
@no_type_check
def _factorize(
    covariance: np.ndarray, weights: np.ndarray, gains: np.ndarray, inner_root: np.ndarray
) -> float:
    """Fill ``E_k`` and the inner root; return ``−½ log|I + G W| − ½ Σ_j log Σ_k w_jk``."""
    n_labels, n_classes = weights.shape
    log_determinant = 0.0
    total = np.zeros((n_labels, n_labels))
    for k in range(n_classes):
        root = np.sqrt(weights[:, k])
        system = np.empty((n_labels, n_labels))
        for i in range(n_labels):
            for j in range(n_labels):
                system[i, j] = root[i] * covariance[i, j] * root[j]
            system[i, i] += 1.0
        lower = np.linalg.cholesky(system)
        inverse = np.linalg.inv(system)
        for i in range(n_labels):
            log_determinant -= math.log(lower[i, i])
            for j in range(n_labels):
                gains[k, i, j] = 0.5 * root[i] * (inverse[i, j] + inverse[j, i]) * root[j]
        total += gains[k]
    lower = np.linalg.cholesky(total)
    for i in range(n_labels):
        log_determinant -= math.log(lower[i, i])
    inner_root[:] = np.linalg.inv(lower)
    return log_determinant


@njit_cached
@no_type_check
def field_shifts(weights: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return the shifts ``b_k = w_k Σν / Σw − ν_k`` of the K fields at each label."""
    pull = np.empty_like(weights)
    for j in range(len(weights)):
        share = shifts[j].sum() / weights[j].sum()
        for k in range(weights.shape[1]):
            pull[j, k] = weights[j, k] * share - shifts[j, k]
    return pull


@njit_cached
@no_type_check
def _field_means(
    covariance: np.ndarray, pull: np.ndarray, gains: np.ndarray, inner_root: np.ndarray
) -> np.ndarray:
    """Return the posterior means ``G (b − Q G b)`` of the K fields at each label."""
    n_labels, n_classes = pull.shape
    prior_mean = np.dot(covariance, pull)
    gained = np.empty((n_classes, n_labels))
    total = np.zeros(n_labels)
    for k in range(n_classes):
        gained[k] = np.dot(gains[k], np.ascontiguousarray(prior_mean[:, k]))
        total += gained[k]
    common = np.dot(inner_root.T, np.dot(inner_root, total))
    rest = np.empty((n_labels, n_classes))
    for k in range(n_classes):
        rest[:, k] = pull[:, k] - gained[k] + np.dot(gains[k], common)
    return np.dot(covariance, rest)


@njit_cached
@no_type_check
def _covariance_factors(
    covariance: np.ndarray, gains: np.ndarray, inner_root: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return factors of the posterior covariance ``diag(own) + A Aᵀ`` of the K fields at a label.

    A is ``spread[:, j, :]`` and the diagonal is ``own[:, j]``, for label j.
    """
    n_classes, n_labels, _ = gains.shape
    spread = np.empty((n_classes, n_labels, n_labels))
    own = np.empty((n_classes, n_labels))
    for k in range(n_classes):
        product = np.dot(covariance, gains[k])
        for j in range(n_labels):
            value = covariance[j, j]
            for i in range(n_labels):
                value -= product[j, i] * covariance[j, i]
            own[k, j] = value
        spread[k] = np.dot(product, inner_root.T)
    return spread, own


@njit_cached
@no_type_check
def lead_variances(
    weights: np.ndarray, spread: np.ndarray, own: np.ndarray, variances: np.ndarray
) -> None:
    """Fill the variances of ``v − u_k`` at labels, where v is the noisy value of the own class.

    They are ``1/Σw + Var(p·u − u_k)`` with ``p = w / Σw``. The K fields at label j have the
    covariance ``diag(own[:, j]) + A Aᵀ`` with ``A = spread[:, j, :]``.
    """
    n_classes, n_labels, width = spread.shape
    for j in range(n_labels):
        total = weights[j].sum()
        center = np.zeros(width)
        common = 1 / total
        for k in range(n_classes):
            share = weights[j, k] / total
            common += share * share * own[k, j]
            for i in range(width):
                center[i] += share * spread[k, j, i]
        for k in range(n_classes):
            value = common + own[k, j] * (1 - 2 * weights[j, k] / total)
            for i in range(width):
                value += (center[i] - spread[k, j, i]) ** 2
            variances[j, k] = value


@njit_cached
@no_type_check
def propose(
    labels: np.ndarray,
    weights: np.ndarray,
    shifts: np.ndarray,
    mean: np.ndarray,
    variances: np.ndarray,
    new_weights: np.ndarray,
    new_shifts: np.ndarray,
) -> tuple[float, float]:
    """Fill the undamped new sites; return the largest change and the log norm of all sites."""
    n_labels, n_classes = weights.shape
    change = log_sites = 0.0
    for j in range(n_labels):
        center = ((weights[j] * mean[j]).sum() + shifts[j].sum()) / weights[j].sum()
        for k in range(n_classes):
            if k == labels[j]:
                continue
            precision, shift = weights[j, k], shifts[j, k]
            noise = 1 / weights[j, labels[j]]
            site = _matching_site(precision, shift, center - mean[j, k], variances[j, k], noise)
            new_weights[j, k], new_shifts[j, k] = site[0], site[1]
            change = max(change, site[2])
            log_sites += site[3]
    return change, log_sites


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
