"""Closed-form spectra of grids: sums and products of those of paths and rings.

A path has eigenvalues ``4 sin²(πk/2n)`` and cosines as eigenvectors (Hartog & van Zanten 2018, (4),
corrected). A ring has ``4 sin²(πk/n)`` and ``cas = cos + sin``. Multiplication by the eigenvectors
is therefore a cosine or Hartley transform along each axis. With few wave numbers a small table
replaces the fast transform. No matrix of eigenvectors is stored.
"""

from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike, DTypeLike
from scipy import fft

from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import xarray as xr

FEW_WAVES = 128  # wave numbers on an axis up to which a table is faster than a transform
MAX_TABLED = 4_000_000  # largest number of values in the table of an axis: 32 MB


class ProductBasis:
    """Eigenvectors of a grid as columns; it replaces an array of them.

    ``basis @ x`` and ``basis.T @ z`` are transforms. ``basis[rows]`` and ``basis[rows, columns]``
    are arrays, ``basis[:, columns]`` is a basis, and ``basis[:, k]`` is a vector.

    Parameters
    ----------
    sizes, periodic : sequence
        Number of nodes on each axis, and whether the axis is closed to a ring.
    waves : numpy.ndarray of int, shape (L, d)
        Wave number of each eigenvector on each axis.
    """

    ndim = 2
    dtype = np.dtype(np.float64)

    def __init__(
        self, sizes: Sequence[int], periodic: Sequence[bool], waves: Int[np.ndarray, "L d"]
    ) -> None:
        self.sizes, self.periodic = tuple(map(int, sizes)), tuple(map(bool, periodic))
        self.waves = waves
        self._n_waves = tuple((waves.max(axis=0, initial=0) + 1).tolist())  # on each axis

    def to_dataset(self) -> "xr.Dataset":
        """Return the wave numbers and the axes as arrays."""
        require_extra("files")
        import xarray as xr

        return xr.Dataset(
            {
                "waves": (("pair", "axis"), self.waves),
                "sizes": ("axis", np.array(self.sizes)),
                "periodic": ("axis", np.array(self.periodic)),
            }
        )

    @staticmethod
    def from_dataset(stored: "xr.Dataset") -> "ProductBasis":
        """Return the basis that `to_dataset` took apart."""
        sizes, periodic = (stored[name].to_numpy().tolist() for name in ("sizes", "periodic"))
        return ProductBasis(sizes, periodic, stored["waves"].to_numpy())

    @property
    def shape(self) -> tuple[int, int]:
        """Number of nodes N and of eigenvectors L."""
        return int(np.prod(self.sizes)), len(self.waves)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if isinstance(columns, int | np.integer):
            return self[rows, [columns]][..., 0]
        if isinstance(rows, slice) and rows == slice(None):
            if isinstance(columns, list):
                return np.asarray(ProductBasis(self.sizes, self.periodic, self.waves[columns]))
            return ProductBasis(self.sizes, self.periodic, self.waves[columns])
        at = np.atleast_1d(np.arange(len(self))[rows])
        waves = self.waves[columns]
        nodes = np.unravel_index(at, self.sizes)
        factors = (
            _functions(n, ring, i, waves[:, axis])
            for axis, (n, ring, i) in enumerate(zip(self.sizes, self.periodic, nodes, strict=True))
        )
        found = reduce(np.multiply, factors)
        return found[0] if np.ndim(rows) == 0 and not isinstance(rows, slice) else found

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return self[np.arange(len(self))].astype(dtype or self.dtype, copy=False)

    def __matmul__(self, coefficients: ArrayLike) -> np.ndarray:
        """Return ``Σ_j x_j q_j``, shape (N,) or (N, C) for coefficients (L,) or (L, C)."""
        x = np.asarray(coefficients)
        flat = x.reshape(len(self.waves), -1)
        n_waves = self._n_waves
        values = np.zeros((flat.shape[1], *n_waves))
        np.add.at(values, (slice(None), *self.waves.T), flat.T)
        for axis in reversed(range(len(n_waves))):  # arrays of the first steps are small
            values = self._along(values, axis + 1, back=True)
        return values.reshape(-1, len(self)).T.reshape(len(self), *x.shape[1:])

    def _along(self, values: np.ndarray, axis: int, *, back: bool) -> np.ndarray:
        """Transform an axis from nodes to wave numbers or back, by a table if waves are few."""
        n, ring, n_waves = self.sizes[axis - 1], self.periodic[axis - 1], self._n_waves[axis - 1]
        if n_waves <= FEW_WAVES and n * n_waves <= MAX_TABLED:
            table = _table(n, ring, n_waves) if back else _table(n, ring, n_waves).T
            shape = (*values.shape[:axis], len(table), *values.shape[axis + 1 :])
            if axis == values.ndim - 1:
                return (values.reshape(-1, values.shape[-1]) @ table.T).reshape(shape)
            lines = values.reshape(int(np.prod(values.shape[:axis])), values.shape[axis], -1)
            return np.matmul(table, lines).reshape(shape)
        if back:
            widths = [(0, n - n_waves if a == axis else 0) for a in range(values.ndim)]
            values = np.pad(values, widths)
            return _hartley(values, axis) if ring else fft.idct(values, axis=axis, norm="ortho")
        turned = _hartley(values, axis) if ring else fft.dct(values, axis=axis, norm="ortho")
        return turned[(*(slice(None),) * axis, slice(0, n_waves))]

    @property
    def T(self) -> "_Transposed":
        """Transpose; ``basis.T @ z`` transforms from nodes to wave numbers."""
        return _Transposed(self)


