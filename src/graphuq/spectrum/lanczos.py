"""The smallest eigenpairs of a sparse Laplacian by block Lanczos on a polynomial of it.

Blocks make every step a product of matrices; most of the work is done in single precision where
the tolerance allows it, and the end of it in double.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.csgraph import reverse_cuthill_mckee

from graphuq.errors import InvalidInput
from graphuq.spectrum.block_operator import BlockOperator, by_rows
from graphuq.spectrum.block_operator_gpu import operator_of
from graphuq.spectrum.chebyshev import window_of
from graphuq.spectrum.laplacian import Laplacian
from graphuq.utils.progress import Progress

MANY_NODES = 50_000  # that do not fit the cache
BLOCK = 16  # columns a step
SPARE_SHARE = 0.7  # Krylov vectors beyond the wanted ones, of their number; four blocks at least
RESTARTS = 300
ROUNDING = 10  # of the machine's: a residual below so many cannot be told from none
COARSE = 1e-3  # a share of the largest wanted eigenvalue that rounding must not exceed
MIN_TOLERANCE = 1e-5  # of single precision
DOUBTED = 10.0  # estimates of a residual may be off by so much


class Eigenpairs(NamedTuple):
    """Ascending eigenvalues, orthonormal eigenvectors, and the norms ``|L q − λ q|``."""

    eigenvalues: Float[np.ndarray, " k"]
    eigenvectors: Float[np.ndarray, "N k"]
    residuals: Float[np.ndarray, " k"]


class _Coarse(Exception):
    """Single precision cannot resolve what is wanted."""


def nonnull_pairs(
    laplacian: Laplacian,
    n_pairs: int,
    tolerance: float,
    progress: Progress | None = None,
) -> Eigenpairs:
    """Eigenpairs of the ``n_pairs`` smallest positive eigenvalues.

    Krylov spaces of a Chebyshev polynomial of L, which is large on the wanted end of the spectrum
    and at most one on the rest (Saad 1984; Zhou & Saad 2007), grown a block at a time, made
    orthogonal in full, and restarted from their Ritz vectors (Wu & Simon 2000): the polynomial
    spares orthogonalisation, where plain Lanczos spends its time, and blocks turn what is left of
    it into products of matrices. The null space is deflated in closed form.

    Of a multiple eigenvalue, as rings and square grids have them, a block of b finds b copies at
    most: where so many are found the block is doubled, and all is done again.

    Parameters
    ----------
    laplacian : Laplacian
    n_pairs : int
    tolerance : float
        Largest residual, as a share of the largest wanted eigenvalue.
    progress : callable, optional

    Raises
    ------
    InvalidInput
        If they do not converge.
    """
    order = _order(laplacian)
    if order is not None:
        laplacian = laplacian.reordered(order)
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


def _order(laplacian: Laplacian) -> Int[np.ndarray, " N"] | None:
    """Of many nodes, one in which neighbours lie close together (Cuthill & McKee 1969).

    What a block of columns is multiplied by is then mostly in the cache: three times as fast.
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
    """In single precision, and again in double where that was not enough."""
    for dtype in (np.float32, np.float64):
        if dtype is np.float32 and tolerance < MIN_TOLERANCE:
            continue
        try:
            problem = _Problem(laplacian, n_pairs, tolerance, dtype, progress)
            vectors = problem.krylov(block)
        except _Coarse:
            continue
        return _finished(laplacian, vectors)
    raise AssertionError("double precision resolves what it is asked for")


