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
    eigenvalues are sought: Lanczos finds those without solving systems. Of a multiple eigenvalue,
    as rings and square grids have them, it may find one copy only. So the null space is deflated in
    closed form, and then what was found is, until nothing larger is left.

    Returns
    -------
    eigenvalues : numpy.ndarray, shape (n_pairs,), ascending
    eigenvectors : numpy.ndarray, shape (N, n_pairs)
    """
    n_nodes = laplacian.graph.n_nodes
    sigma = laplacian.upper_bound / 2
    rng = np.random.default_rng(0)
    null = laplacian.null_vectors()

    def largest(known: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k largest eigenvalues orthogonal to null vectors and ``known``, and their vectors."""

        def apply(x: np.ndarray) -> np.ndarray:
            x = x.ravel()
            shifted = laplacian.project_to_null_space(x) + known @ (known.T @ x)
            return x - (laplacian @ x) / sigma - 2 * shifted

        operator = LinearOperator((n_nodes, n_nodes), matvec=apply, dtype=np.float64)
        start = rng.normal(size=n_nodes)
        for basis in (null, known):
            start -= basis @ (basis.T @ start)
        values, vectors = eigsh(operator, k=k, which="LA", v0=start, tol=tolerance)
        for basis in (null, known):
            vectors = vectors - basis @ (basis.T @ vectors)
        return values, vectors / np.linalg.norm(vectors, axis=0)

    values, vectors = np.empty(0), np.empty((n_nodes, 0))
    try:
        while True:
            found, more = largest(vectors, n_pairs)
            kept = np.argsort(-np.append(values, found))[:n_pairs]
            values = np.append(values, found)[kept]
            vectors = np.hstack([vectors, more])[:, kept]
            room = n_nodes - null.shape[1] - n_pairs
            if room < 1 or largest(vectors, 1)[0][0] <= values[-1] + tolerance:
                break
    except ArpackNoConvergence as error:
        raise InvalidInput(
            "n_eigenpairs",
            f"only {len(error.eigenvalues)} of {n_pairs} pairs converged",
            "ask for fewer pairs, or a larger tolerance",
        ) from None
    return sigma * (1 - values), vectors
