"""Eigenpairs of the Laplacian of a small graph by a dense factorisation."""

import numpy as np
from scipy.linalg import eigh

from graphuq.spectrum.laplacian import Laplacian


def nonnull_pairs(laplacian: Laplacian, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute the eigenpairs of the ``n_pairs`` smallest positive eigenvalues.

    The null space is known in closed form and is first shifted above the largest eigenvalue.
    Near-zero eigenvalues of a nearly disconnected graph are then not confused with it.

    Returns
    -------
    eigenvalues : numpy.ndarray, shape (n_pairs,)
    eigenvectors : numpy.ndarray, shape (N, n_pairs)
    """
    null = laplacian.null_vectors()
    lifted = laplacian.dense() + 2 * laplacian.upper_bound * (null @ null.T)
    eigenvalues, eigenvectors = eigh(lifted, subset_by_index=[0, n_pairs - 1])
    return eigenvalues, eigenvectors
