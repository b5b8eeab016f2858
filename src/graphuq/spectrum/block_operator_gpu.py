"""Product of a Laplacian with many columns on an accelerator."""

import numpy as np
from jaxtyping import Float
from scipy import sparse

from graphuq.spectrum.block_operator import BlockOperator
from graphuq.spectrum.laplacian import Laplacian
from graphuq.utils.arrays import Array
from graphuq.utils.with_jax import jax, jnp


class DeviceOperator(BlockOperator):
    """Operator ``L`` whose rows are in groups of similar length, each padded to the longest.

    A product is then a gather and a sum in a fixed order, which is reproducible bit by bit; a
    scatter-add is not. Rows of up to 1, 2, 4, … edges form a group, which costs less than twice
    the memory. Results stay on the device until they are converted to NumPy. Double precision
    needs ``jax.enable_x64``.
    """

    def __init__(self, laplacian: Laplacian, dtype: type = np.float32) -> None:
        self.dtype = dtype
        self.diagonal = laplacian.diagonal.astype(dtype)
        self.n_nodes = len(self.diagonal)
        self._on_device = jnp.asarray(self.diagonal)[:, None]
        weights = sparse.csr_array(laplacian.scaled_weights(dtype))
        lengths = np.diff(weights.indptr)
        size = np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64)
        self._groups = tuple(
            _padded(weights, np.flatnonzero(size == power), 1 << int(power))
            for power in np.unique(size)
        )
        order = np.argsort(size, kind="stable")
        self._place = jnp.asarray(np.argsort(order))

    def step(
        self,
        x: Float[Array, "N b"],
        of_l: float,
        of_x: float,
        before: Float[Array, "N b"] | None = None,
    ) -> Float[Array, "N b"]:
        """Return ``of_l · L x + of_x · x − before``, one step of a three-term recurrence."""
        x = jnp.asarray(x)
        of_l, of_x = self.dtype(of_l), self.dtype(of_x)
        before = jnp.zeros_like(x) if before is None else jnp.asarray(before)
        return _step(self._groups, self._place, self._on_device, x, of_l, of_x, before)


def _padded(weights: sparse.csr_array, rows: np.ndarray, width: int) -> tuple[jax.Array, jax.Array]:
    """Columns and values of some rows, (R, width); 0 where there is none."""
    own = weights[rows]
    row = np.repeat(np.arange(len(rows)), np.diff(own.indptr))
    place = np.arange(own.nnz) - own.indptr[row]
    columns, values = (
        np.zeros((len(rows), width), np.int32),
        np.zeros((len(rows), width), weights.dtype),
    )
    columns[row, place], values[row, place] = own.indices, own.data
    return jnp.asarray(columns), jnp.asarray(values)


@jax.jit
def _step(
    groups: tuple[tuple[jax.Array, jax.Array], ...],
    place: jax.Array,
    diagonal: jax.Array,
    x: jax.Array,
    of_l: float | jax.Array,
    of_x: float | jax.Array,
    before: jax.Array,
) -> jax.Array:
    sums = [(values[:, :, None] * x[columns]).sum(axis=1) for columns, values in groups]
    product = jnp.concatenate(sums)[place]
    return (of_x + of_l * diagonal) * x - of_l * product - before
