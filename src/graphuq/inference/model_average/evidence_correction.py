"""What the evidence of expectation propagation lacks, for a binary probit, without draws.

Given the sites, each label has a tilted distribution: the cavity times its exact factor. Its mean
and variance are those of the Gaussian, and its higher cumulants are not. With c_lj the cumulant of
order l of label j in units of its deviation, and ρ_ij the correlation of the Gaussian between two
labels, the second order of the expansion of Opper, Paquet & Winther (2013, section 4) is

    log(Z / Z_EP) ≈ ½ Σ_{i≠j} Σ_{l≥3} c_li c_lj ρ_ij^l / l!.

Terms up to l = 4 are used. With the cavity N(m, s²) of a label y = ±1, ``z = y m / √(γ² + s²)`` and
``a = y s² / √(γ² + s²)``, the cumulant of order l > 2 is ``a^l`` times the l-th derivative of log Φ
at z.
"""

import math
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_ndtr


def second_order(sites: Any, codes: Int[np.ndarray, " J"], noise_std: float) -> float:
    """Return the second-order estimate of ``log(Z / Z_EP)`` of two classes.

    It is NaN where rounding leaves no cavity.

    Parameters
    ----------
    sites : NestedSites
        Of two classes, at their fixed point. The field is ``(u_2 − u_1) / √2``.
    codes : numpy.ndarray of int, shape (J,)
        Classes, 0 or 1.
    noise_std : float
        γ > 0.
    """
    signs, w = 2.0 * codes - 1.0, sites.weights
    precision = 2 * w[:, 0] * w[:, 1] / w.sum(axis=1)
    shift = (sites.pull[:, 1] - sites.pull[:, 0]) / np.sqrt(2.0)
    root = np.sqrt(precision)
    inner = root[:, None] * sites.covariance * root
    inner[np.diag_indices(len(inner))] += 1.0
    half = np.linalg.solve(np.linalg.cholesky(inner), root[:, None] * sites.covariance)
    covariance = sites.covariance - half.T @ half
    variance, mean = covariance.diagonal(), covariance @ shift
    with np.errstate(all="ignore"):
        cavity = 1 / (1 / variance - precision)
        width = np.sqrt(noise_std**2 + cavity)
        third, fourth = _derivatives(signs * cavity * (mean / variance - shift) / width)
        unit = signs * cavity / (width * np.sqrt(variance))
        correlation = covariance / np.sqrt(np.outer(variance, variance))
        np.fill_diagonal(correlation, 0.0)
        skewness, kurtosis = unit**3 * third, unit**4 * fourth
        total = float(skewness @ correlation**3 @ skewness) / 12
        total += float(kurtosis @ correlation**4 @ kurtosis) / 48
    return total if (cavity > 0).all() and np.isfinite(cavity).all() else math.nan


def _derivatives(z: Float[np.ndarray, " J"]) -> tuple[np.ndarray, np.ndarray]:
    """Return the third and fourth derivatives of log Φ."""
    first = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
    slope = z + 2 * first
    second = -first * (z + first)
    third = -first - slope * second
    return third, -second - slope * third - (1 + 2 * second) * second
