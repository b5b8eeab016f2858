r"""Nested expectation propagation for the multinomial probit, at the labels. Compiled by Numba.

The label is the class whose ``u_k + γ ε_k`` is the largest. Given u and the noise z of the label's
own class y, its probability is ``∏_{k ≠ y} Φ((u_y + γ z − u_k)/γ)``. Each factor has a scalar site
``exp(ν h − τ h²/2)`` on ``h = u_y + γ z − u_k``, which expectation propagation in (u, z) chooses.
This is the fixed point of the nested algorithm of Riihimäki, Jylänki & Vehtari (2013).

With z integrated out, the sites of a label have the precision ``W = diag(w) − w wᵀ/Σw`` in its K
fields, with ``w_y = 1/γ²`` and ``w_k = τ_k``. The softmax has a Hessian of this form, so that K + 1
Cholesky factors of order J are enough (Rasmussen & Williams 2006, (3.45) to (3.47)):

    (W⁻¹ + G)⁻¹ = E − E R (Rᵀ E R)⁻¹ Rᵀ E,   E_k = √w_k (I + √w_k G √w_k)⁻¹ √w_k.
"""

import math
from typing import Any, NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float, Int

from graphuq.utils.arrays import njit_cached

DAMPING, SLOWER, MIN_DAMPING = 0.9, 0.7, 0.1  # share of an update; factor after a worse sweep
RIDGE = 1e-10  # added to covariances of differences, which are singular if labels coincide


class NestedSites(NamedTuple):
    """Gaussian sites of all labels, and the posterior of the fields given them.

    Attributes
    ----------
    log_evidence : float
        Estimate of ``log p(y)``; −inf if there is no fixed point.
    log_normalizer : float
        ``log ∫ N(u; 0, G) exp(bᵀ u − uᵀ W u/2) du``.
    weights, pull : numpy.ndarray, shape (J, K)
        w and b of each label.
    precision : numpy.ndarray, shape (K, J, J)
        E_k.
    product : numpy.ndarray, shape (K, J, J)
        ``E_k G``.
    root : numpy.ndarray, shape (J, J)
        Inverse of the lower Cholesky factor of ``Rᵀ E R``, the sum of E_k.
    n_sweeps : int
    change : float
        Largest change of a mean in the last sweep, in standard deviations.
    """

    log_evidence: float
    log_normalizer: float
    weights: Any
    pull: Any
    precision: Any
    product: Any
    root: Any
    n_sweeps: int
    change: float

    def log_sites(self, u: Float[np.ndarray, "S J K"]) -> Float[np.ndarray, " S"]:
        """Return the log of all sites, scaled so that their prior mean is the evidence."""
        w = self.weights
        quadratic = (w * u**2).sum(axis=2) - (w * u).sum(axis=2) ** 2 / w.sum(axis=1)
        logs = ((self.pull * u).sum(axis=2) - 0.5 * quadratic).sum(axis=1)
        return np.asarray(logs + self.log_evidence - self.log_normalizer)


def fit_sites(
    covariance: Float[np.ndarray, "J J"],
    labels: Int[np.ndarray, " J"],
    n_classes: int,
    noise_std: float,
    max_sweeps: int = 100,
    tolerance: float = 1e-3,
) -> NestedSites:
    """Iterate to the fixed point; O(K J³) operations a sweep.

    Parameters
    ----------
    covariance : numpy.ndarray, shape (J, J)
        Prior covariance G of the field of one class at the labels, positive definite.
    labels : numpy.ndarray of int, shape (J,)
        Codes from 0.
    n_classes : int
        K, at least 2; two classes have two fields here.
    noise_std : float
        γ > 0.
    max_sweeps : int, default 100
    tolerance : float, default 1e-3
        Largest change of a mean in the last sweep, in standard deviations.
    """
    arrays = np.ascontiguousarray(covariance, float), np.ascontiguousarray(labels, np.int64)
    try:
        found = _sweep_until(*arrays, int(n_classes), float(noise_std), max_sweeps, tolerance)
    except np.linalg.LinAlgError:
        found = (
            -np.inf,
            0.0,
            *np.zeros((2, 1, 1)),
            *np.zeros((2, 1, 1, 1)),
            np.zeros((1, 1)),
            0,
            1e9,
        )
    return NestedSites(*found)


