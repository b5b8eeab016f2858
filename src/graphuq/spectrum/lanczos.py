"""The smallest eigenpairs of a sparse Laplacian by Lanczos on a polynomial of it."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import eigh_tridiagonal
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from graphuq.errors import InvalidInput
from graphuq.spectrum.laplacian import Laplacian

FEW = 30  # pairs, which lie far enough apart for a polynomial of degree one
BEYOND = 1.5  # where the polynomial begins to grow: with so many times the wanted eigenvalues below
AMPLIFICATION = 8.0  # log of the polynomial at zero
PROBES, PROBE_STEPS = 3, 60  # of the estimate of where that is
SPARE, SPARE_SHARE = 20, 0.3  # Krylov vectors beyond the wanted ones


def nonnull_pairs(
    laplacian: Laplacian, n_pairs: int, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs of the ``n_pairs`` smallest positive eigenvalues.

    ARPACK seeks the largest eigenvalues of a Chebyshev polynomial of L, which is large on the
    wanted end of the spectrum and at most one on the rest (Saad 1984; Zhou & Saad 2007): where the
    wanted eigenvalues lie close together, as everywhere but in small or well-cut graphs, plain
    Lanczos restarts many times, each with all its orthogonalisations. Of a multiple eigenvalue, as
    rings and square grids have them, it may find one copy only. So the null space is deflated in
    closed form, and then what was found is, until nothing larger is left.

    Returns
    -------
    eigenvalues : numpy.ndarray, shape (n_pairs,), ascending
    eigenvectors : numpy.ndarray, shape (N, n_pairs)
    """
    n_nodes = laplacian.graph.n_nodes
    rng = np.random.default_rng(0)
    null = laplacian.null_vectors()
    window = _window(laplacian, n_pairs, rng)

    def largest(known: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k largest values orthogonal to null vectors and ``known``, and their vectors."""

        def deflated(x: np.ndarray) -> np.ndarray:
            return x - laplacian.project_to_null_space(x) - known @ (known.T @ x)

        def apply(x: np.ndarray) -> np.ndarray:
            return deflated(window.polynomial(laplacian, deflated(x.ravel())))

        operator = LinearOperator((n_nodes, n_nodes), matvec=apply, dtype=np.float64)
        values, vectors = eigsh(
            operator,
            k=k,
            which="LA",
            v0=deflated(rng.normal(size=n_nodes)),
            tol=tolerance,
            ncv=min(n_nodes, k + max(SPARE, round(SPARE_SHARE * k))),
        )
        for basis in (null, known):
            vectors = vectors - basis @ (basis.T @ vectors)
        return values, vectors / np.linalg.norm(vectors, axis=0)

    values, vectors = np.empty(0), np.empty((n_nodes, 0))
    try:
        while True:
            found, more = largest(vectors, n_pairs if not len(values) else -(-n_pairs // 2))
            kept = np.argsort(-np.append(values, found))[:n_pairs]
            values = np.append(values, found)[kept]
            vectors = np.hstack([vectors, more])[:, kept]
            if values[-1] <= 1 + tolerance:  # not all of the wanted end was amplified
                window = window.wider()
                values, vectors = np.empty(0), np.empty((n_nodes, 0))
                continue
            room = n_nodes - null.shape[1] - n_pairs
            if room < 1 or largest(vectors, 1)[0][0] <= values[-1] * (1 + tolerance):
                break
    except ArpackNoConvergence as error:
        raise InvalidInput(
            "n_eigenpairs",
            f"only {len(error.eigenvalues)} of {n_pairs} pairs converged",
            "ask for fewer pairs, or a larger tolerance",
        ) from None
    return (vectors * (laplacian @ vectors)).sum(axis=0), vectors


class _Window(NamedTuple):
    """A Chebyshev polynomial that stays within one on ``[low, high]``, and grows below."""

    low: float
    high: float

    @property
    def degree(self) -> int:
        """So that at zero it is about exp(AMPLIFICATION): more would lose digits."""
        at_zero = (self.high + self.low) / (self.high - self.low)
        return max(1, round(AMPLIFICATION / float(np.arccosh(at_zero))))

    def polynomial(self, laplacian: Laplacian, x: Float[np.ndarray, " N"]) -> np.ndarray:
        """Of L, applied to a vector, by the three-term recurrence; positive below ``low``."""
        centre, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        before, now = x, (centre * x - laplacian @ x) / half
        for _ in range(self.degree - 1):
            before, now = now, (2 / half) * (centre * now - laplacian @ now) - before
        return now

    def wider(self) -> "_Window":
        """Grows from further up."""
        return _Window(self.low + 0.25 * (self.high - self.low), self.high)


def _window(laplacian: Laplacian, n_pairs: int, rng: np.random.Generator) -> _Window:
    """Where the rest of the spectrum is: by Gauss quadrature of its density (Golub & Welsch 1969).

    Lanczos from a random vector, the null space left out, gives nodes and weights. The share of the
    spectrum below a node is at least the weight of the nodes before it.
    """
    n_nodes, high = laplacian.graph.n_nodes, laplacian.upper_bound
    if n_pairs < FEW:
        return _Window(0.999 * high, high)
    share = min(BEYOND * n_pairs / n_nodes, 0.5)
    low = 0.0
    for _ in range(PROBES):
        nodes, weights = _quadrature(laplacian, rng, min(PROBE_STEPS, n_nodes))
        before = np.cumsum(weights) >= share
        low = max(low, nodes[min(int(before.argmax()) + 1, len(nodes) - 1)])
    return _Window(min(low, 0.9 * high), high)


def _quadrature(
    laplacian: Laplacian, rng: np.random.Generator, n_steps: int
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Ascending nodes, and weights that add to one."""
    v = rng.normal(size=laplacian.graph.n_nodes)
    v -= laplacian.project_to_null_space(v)
    basis, diagonal, beside = [v / np.linalg.norm(v)], [], []
    for _ in range(n_steps):
        w = laplacian @ basis[-1]
        diagonal.append(basis[-1] @ w)
        known = np.stack(basis)
        for _ in range(2):
            w = w - known.T @ (known @ w)
        beside.append(np.linalg.norm(w))
        if beside[-1] <= 1e-10 * laplacian.upper_bound:
            break
        basis.append(w / beside[-1])
    nodes, vectors = eigh_tridiagonal(diagonal, beside[: len(diagonal) - 1])
    return nodes, vectors[0] ** 2
