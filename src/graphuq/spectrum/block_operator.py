"""Product of a Laplacian with many columns, in a given precision, on all cores."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from scipy import sparse

from graphuq.spectrum.laplacian import Laplacian
from graphuq.utils.arrays import Array

PARTS = 8  # row blocks per core, with similar numbers of edges, so that cores finish together
MIN_EDGES = 1 << 17  # edge ends of a block, unless cores had none: a block costs time of its own
COLUMNS = 32  # number of columns per product in `by_columns`


class BlockOperator:
    """Operator ``L`` whose rows are divided among threads.

    Its memory is 8 bytes per edge end in single precision, and 12 in double. The order of summation
    in a row does not depend on the number of threads, so that results are reproducible bit by bit.
    """

    def __init__(self, laplacian: Laplacian, dtype: type = np.float64) -> None:
        self.dtype = dtype
        self.diagonal: np.ndarray = laplacian.diagonal.astype(dtype)
        self.n_nodes = len(self.diagonal)
        self._weights = laplacian.scaled_weights(dtype)
        self._pool = ThreadPoolExecutor(os.cpu_count())
        self._parts: list[tuple[slice, sparse.csr_array]] = []
        if not isinstance(self._weights, np.ndarray):
            ends = self._weights.indptr
            n_cores = os.cpu_count() or 1
            n_parts = min(PARTS * n_cores, max(n_cores, int(ends[-1]) // MIN_EDGES))
            cuts = np.searchsorted(ends, np.linspace(0, ends[-1], n_parts + 1))
            cuts[0], cuts[-1] = 0, self.n_nodes
            parts = [slice(int(a), int(b)) for a, b in pairwise(cuts) if a < b]
            self._parts = [(part, self._weights[part]) for part in parts]

    def step(
        self,
        x: Float[Array, "N b"],
        of_l: float,
        of_x: float,
        before: Float[Array, "N b"] | None = None,
    ) -> Float[Array, "N b"]:
        """Return ``of_l · L x + of_x · x − before``, one step of a three-term recurrence."""
        along: np.ndarray = (of_x + of_l * self.diagonal)[:, None].astype(self.dtype)
        if isinstance(self._weights, np.ndarray):
            dense: np.ndarray = along * x - self.dtype(of_l) * (self._weights @ x)
            return dense if before is None else dense - before
        x = np.ascontiguousarray(x)
        out = np.empty_like(x)

        def work(share: tuple[slice, sparse.csr_array]) -> None:
            part, weights = share
            rows = weights @ x
            rows *= -of_l
            rows += along[part] * x[part]
            if before is not None:
                rows -= before[part]
            out[part] = rows

        list(self._pool.map(work, self._parts))
        return out

    def __matmul__(self, x: Float[np.ndarray, "N b"]) -> Float[np.ndarray, "N b"]:
        """Return ``L x``."""
        return self.step(x, 1.0, 0.0)

    def by_columns(
        self, x: Float[np.ndarray, "N k"]
    ) -> Iterator[tuple[slice, Float[np.ndarray, "N b"]]]:
        """Yield ``L x`` some columns at a time, so that no second matrix of its size is needed."""
        for begin in range(0, x.shape[1], COLUMNS):
            part = slice(begin, min(begin + COLUMNS, x.shape[1]))
            yield part, self @ np.ascontiguousarray(x[:, part], dtype=self.dtype)


def by_rows(n_nodes: int, size: int = 8192) -> Iterator[slice]:
    """Yield slices of consecutive rows."""
    for begin in range(0, n_nodes, size):
        yield slice(begin, min(begin + size, n_nodes))