def draw_shifts(
    sites: NestedSites, rng: np.random.Generator, prior_values: Float[np.ndarray, "S J K"]
) -> Float[np.ndarray, "S J K"]:
    """Return α that turns draws of the prior into draws given the sites (Matheron's rule).

    A linear function of the fields, with value f in the draw of the prior and covariance c with
    ``u_k`` at the labels, has the value ``f + cᵀ α_k`` given the sites.
    ``α = (I − Q G)(b + e) − Q u`` with ``Q = (W⁻¹ + G)⁻¹`` and e ~ N(0, W).
    """
    w = sites.weights
    noise = np.sqrt(w) * rng.normal(size=prior_values.shape)
    noise -= w * (noise.sum(axis=2) / w.sum(axis=1))[:, :, None]
    shifts = sites.pull + noise
    by_class = np.stack(
        [
            shifts[:, :, k] @ sites.product[k].T + prior_values[:, :, k] @ sites.precision[k].T
            for k in range(w.shape[1])
        ],
        axis=2,
    )
    shared = by_class.sum(axis=2) @ (sites.root.T @ sites.root)
    for k in range(w.shape[1]):
        shifts[:, :, k] += shared @ sites.precision[k].T - by_class[:, :, k]
    return np.asarray(shifts)


@njit_cached
@no_type_check
def _sweep_until(covariance, labels, n_classes, noise_std, max_sweeps, tolerance):
    n_labels = len(labels)
    precision, shift = np.zeros((2, n_labels, n_classes))  # τ and ν; those of the own class stay 0
    w, b = np.empty((2, n_labels, n_classes))
    products = np.empty((n_classes, n_labels, n_labels))
    inner = np.empty((n_classes, n_labels, n_labels))
    damping, last, change, sweep = DAMPING, np.inf, np.inf, 0
    log_evidence = log_normalizer = 0.0
    root = np.zeros((n_labels, n_labels))
    while change > tolerance and sweep < max_sweeps:
        sweep += 1
        noise_terms = _integrate_noise(labels, precision, shift, noise_std, w, b)
        root, log_normalizer = _factorize(covariance, w, inner, products)
        u = _posterior_mean(covariance, b, inner, products, root)
        log_normalizer += 0.5 * (b * u).sum()
        spread = _posterior_covariances(covariance, products, root)
        change = site_terms = 0.0
        for j in range(n_labels):
            moved, term = _update_label(
                u[j], spread[j], labels[j], precision[j], shift[j], noise_std, damping
            )
            change = max(change, moved)
            site_terms += term
        log_evidence = log_normalizer + noise_terms + site_terms
        if change > last:
            damping = max(damping * SLOWER, MIN_DAMPING)
        last = change
    if not change <= tolerance:
        log_evidence = -np.inf
    return log_evidence, log_normalizer, w, b, inner, products, root, sweep, change


@njit_cached
@no_type_check
def _integrate_noise(labels, precision, shift, noise_std, w, b):
    """Write w and b with z integrated out; return the log of what the integrals add."""
    total = 0.0
    for j in range(len(labels)):
        own, together, pulled = labels[j], precision[j].sum(), shift[j].sum()
        center = 1 / noise_std**2
        w[j] = precision[j]
        b[j] = precision[j] * (pulled / (together + center)) - shift[j]
        w[j, own] = center
        b[j, own] = 0.0
        b[j, own] = -b[j].sum()
        stretch = 1 + noise_std**2 * together
        total += 0.5 * ((noise_std * pulled) ** 2 / stretch - math.log(stretch))
    return total


@njit_cached
@no_type_check
def _factorize(covariance, w, inner, products):
    """Write E_k and E_k G; return the inverse root of their sum, and ``−log|I + W G|/2``."""
    n_labels, n_classes = w.shape
    half_log_det, together = 0.0, np.zeros((n_labels, n_labels))
    for k in range(n_classes):
        scale = np.sqrt(w[:, k]).copy()
        matrix = covariance * scale * scale.reshape(-1, 1)
        for j in range(n_labels):
            matrix[j, j] += 1.0
        lower = np.linalg.cholesky(matrix)
        for j in range(n_labels):
            half_log_det += math.log(lower[j, j])
        inverse = np.linalg.inv(lower)
        inner[k] = (inverse.T @ inverse) * scale * scale.reshape(-1, 1)
        products[k] = inner[k] @ covariance
        together += inner[k]
    lower = np.linalg.cholesky(together)
    for j in range(n_labels):
        half_log_det += math.log(lower[j, j]) - 0.5 * math.log(w[j].sum())
    return np.linalg.inv(lower), -half_log_det


