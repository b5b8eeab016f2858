"""Orthonormal columns of a Krylov space on an accelerator.

Products have full precision: the default of an accelerator keeps three digits.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from jaxtyping import Float

from graphuq.spectrum.block_operator import COLUMNS, BlockOperator
from graphuq.spectrum.krylov_basis import KrylovBasis
from graphuq.spectrum.laplacian import Laplacian
from graphuq.utils.arrays import Array
from graphuq.utils.with_jax import jax, jnp

_multiply = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)


class DeviceBasis(KrylovBasis):
    """Columns of which those not in use are zero, so that all products have the same shape."""

    def __init__(self, laplacian: Laplacian, dtype: type) -> None:
        super().__init__(laplacian, dtype)
        self._profile = jnp.asarray(laplacian.null_profile, dtype)

    def allocate(self, size: int) -> None:
        """Make room for a number of columns, none of which is in use."""
        self._on_device = jnp.zeros((len(self._matrix), size), self.dtype)

    def load(self, x: Float[Array, "N m"]) -> None:
        """Use some columns without their null part, and no others."""
        self._on_device = self.deflate(jnp.asarray(x, self.dtype))

    def __getitem__(self, part: slice) -> Float[Array, "N b"]:
        """Return some columns."""
        return _columns(self._on_device, part.start or 0, part.stop - (part.start or 0))

    def put(self, begin: int, x: Float[Array, "N b"]) -> None:
        """Write columns from a place on."""
        self._on_device = _put(self._on_device, jnp.asarray(x), begin)

    def deflate(self, x: Float[Array, "N b"]) -> Float[Array, "N b"]:
        """Return columns without their null part."""
        if self.laplacian.graph.n_components > 1:
            return jnp.asarray(super().deflate(np.asarray(x)))
        return _without(self._profile, jnp.asarray(x))

    def remove(
        self, x: Float[Array, "N b"], n_columns: int
    ) -> tuple[Float[Array, "N b"], Float[np.ndarray, "m b"], Float[np.ndarray, "b b"]]:
        """Return x without its part in the first columns, the coefficients, and the Gram matrix."""
        x, coefficients, gram = _remove(self._on_device, jnp.asarray(x))
        return x, np.asarray(coefficients)[:n_columns], np.asarray(gram, np.float64)

    def combine(self, x: Float[Array, "N b"], matrix: np.ndarray) -> Float[Array, "N c"]:
        """Return ``x @ matrix``."""
        return _combine(x, jnp.asarray(matrix, self.dtype))

    def rotate(self, turn: Float[np.ndarray, "m k"]) -> None:
        """Multiply the first m columns by a matrix; all columns after those are zero."""
        size = self._on_device.shape[1]
        padded: np.ndarray = np.zeros((size, size), self.dtype)
        padded[: len(turn), : turn.shape[1]] = turn
        self._on_device = _combine(self._on_device, jnp.asarray(padded))

    def energy(
        self, operator: BlockOperator
    ) -> tuple[Float[np.ndarray, "m m"], Float[np.ndarray, "m m"]]:
        """Return ``xᵀ L x`` and ``xᵀ x`` of all columns x."""
        x = self._on_device
        image = jnp.zeros_like(x)
        for part in _parts(x.shape[1]):
            image = _put(image, operator.step(self[part], 1.0, 0.0), part.start)
        return np.asarray(_product(x, image)), np.asarray(_product(x, x))

    def quotients(
        self, operator: BlockOperator, n_columns: int
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield Rayleigh quotients of the first columns, and the norms of their residuals."""
        for part in _parts(n_columns):
            own = self[part]
            rayleigh, norms = _quotients(own, operator.step(own, 1.0, 0.0))
            yield part, np.asarray(rayleigh, np.float64), np.asarray(norms, np.float64)


def _parts(n_columns: int) -> Iterator[slice]:
    """Yield columns in parts of one width, so that programs are compiled once; two may overlap."""
    width = min(COLUMNS, n_columns)
    for begin in range(0, n_columns, width):
        begin = min(begin, n_columns - width)
        yield slice(begin, begin + width)


@partial(jax.jit, donate_argnums=0)
def _put(matrix: jax.Array, x: jax.Array, begin: int | jax.Array) -> jax.Array:
    return jax.lax.dynamic_update_slice(matrix, x, (0, begin))


@partial(jax.jit, static_argnums=2)
def _columns(matrix: jax.Array, begin: int | jax.Array, width: int) -> jax.Array:
    return jax.lax.dynamic_slice_in_dim(matrix, begin, width, axis=1)


@jax.jit
def _product(x: jax.Array, y: jax.Array) -> jax.Array:
    return _multiply(x.T, y)


@jax.jit
def _without(profile: jax.Array, x: jax.Array) -> jax.Array:
    return x - profile[:, None] * _multiply(profile[None, :], x)


@jax.jit
def _remove(basis: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    coefficients = _multiply(basis.T, x)
    x = x - _multiply(basis, coefficients)
    return x, coefficients, _multiply(x.T, x)


@jax.jit
def _combine(x: jax.Array, matrix: jax.Array) -> jax.Array:
    return _multiply(x, matrix)


@jax.jit
def _quotients(x: jax.Array, image: jax.Array) -> tuple[jax.Array, jax.Array]:
    rayleigh = (x * image).sum(axis=0)
    return rayleigh, jnp.linalg.norm(image - x * rayleigh[None, :], axis=0)
