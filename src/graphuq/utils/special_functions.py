"""Special functions whose other implementations are too slow or too inaccurate."""

from functools import cache

import numpy as np
from jaxtyping import Float
from scipy.special import erfcx, log_ndtr

from graphuq.utils.arrays import Array, array_namespace

SIDE_NODES = 64  # nodes of the quadrature over the half-line on the other side of zero
HALF_RANGE = 9.0  # half the range of that quadrature, in standard deviations of the integrand
_ROOT_HALF = float(np.sqrt(0.5))


def log_normal_cdf(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return ``log Φ(x)``, exact to rounding in both tails, for NumPy (SciPy) and JAX arrays."""
    if array_namespace(x) is np:
        return log_ndtr(x)
    from graphuq.utils import log_normal_cdf_jax

    return log_normal_cdf_jax.log_normal_cdf(x)


@cache
def normal_quadrature(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and log weights of Gauss-Hermite quadrature over a standard normal variable.

    Examples
    --------
    >>> nodes, log_weights = normal_quadrature(8)
    >>> round(float(np.exp(log_weights) @ nodes**4), 6)
    3.0
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    return nodes, np.log(weights / weights.sum())


@cache
def uniform_quadrature(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of Gauss-Legendre quadrature over −1 to 1.

    Examples
    --------
    >>> nodes, weights = uniform_quadrature(8)
    >>> round(float(weights @ nodes**4), 6)
    0.4
    """
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return nodes, weights


def normal_hazard(x: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Return ``φ(x)/Φ(x)`` without underflow, in NumPy.

    Examples
    --------
    >>> [round(float(h), 6) for h in normal_hazard(np.array([-1e6, 0.0, 50.0]))]
    [1000000.000001, 0.797885, 0.0]
    """
    hazard: np.ndarray = np.sqrt(2 / np.pi) / erfcx(-_ROOT_HALF * x)
    return hazard


def alternating_weights(n_terms: int) -> tuple[np.ndarray, np.ndarray]:
    """Return indices n = 1, 2, … and weights, with sign, that sum an alternating series.

    The series is ``Σ_n (−1)^{n−1} a_n`` where a_n are moments of a positive measure on [0, 1]. The
    error is at most ``2 a_1 (3 + √8)^{−n_terms}`` (Cohen, Rodriguez Villegas & Zagier 2000,
    algorithm 1).

    Examples
    --------
    >>> n, weights = alternating_weights(18)
    >>> round(float(weights @ (1 / n)), 12) == round(float(np.log(2)), 12)
    True
    """
    d = ((3 + np.sqrt(8)) ** n_terms + (3 + np.sqrt(8)) ** -n_terms) / 2
    b, c = -1.0, -d
    weights = np.empty(n_terms)
    for k in range(n_terms):
        c = b - c
        weights[k] = c / d
        b *= (k + n_terms) * (k - n_terms) / ((k + 0.5) * (k + 1))
    return np.arange(1.0, n_terms + 1), weights


SIGMOID_WEIGHTS = np.array(
    [0.0076532, 0.09538959, 0.2813483, 0.34568081, 0.21047389, 0.05583335, 0.00362087]
)
SIGMOID_SCALES = np.array(
    [0.77386491, 1.01770054, 1.32732088, 1.7361999, 2.27812963, 2.99129631, 3.96322139]
)
"""``1/(1 + e^{−x}) = Σ_k weights_k Φ(x / scales_k)`` to 1.4e-8 for all x. The fit is that of
Monahan & Stefanski (1992). It makes the mean over a Gaussian x a sum of normal cdfs too."""


def probit_label_mean(
    mean: Float[np.ndarray, " J"],
    variance: Float[np.ndarray, " J"],
    y: Float[np.ndarray, " J"],
    noise_std: float,
) -> Float[np.ndarray, " J"]:
    """Return ``E sign(u)`` under ``Φ(y u / γ) N(u; mean, variance)``, normalised.

    It is ``y (1 − 2 p)`` with p the share of Z on the other side of zero. p is found by
    Gauss-Legendre quadrature on that half-line. The integrand is bounded by a Gaussian of
    precision 1/γ² + 1/variance. The nodes cover that Gaussian, so that the result is accurate
    whichever of noise and variance is smaller.
    """
    precision = 1 / noise_std**2 + 1 / variance
    center, width = -y * mean / (variance * precision), HALF_RANGE / np.sqrt(precision)
    near = np.maximum(center - width, 0.0)
    half = (np.maximum(center + width, near + width / HALF_RANGE) - near)[:, None] / 2
    nodes, weights = uniform_quadrature(SIDE_NODES)
    depth = near[:, None] + half * (nodes + 1)
    logs = log_ndtr(-depth / noise_std)
    logs -= (depth + (y * mean)[:, None]) ** 2 / (2 * variance[:, None])
    largest = logs.max(axis=1)
    mass = (np.exp(logs - largest[:, None]) * (weights * half)).sum(axis=1)
    log_density = largest - np.log(2 * np.pi * variance) / 2
    log_partition = log_ndtr(y * mean / np.sqrt(noise_std**2 + variance))
    label_mean: np.ndarray = y * (1 - 2 * mass * np.exp(log_density - log_partition))
    return label_mean