class _Problem:
    """What is sought, in one precision."""

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
        self.operator = operator_of(laplacian, dtype)
        self.rng = np.random.default_rng(0)
        self.floor = ROUNDING * float(np.finfo(dtype).eps) * laplacian.upper_bound
        high = laplacian.upper_bound * (1 + 1e-6)
        self.optimism = 1.0  # how far estimates of residuals are believed; less once they failed
        self.largest = np.inf  # wanted eigenvalue, once it is known
        self.window = window_of(self.operator, self.deflate, high, n_pairs, self.rng)

    def deflate(self, x: Float[np.ndarray, "N b"]) -> Float[np.ndarray, "N b"]:
        """Columns without their null part."""
        result: np.ndarray = x - self.laplacian.project_to_null_space(x).astype(self.dtype)
        return result

    def krylov(self, block: int) -> Float[np.ndarray, "N k"]:
        """Wanted vectors from nothing."""
        n_pairs, room = self.n_pairs, self.n_nodes - self.laplacian.graph.n_components
        size = min(room, n_pairs + max(4 * block, round(SPARE_SHARE * n_pairs)))
        kept_share = n_pairs + max(block, n_pairs // 10)
        basis: np.ndarray = np.empty((self.n_nodes, size + block), self.dtype)
        projected = np.zeros((size, size))
        fresh, _, _ = self._orthonormal(self._random(min(block, size)), basis[:, :0])
        begin, end = 0, fresh.shape[1]
        basis[:, :end] = fresh
        for restart in range(RESTARTS):
            while True:
                image = self._polynomial(basis[:, begin:end])
                fresh, along, beyond = self._orthonormal(image, basis[:, :end])
                projected[:end, begin:end] = along
                projected[begin:end, :end] = along.T
                last = slice(begin, end)
                if not fresh.shape[1] and end < room:  # an invariant space: on from elsewhere
                    fresh, _, _ = self._orthonormal(
                        self._random(min(block, room - end)), basis[:, :end]
                    )
                width = fresh.shape[1]
                values, turn = eigh(projected[:end, :end])
                values, turn = values[::-1], np.ascontiguousarray(turn[:, ::-1])
                missing = np.linalg.norm(beyond @ turn[last], axis=0)
                if width == 0 or end + width > size or self._hopeful(values, missing):
                    break
                basis[:, end : end + width] = fresh
                begin, end = end, end + width
            if restart >= 2 and values[n_pairs - 1] <= 1.01:  # not all wanted ones are amplified
                self.window = self.window.wider()
                return self.krylov(block)
            kept = max(n_pairs, min(kept_share, end - width))
            _rotate(basis, turn[:, :kept].astype(self.dtype), end)
            if self._hopeful(values, missing, DOUBTED) and self._good_enough(basis[:, :n_pairs]):
                return basis[:, :n_pairs]
            basis[:, kept : kept + width] = fresh
            projected[:] = 0.0
            projected[np.diag_indices(kept)] = values[:kept]
            begin, end = kept, kept + width
        raise InvalidInput(
            "n_eigenpairs",
            f"the {n_pairs} pairs did not converge in {RESTARTS} restarts",
            "ask for fewer pairs, or a larger tolerance",
        )

    def _hopeful(self, values: np.ndarray, missing: np.ndarray, doubt: float = 1.0) -> bool:
        """Whether residuals may be small enough, by an estimate."""
        k = self.n_pairs
        if len(values) < k:
            return False
        estimates = missing[:k] * self.window.residual_factor(values[:k])
        target = max(self.tolerance * min(self.largest, self.window.low), self.floor)
        return bool(estimates.max() <= self.optimism * doubt * target)

    def _good_enough(self, vectors: Float[np.ndarray, "N k"]) -> bool:
        """Whether all residuals are small."""
        rayleigh, residuals = np.zeros((2, vectors.shape[1]))
        for part, image in self.operator.by_columns(vectors):
            own = vectors[:, part]
            rayleigh[part] = np.einsum("nb,nb->b", own, image, dtype=np.float64)
            image -= own * rayleigh[part].astype(self.dtype)
            residuals[part] = np.sqrt(np.einsum("nb,nb->b", image, image, dtype=np.float64))
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
            self.optimism /= DOUBTED
        return good

    def _polynomial(self, x: Float[np.ndarray, "N b"]) -> Float[np.ndarray, "N b"]:
        return self.deflate(self.window.polynomial(self.operator, np.ascontiguousarray(x)))

    def _random(self, width: int) -> Float[np.ndarray, "N b"]:
        draws = self.rng.standard_normal((self.n_nodes, width), dtype=np.float32)
        return self.deflate(draws.astype(self.dtype))

    def _orthonormal(
        self, x: Float[np.ndarray, "N b"], basis: Float[np.ndarray, "N m"]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``x = basis along + q beyond`` with q orthonormal, and orthogonal to the basis.

        Directions that are nothing but rounding are left out of q.
        """
        scale = float(np.linalg.norm(x, axis=0).max())
        noise = (10 * float(np.finfo(self.dtype).eps) * scale) ** 2
        along, beyond = np.zeros((basis.shape[1], x.shape[1])), np.eye(x.shape[1])
        for sweep in range(2):
            coefficients = basis.T @ x
            x = x - basis @ coefficients
            along += coefficients @ beyond
            gram = (x.T @ x).astype(np.float64)
            squares, turn = eigh(gram)
            kept = squares > (noise if sweep == 0 else 1e-3)
            root = np.sqrt(squares[kept])
            x = x @ (turn[:, kept] / root).astype(self.dtype)
            beyond = (turn[:, kept] * root).T @ beyond
        return x, along, beyond


def _rotate(basis: np.ndarray, turn: np.ndarray, n_columns: int) -> None:
    """The first columns of a basis times a matrix, in place."""
    for part in by_rows(len(basis)):
        basis[part, : turn.shape[1]] = basis[part, :n_columns] @ turn


def _finished(laplacian: Laplacian, vectors: Float[np.ndarray, "N k"]) -> Eigenpairs:
    """Rayleigh-Ritz in double precision: eigenvalues as exact as the squares of the residuals."""
    operator = BlockOperator(laplacian, np.float64)
    x = vectors.astype(np.float64)
    x -= laplacian.project_to_null_space(x)
    energy = np.hstack([x.T @ image for _, image in operator.by_columns(x)])
    values, turn = eigh((energy + energy.T) / 2, x.T @ x)
    _rotate(x, turn, x.shape[1])
    residuals = np.empty(len(values))
    for part, image in operator.by_columns(x):
        residuals[part] = np.linalg.norm(image - x[:, part] * values[part], axis=0)
    return Eigenpairs(np.maximum(values, 0.0), x, residuals)
