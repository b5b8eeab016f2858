"""Inverses of positive definite and of triangular matrices, by LAPACK's routines for factors."""

import numpy as np
from jaxtyping import Float
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri, strtri


def inverse_of(matrix: Float[np.ndarray, "n n"]) -> tuple[Float[np.ndarray, "n n"], float]:
    """Return the inverse of a positive definite matrix, and the log of the matrix's determinant.

    Only the lower triangle is read.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix is not positive definite.
    """
    root, failed = dpotrf(matrix.T, lower=0)  # transposed, so that nothing is copied
    if failed:
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    log_determinant = 2 * float(np.log(root.diagonal()).sum())
    lower = np.tril(dpotri(root, lower=0, overwrite_c=1)[0].T)
    return lower + np.tril(lower, -1).T, log_determinant


def inverses(matrices: Float[np.ndarray, "*B n n"]) -> Float[np.ndarray, "*B n n"]:
    """Return the inverses of many positive definite matrices; see `inverse_of`."""
    n = matrices.shape[-1]
    found = [inverse_of(one)[0] for one in matrices.reshape(-1, n, n)]
    return np.stack(found).reshape(matrices.shape) if found else np.empty(matrices.shape)


def lower_inverses(lower: Float[np.ndarray, "*B n n"]) -> Float[np.ndarray, "*B n n"]:
    """Return the inverses of lower triangular matrices with a positive diagonal, in their type."""
    n = lower.shape[-1]
    found, invert = np.empty_like(lower), strtri if lower.dtype == np.float32 else dtrtri
    for one, out in zip(lower.reshape(-1, n, n), found.reshape(-1, n, n), strict=True):
        out[:] = invert(one.T, lower=0)[0].T
    return found
