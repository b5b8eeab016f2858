"""Gaussian fields given Gaussian sites ``exp(ν u − τ u²/2)`` at the labelled nodes.

`condition_with_floor` is the matrix inversion lemma that all fields with a tail share.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.inverses import lower_inverses


class FieldMoments(NamedTuple):
    """Moments of a field given Gaussian sites ``exp(ν u − τ u²/2)`` at the labelled nodes.

    Attributes
    ----------
    mean, variance : array, shape (J,)
        Moments of u at each labelled node.
    white_mean, white_covariance : array, shape (r,) and (r, r)
        Moments of the white coordinates that unlabelled nodes depend on; r = 0 for fields that have
        none.
    log_normalizer : array, shape ()
        Log of the prior mean of the product of the sites.
    """

    mean: Array
    variance: Array
    white_mean: Array
    white_covariance: Array
    log_normalizer: Array


def without_coordinates(
    mean: Array, variance: Array, shift: Array, log_determinant: Array | float
) -> FieldMoments:
    """Return moments at the labelled nodes only; ``log_determinant`` is ``log|I + G T|``."""
    return FieldMoments(
        mean=mean,
        variance=variance,
        white_mean=np.zeros(0),
        white_covariance=np.zeros((0, 0)),
        log_normalizer=0.5 * shift @ mean - 0.5 * log_determinant,
    )


class FloorConditioning(NamedTuple):
    """Intermediate results of `condition_with_floor`.

    Attributes
    ----------
    field : FieldMoments
        Moments at the labelled nodes, without white coordinates.
    floor_factor : array, shape (J,)
        Diagonal of ``E = I + s̄² T``.
    information : array, shape (r, r)
        ``M = Rᵀ T E⁻¹ R``.
    system : array, shape (r, r)
        ``I + M d``.
    inner : array, shape (r, r)
        ``d (I + M d)⁻¹``.
    """

    field: FieldMoments
    floor_factor: Array
    information: Array
    system: Array
    inner: Array


def condition_with_floor(
    rows: Float[Array, "J r"],
    mode_variance: Float[Array, " r"],
    floor: Array | float,
    precision: Float[Array, " J"],
    shift: Float[Array, " J"],
) -> FloorConditioning:
    """Condition a field of covariance ``G = R diag(d) Rᵀ + s̄² I`` on sites, in r dimensions.

    With ``E = I + s̄² T`` and ``M = Rᵀ T E⁻¹ R`` the posterior covariance is, by Woodbury's
    identity, ``Σ = s̄² E⁻¹ + E⁻¹ R d (I + M d)⁻¹ Rᵀ E⁻¹``. Any G is accepted, also a singular one.

    Parameters
    ----------
    rows : array, shape (J, r)
        R.
    mode_variance : array, shape (r,)
        d, of any sign as long as G is a covariance.
    floor : float
        s̄².
    precision, shift : array, shape (J,)
        τ (of any sign) and ν.
    """
    xp = array_namespace(precision)
    e = 1 + floor * precision
    information = rows.T @ ((precision / e)[:, None] * rows)
    system = xp.eye(len(mode_variance)) + information * mode_variance[None, :]
    inner = mode_variance[:, None] * xp.linalg.inv(system)
    scaled = rows / e[:, None]
    mean = floor * shift / e + scaled @ (inner @ (scaled.T @ shift))
    variance = floor / e + ((scaled @ inner) * scaled).sum(axis=1)
    log_determinant = xp.linalg.slogdet(system)[1] + xp.log(xp.abs(e)).sum()
    field = without_coordinates(mean, variance, shift, log_determinant)
    return FloorConditioning(field, e, information, system, inner)


def moments_with_floor(
    rows: Float[np.ndarray, "J r"],
    mode_variance: Float[np.ndarray, " r"],
    floor: float,
    precision: Float[np.ndarray, " J"],
    shift: Float[np.ndarray, " J"],
) -> FieldMoments:
    """Return the moments of `condition_with_floor` alone, with half of the arithmetic.

    The system is symmetric, ``I + √d M √d``, and has a Cholesky factor. So ``mode_variance`` and
    ``precision`` must not be negative.
    """
    e = 1 + floor * precision
    root_modes = np.sqrt(mode_variance)
    weighted = np.sqrt(precision / e)[:, None] * (rows * root_modes)
    system = weighted.T @ weighted
    system[np.diag_indices(len(system))] += 1.0
    lower = np.linalg.cholesky(system)
    # SciPy holds Python's global lock: inverting the small factor is shorter than solving with it.
    inverse = lower_inverses(lower)
    half = (inverse * root_modes) @ rows.T / e
    mean = floor * shift / e + half.T @ (half @ shift)
    variance = floor / e + (half**2).sum(axis=0)
    log_determinant = 2 * np.log(np.diagonal(lower)).sum() + np.log(e).sum()
    return without_coordinates(mean, variance, shift, log_determinant)