class _Transposed:
    """Transpose of a `ProductBasis`."""

    def __init__(self, basis: ProductBasis) -> None:
        self._basis = basis
        self.shape = basis.shape[::-1]

    @property
    def T(self) -> ProductBasis:
        return self._basis

    def __matmul__(self, values: ArrayLike) -> np.ndarray:
        z = np.asarray(values)
        basis = self._basis
        out = z.reshape(len(basis), -1).T.reshape(-1, *basis.sizes)
        for axis in range(len(basis.sizes)):
            out = basis._along(out, axis + 1, back=False)
        found: np.ndarray = out[(slice(None), *basis.waves.T)].T
        return found.reshape(len(basis.waves), *z.shape[1:])


def smallest_pairs(
    sizes: Sequence[int], periodic: Sequence[bool], n_pairs: int
) -> tuple[Float[np.ndarray, " L"], ProductBasis]:
    """Return the smallest eigenpairs of the unnormalised Laplacian of a grid.

    Equal eigenvalues are ordered by their wave numbers, axis by axis.
    """
    axes = [
        4 * np.sin(np.pi * np.arange(n) / (n if ring else 2 * n)) ** 2
        for n, ring in zip(sizes, periodic, strict=True)
    ]
    total: np.ndarray = reduce(np.add.outer, axes).ravel()
    # Rounding differences between equal sums must not determine their order.
    order = np.argsort(total.round(12), kind="stable")[:n_pairs]
    waves = np.stack(np.unravel_index(order, tuple(sizes)), axis=1)
    return total[order], ProductBasis(sizes, periodic, waves)


def _functions(
    n: int, ring: bool, nodes: Int[np.ndarray, " B"], waves: Int[np.ndarray, " L"]
) -> Float[np.ndarray, "B L"]:
    """Return the orthonormal eigenvectors of an axis at some nodes."""
    n_waves = int(waves.max(initial=0)) + 1
    if n * n_waves <= MAX_TABLED:
        return _table(n, ring, n_waves)[nodes][:, waves]
    return _values(n, ring, nodes[:, None], waves[None, :])


@lru_cache(maxsize=16)
def _table(n: int, ring: bool, n_waves: int) -> Float[np.ndarray, "n w"]:
    """Return the first eigenvectors of an axis at all nodes; the array is read-only."""
    table = _values(n, ring, np.arange(n)[:, None], np.arange(n_waves)[None, :])
    table.setflags(write=False)
    return table


def _values(n: int, ring: bool, node: np.ndarray, wave: np.ndarray) -> np.ndarray:
    if ring:
        angle = 2 * np.pi * ((node * wave) % n) / n
        result: np.ndarray = (np.cos(angle) + np.sin(angle)) / np.sqrt(n)
        return result
    values: np.ndarray = np.sqrt(2 / n) * np.cos(
        np.pi * ((2 * node + 1) * wave % (4 * n)) / (2 * n)
    )
    return np.where(wave == 0, np.sqrt(1 / n), values)


def _hartley(values: np.ndarray, axis: int) -> np.ndarray:
    """Return the Hartley transform along an axis; it is its own inverse."""
    turned = fft.fft(values, axis=axis, norm="ortho")
    result: np.ndarray = turned.real - turned.imag
    return result
