"""The smallest eigenpairs of a sparse Laplacian by implicitly restarted Lanczos (ARPACK)."""

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from graphuq.errors import InvalidInput
from graphuq.spectrum.laplacian import Laplacian


def nonnull_pairs(
    laplacian: Laplacian, n_pairs: int, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs of the ``n_pairs`` smallest positive eigenvalues.

    Works on ``I − L/σ`` (``D^{-1/2} W D^{-1/2}`` for the symmetric Laplacian), whose *largest*
    eigenvalues are sought: Lanczos finds those without solving systems. The null space is
    deflated in closed form, since Lanczos finds one copy of a multiple eigenvalue, not all.

    Returns
    -------
    eigenvalues : numpy.ndarray, shape (n_pairs,), ascending
    eigenvectors : numpy.ndarray, shape (N, n_pairs)
    """
    n_nodes = laplacian.graph.n_nodes
    sigma = laplacian.upper_bound / 2

    def apply(x: np.ndarray) -> np.ndarray:
        x = x.ravel()
        return x - (laplacian @ x) / sigma - 2 * laplacian.project_to_null_space(x)

    operator = LinearOperator((n_nodes, n_nodes), matvec=apply, dtype=np.float64)
    start = np.random.default_rng(0).normal(size=n_nodes)
    start -= laplacian.project_to_null_space(start)
    try:
        top, vectors = eigsh(operator, k=n_pairs, which="LA", v0=start, tol=tolerance)
    except ArpackNoConvergence as error:
        raise InvalidInput(
            "n_eigenpairs",
            f"only {len(error.eigenvalues)} of {n_pairs} pairs converged",
            "ask for fewer pairs, or a larger tolerance",
        ) from None
    order = np.argsort(-top)
    vectors = vectors[:, order]
    null = laplacian.null_vectors()
    vectors = vectors - null @ (null.T @ vectors)
    vectors /= np.linalg.norm(vectors, axis=0)
    return sigma * (1 - top[order]), vectors
