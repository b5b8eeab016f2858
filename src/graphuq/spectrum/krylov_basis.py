"""Orthonormal columns of a Krylov space, in NumPy; see `krylov_basis_gpu` for an accelerator."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from graphuq.spectrum.block_operator import BlockOperator, by_rows
from graphuq.spectrum.laplacian import Laplacian
from graphuq.utils.arrays import Array


class KrylovBasis:
    """Matrix whose first columns are in use, and the products of `lanczos` with it.

    Parameters
    ----------
    laplacian : Laplacian
        Its null space is removed by `deflate`.
    dtype : type
    """

    def __init__(self, laplacian: Laplacian, dtype: type) -> None:
        self.laplacian, self.dtype = laplacian, dtype
        self._matrix: np.ndarray = np.zeros((laplacian.graph.n_nodes, 0), dtype)

    def allocate(self, size: int) -> None:
        """Make room for a number of columns, none of which is in use."""
        self._matrix = np.empty((len(self._matrix), size), self.dtype)

    def load(self, x: Float[Array, "N m"]) -> None:
        """Use some columns without their null part, and no others."""
        self._matrix = x.astype(self.dtype)
        self._matrix -= self.laplacian.project_to_null_space(self._matrix)

    def __getitem__(self, part: slice) -> Float[Array, "N b"]:
        """Return some columns."""
        return self._matrix[:, part]

    def put(self, begin: int, x: Float[Array, "N b"]) -> None:
        """Write columns from a place on."""
        self._matrix[:, begin : begin + x.shape[1]] = x

    def deflate(self, x: Float[Array, "N b"]) -> Float[Array, "N b"]:
        """Return columns without their null part."""
        null_part = self.laplacian.project_to_null_space(x)
        result: np.ndarray = x - null_part.astype(self.dtype, copy=False)
        return result

    def remove(
        self, x: Float[Array, "N b"], n_columns: int
    ) -> tuple[Float[Array, "N b"], Float[np.ndarray, "m b"], Float[np.ndarray, "b b"]]:
        """Return x without its part in the first columns, the coefficients, and the Gram matrix."""
        basis = self._matrix[:, :n_columns]
        coefficients = basis.T @ x
        x = x - basis @ coefficients
        return x, coefficients, (x.T @ x).astype(np.float64)

    def combine(self, x: Float[Array, "N b"], matrix: np.ndarray) -> Float[Array, "N c"]:
        """Return ``x @ matrix``."""
        return x @ matrix.astype(self.dtype)

    def rotate(self, turn: Float[np.ndarray, "m k"]) -> None:
        """Multiply the first m columns by a matrix, in place."""
        turn = turn.astype(self.dtype)
        for part in by_rows(len(self._matrix)):
            rows = self._matrix[part]
            rows[:, : turn.shape[1]] = rows[:, : len(turn)] @ turn

    def energy(
        self, operator: BlockOperator
    ) -> tuple[Float[np.ndarray, "m m"], Float[np.ndarray, "m m"]]:
        """Return ``xᵀ L x`` and ``xᵀ x`` of all columns x."""
        x = self._matrix
        return np.hstack([x.T @ image for _, image in operator.by_columns(x)]), x.T @ x

    def quotients(
        self, operator: BlockOperator, n_columns: int
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield Rayleigh quotients of the first columns, and the norms of their residuals."""
        vectors = self._matrix[:, :n_columns]
        for part, image in operator.by_columns(vectors):
            own = vectors[:, part]
            rayleigh = np.einsum("nb,nb->b", own, image, dtype=np.float64)
            image -= own * rayleigh.astype(self.dtype)
            yield part, rayleigh, np.sqrt(np.einsum("nb,nb->b", image, image, dtype=np.float64))
