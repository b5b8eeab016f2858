"""Smallest eigenpairs of a sparse Laplacian by block Lanczos with a Chebyshev filter.

With blocks every step is a product of matrices. Most of the work is in single precision if the
tolerance allows it; the last step is in double precision.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.csgraph import reverse_cuthill_mckee

from graphuq.spectrum.chebyshev import window_of
from graphuq.spectrum.devices import on_device
from graphuq.spectrum.krylov_basis import KrylovBasis
from graphuq.spectrum.laplacian import Laplacian
from graphuq.utils.arrays import Array, array_namespace, double_precision, single_threaded_blas
from graphuq.utils.progress import Progress

MANY_NODES = 50_000  # nodes from which a block of columns exceeds the CPU cache
BLOCK = 16  # columns per step
SPARE_SHARE = 0.7  # extra Krylov vectors relative to n_pairs; at least four blocks
RESTARTS = 300  # before an error is raised
ROUNDING = 10  # machine epsilons (times the norm of L) below which a residual is rounding error
COARSE = 1e-3  # largest rounding error, relative to the largest eigenvalue to be computed
MIN_TOLERANCE = 1e-5  # smallest tolerance for which single precision is tried
ESTIMATE_FACTOR = 10.0  # estimates of a residual may be wrong by this factor


class Eigenpairs(NamedTuple):
    """Ascending eigenvalues, orthonormal eigenvectors, and the norms ``|L q − λ q|``."""

    eigenvalues: Float[np.ndarray, " k"]
    eigenvectors: Float[np.ndarray, "N k"]
    residuals: Float[np.ndarray, " k"]


class PairsNotConverged(Exception):
    """The pairs did not converge in `RESTARTS` restarts."""


class _Coarse(Exception):
    """Single precision cannot resolve the eigenvalues."""


def nonnull_pairs(
    laplacian: Laplacian,
    n_pairs: int,
    tolerance: float,
    progress: Progress | None = None,
) -> Eigenpairs:
    """Compute the eigenpairs of the ``n_pairs`` smallest positive eigenvalues.

    The method builds Krylov spaces of a Chebyshev polynomial of L. The polynomial is large for the
    smallest eigenvalues and at most 1 for the rest (Saad 1984; Zhou & Saad 2007). The spaces grow
    by blocks with full orthogonalisation and restart from Ritz vectors (Wu & Simon 2000). Plain
    Lanczos spends its time on orthogonalisation: the polynomial saves most of it, and blocks turn
    the rest into products of matrices. The null space is deflated in closed form.

    With a block of b columns at most b copies of a multiple eigenvalue are found; rings and square
    grids have such eigenvalues. If b copies are found, the block is doubled and the computation
    is repeated.

    Parameters
    ----------
    laplacian : Laplacian
    n_pairs : int
        Number of pairs, without null vectors.
    tolerance : float
        Largest residual, relative to the largest computed eigenvalue.
    progress : callable, optional

    Raises
    ------
    PairsNotConverged
        If they do not converge.
    """
    order = near_order(laplacian)
    if order is not None:
        laplacian = laplacian.on(order)
    block = BLOCK if n_pairs > BLOCK else BLOCK // 2
    while True:
        pairs = _in_precision(laplacian, n_pairs, tolerance, block, progress)
        values = pairs.eigenvalues
        nearest = np.searchsorted(values, values * (1 - 1e-6) - 1e-12 * laplacian.upper_bound)
        copies = (np.arange(n_pairs) - nearest).max(initial=0) + 1
        if copies < block or block >= n_pairs:
            break
        block *= 2
    if order is None:
        return pairs
    vectors = np.empty_like(pairs.eigenvectors)
    vectors[order] = pairs.eigenvectors
    return pairs._replace(eigenvectors=vectors)


def near_order(laplacian: Laplacian) -> Int[np.ndarray, " N"] | None:
    """Return an order in which neighbours are close (Cuthill & McKee 1969), if N is large.

    Products with a block of columns are then three times as fast, because most data is in the
    cache.
    """
    weights = laplacian.graph.weights
    if isinstance(weights, np.ndarray) or laplacian.graph.n_nodes < MANY_NODES:
        return None
    return reverse_cuthill_mckee(sparse.csr_matrix(weights), symmetric_mode=True)


def _in_precision(
    laplacian: Laplacian,
    n_pairs: int,
    tolerance: float,
    block: int,
    progress: Progress | None,
) -> Eigenpairs:
    """Compute in single precision, and again in double precision if that is not enough."""
    for dtype in (np.float32, np.float64):
        if dtype is np.float32 and tolerance < MIN_TOLERANCE:
            continue
        with double_precision():  # for the last step, and where single precision is too coarse
            try:
                problem = _Problem(laplacian, n_pairs, tolerance, dtype, progress)
                return _finished(laplacian, problem.krylov(block), n_pairs)
            except _Coarse:
                continue
    raise AssertionError("double precision resolves what it is asked for")


class _Problem:
    """Eigenvalue problem in one precision."""

    def __init__(
        self,
        laplacian: Laplacian,
        n_pairs: int,
        tolerance: float,
        dtype: type,
        progress: Progress | None,
    ) -> None:
        self.laplacian, self.n_pairs, self.tolerance = laplacian, n_pairs, tolerance
        self.dtype, self.progress = dtype, progress
        self.n_nodes = laplacian.graph.n_nodes
        self.operator, self.basis = on_device(laplacian, dtype)
        self.rng = np.random.default_rng(0)
        self.floor = ROUNDING * float(np.finfo(dtype).eps) * laplacian.upper_bound
        high = laplacian.upper_bound * (1 + 1e-6)
        self.optimism = 1.0  # factor on estimates of residuals; decreases when they fail
        self.largest = np.inf  # largest of the computed eigenvalues, once it is known
        self.window = window_of(self.operator, self.basis.deflate, high, n_pairs, self.rng)

    def krylov(self, block: int) -> KrylovBasis:
        """Compute the vectors from random starts: the first columns of the basis."""
        n_pairs, room = self.n_pairs, self.n_nodes - self.laplacian.n_null
        size = min(room, n_pairs + max(4 * block, round(SPARE_SHARE * n_pairs)))
        kept_share = n_pairs + max(block, n_pairs // 10)
        basis = self.basis
        basis.allocate(size + block)
        projected = np.zeros((size, size))
        fresh, _, _ = self._orthonormal(self._random(min(block, size)), 0)
        begin, end = 0, fresh.shape[1]
        basis.put(0, fresh)
        for restart in range(RESTARTS):
            while True:
                image = self._polynomial(basis[begin:end])
                fresh, along, beyond = self._orthonormal(image, end)
                projected[:end, begin:end] = along
                projected[begin:end, :end] = along.T
                last = slice(begin, end)
                if (
                    not fresh.shape[1] and end < room
                ):  # invariant space: continue from random vectors
                    fresh, _, _ = self._orthonormal(self._random(min(block, room - end)), end)
                width = fresh.shape[1]
                with single_threaded_blas():  # a small matrix: threads would only wait
                    values, turn = eigh(projected[:end, :end])
                values, turn = values[::-1], np.ascontiguousarray(turn[:, ::-1])
                missing = np.linalg.norm(beyond @ turn[last], axis=0)
                if width == 0 or end + width > size or self._hopeful(values, missing):
                    break
                basis.put(end, fresh)
                begin, end = end, end + width
            if (
                restart >= 2 and values[n_pairs - 1] <= 1.01
            ):  # some of the n_pairs eigenvalues are not amplified
                self.window = self.window.wider()
                return self.krylov(block)
            kept = max(n_pairs, min(kept_share, end - width))
            basis.rotate(turn[:, :kept])
            if self._hopeful(values, missing, ESTIMATE_FACTOR) and self._good_enough():
                return basis
            basis.put(kept, fresh)
            projected[:] = 0.0
            projected[np.diag_indices(kept)] = values[:kept]
            begin, end = kept, kept + width
        raise PairsNotConverged

    def _hopeful(self, values: np.ndarray, missing: np.ndarray, slack: float = 1.0) -> bool:
        """Return whether residuals may be small enough, by an estimate."""
        k = self.n_pairs
        if len(values) < k:
            return False
        estimates = missing[:k] * self.window.residual_factor(values[:k])
        target = max(self.tolerance * min(self.largest, self.window.low), self.floor)
        return bool(estimates.max() <= self.optimism * slack * target)

    def _good_enough(self) -> bool:
        """Return whether all residuals are small."""
        rayleigh, residuals = np.zeros((2, self.n_pairs))
        for part, *found in self.basis.quotients(self.operator, self.n_pairs):
            rayleigh[part], residuals[part] = found
        largest = rayleigh.max()
        if self.dtype is np.float32 and self.floor > COARSE * largest:
            raise _Coarse
        if self.progress is not None:
            self.progress(
                "eigenpairs",
                int((residuals <= self.tolerance * largest).sum()),
                self.n_pairs,
                float(residuals.max()),
            )
        self.largest = float(largest)
        good = bool(residuals.max() <= max(self.tolerance * largest, self.floor))
        if not good:
            self.optimism /= ESTIMATE_FACTOR
        return good

    def _polynomial(self, x: Float[Array, "N b"]) -> Float[Array, "N b"]:
        return self.basis.deflate(self.window.polynomial(self.operator, x))

    def _random(self, width: int) -> Float[Array, "N b"]:
        draws = self.rng.standard_normal((self.n_nodes, width), dtype=np.float32)
        return self.basis.deflate(draws.astype(self.dtype))

    def _orthonormal(
        self, x: Float[Array, "N b"], n_columns: int
    ) -> tuple[Float[Array, "N c"], np.ndarray, np.ndarray]:
        """Return q, along and beyond with ``x = basis along + q beyond``.

        q is orthonormal and orthogonal to the first columns of the basis, without directions that
        are rounding error.
        """
        scale = float(array_namespace(x).linalg.norm(x, axis=0).max())
        noise = (10 * float(np.finfo(self.dtype).eps) * scale) ** 2
        along, beyond = np.zeros((n_columns, x.shape[1])), np.eye(x.shape[1])
        for sweep in range(2):
            x, coefficients, gram = self.basis.remove(x, n_columns)
            along += coefficients @ beyond
            squares, turn = eigh(gram)
            kept = squares > (noise if sweep == 0 else 1e-3)
            root = np.sqrt(squares[kept])
            x = self.basis.combine(x, turn[:, kept] / root)
            beyond = (turn[:, kept] * root).T @ beyond
        return x, along, beyond


def _finished(laplacian: Laplacian, basis: KrylovBasis, n_pairs: int) -> Eigenpairs:
    """Return Rayleigh-Ritz pairs in double precision.

    Errors of the eigenvalues are of the order of the squares of the residuals.
    """
    operator, exact = on_device(laplacian, np.float64)
    exact.load(basis[:n_pairs])
    energy, gram = exact.energy(operator)
    with single_threaded_blas():
        values, turn = eigh((energy + energy.T) / 2, gram)
    exact.rotate(turn)
    residuals = np.empty(n_pairs)
    for part, _, found in exact.quotients(operator, n_pairs):
        residuals[part] = found
    return Eigenpairs(np.maximum(values, 0.0), np.asarray(exact[:n_pairs]), residuals)