@njit_cached
@no_type_check
def _posterior_mean(covariance, b, inner, products, root):
    """Return ``E[u_k] = G (b_k − E_k G b_k + E_k (R ᵀE R)⁻¹ Σ_l E_l G b_l)``, shape (J, K)."""
    n_labels, n_classes = b.shape
    by_class, shared = np.empty((n_classes, n_labels)), np.zeros(n_labels)
    for k in range(n_classes):
        by_class[k] = products[k] @ b[:, k].copy()
        shared += by_class[k]
    shared = root.T @ (root @ shared)
    mean = np.empty((n_labels, n_classes))
    for k in range(n_classes):
        mean[:, k] = covariance @ (b[:, k] - by_class[k] + inner[k] @ shared)
    return mean


@njit_cached
@no_type_check
def _posterior_covariances(covariance, products, root):
    """Return the covariance of the K fields at each label, shape (J, K, K)."""
    n_classes, n_labels = products.shape[:2]
    spread = np.empty((n_labels, n_classes, n_classes))
    halves = np.empty_like(products)
    for k in range(n_classes):
        halves[k] = root @ products[k]
    for j in range(n_labels):
        for k in range(n_classes):
            for other in range(k + 1):
                value = 0.0
                for i in range(n_labels):
                    value += halves[k, i, j] * halves[other, i, j]
                spread[j, k, other] = spread[j, other, k] = value
            own = covariance[j, j]
            for i in range(n_labels):
                own -= covariance[j, i] * products[k, i, j]
            spread[j, k, k] += own
    return spread


@njit_cached
@no_type_check
def _update_label(u, spread, own, precision, shift, noise_std, damping):
    """Update the sites of a label in place; return the largest change and the log of its terms."""
    n = len(u) - 1
    others, tau, nu = np.empty(n, np.int64), np.empty(n), np.empty(n)
    for a in range(n):
        others[a] = a + (a >= own)
        tau[a], nu[a] = precision[others[a]], shift[others[a]]
    mean, covariance = _with_noise(u, spread, own, others, tau, nu, noise_std)
    largest = total = 0.0
    for a in range(n):
        variance = covariance[a, a]
        left = 1 / variance - tau[a]
        if not left > 0:
            largest = np.inf
            continue
        cavity = 1 / left
        center = cavity * (mean[a] / variance - nu[a])
        spread_of = noise_std**2 + cavity
        z = center / math.sqrt(spread_of)
        slope, log_partition = _hazard(z)
        first, second = slope / math.sqrt(spread_of), -slope * (z + slope) / spread_of
        ratio = 1 + cavity * second
        total += log_partition + 0.5 * math.log1p(tau[a] * cavity)
        total -= 0.5 * (nu[a] + center / cavity) ** 2 / (tau[a] + 1 / cavity)
        total += 0.5 * center**2 / cavity
        moved = abs(center + cavity * first - mean[a]) / math.sqrt(variance)
        largest = max(largest, moved, abs(cavity * ratio - variance) / variance)
        precision[others[a]] += damping * (-second / ratio - tau[a])
        shift[others[a]] += damping * ((first - center * second) / ratio - nu[a])
    return largest, total


@njit_cached
@no_type_check
def _with_noise(u, spread, own, others, tau, nu, noise_std):
    """Return mean and covariance of ``h = u_y + γ z − u_k`` given all sites.

    Given u, z is Gaussian. With ``c = γ²/(1 + γ² Σ τ)`` and d the differences without noise,
    ``h = d − c Σ τ d + c Σ ν`` plus noise of variance c, common to all k.
    """
    n = len(others)
    difference, matrix = np.empty(n), np.empty((n, n))
    for a in range(n):
        k = others[a]
        difference[a] = u[own] - u[k]
        for e in range(n):
            other = others[e]
            matrix[a, e] = spread[own, own] - spread[own, other] - spread[k, own] + spread[k, other]
        matrix[a, a] += RIDGE
    c = noise_std**2 / (1 + noise_std**2 * tau.sum())
    along = matrix @ tau
    across = tau @ along
    mean = difference - c * (tau @ difference) + c * nu.sum()
    for a in range(n):
        for e in range(n):
            matrix[a, e] += c - c * (along[a] + along[e]) + c * c * across
    return mean, matrix


@njit_cached
@no_type_check
def _hazard(z):
    """Return φ(z)/Φ(z) and log Φ(z), without underflow."""
    if z > -25.0:
        share = 0.5 * math.erfc(-z * 0.7071067811865476)
        return math.exp(-0.5 * z * z) * 0.3989422804014327 / share, math.log(share)
    slope = -z + 1 / (-z)
    return slope, -0.5 * z * z - 0.9189385332046727 - math.log(slope)
