"""Inverses of many small matrices: LAPACK's routines for factors, which NumPy does not offer."""

import numpy as np
from jaxtyping import Float
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri


def inverses(matrices: Float[np.ndarray, "*B n n"]) -> Float[np.ndarray, "*B n n"]:
    """Return the inverses of symmetric positive definite matrices.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite.
    """
    n = matrices.shape[-1]
    found = np.empty((*matrices.shape[:-2], n, n))
    for one, out in zip(matrices.reshape(-1, n, n), found.reshape(-1, n, n), strict=True):
        root, failed = dpotrf(one.T, lower=1)  # transposed, so that nothing is copied
        if failed:
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        out[:] = dpotri(root, lower=1, overwrite_c=1)[0]
    lower = np.tril(found)
    return np.asarray(lower + np.swapaxes(np.tril(found, -1), -1, -2))


def lower_inverses(lower: Float[np.ndarray, "*B n n"]) -> Float[np.ndarray, "*B n n"]:
    """Return the inverses of lower triangular matrices with a positive diagonal."""
    n = lower.shape[-1]
    found = np.empty(lower.shape)
    for one, out in zip(lower.reshape(-1, n, n), found.reshape(-1, n, n), strict=True):
        out[:] = dtrtri(one.T, lower=0)[0].T
    return found
