"""Lists of neighbours that another search found, as a sparse matrix of distances."""

from typing import Any

import numpy as np
from scipy import sparse

from graphuq.errors import InvalidInput, require

REMEDY = "give (indices, distances), each of shape (N, K), -1 where no neighbour was found"


def is_neighbor_lists(value: Any) -> bool:
    """Return whether a value is a pair of arrays, as searches return neighbours."""
    return isinstance(value, tuple) and len(value) == 2 and all(np.ndim(v) == 2 for v in value)


def matrix_of_lists(lists: Any, argument: str) -> sparse.csr_array:
    """Return the distances of all neighbours that were found.

    Parameters
    ----------
    lists : tuple of array_like, shape (N, K) each
        Row numbers and distances of the neighbours of each row, in either order: scikit-learn and
        faiss return distances first, PyNNDescent and hnswlib indices. A negative number is a
        neighbour that was not found; a row itself is left out.
    argument : str
        Name in errors.

    Raises
    ------
    InvalidInput
        If shapes differ, none is of integers, a row number is too large, or a neighbour that was
        found has no finite distance >= 0.
    """
    first, second = map(np.asarray, lists)
    require(first.shape == second.shape, argument, f"{first.shape} and {second.shape}", REMEDY)
    if first.dtype.kind not in "iu":
        first, second = second, first
    if first.dtype.kind not in "iu" or second.dtype.kind not in "iuf":
        raise InvalidInput(argument, f"types {first.dtype} and {second.dtype}", REMEDY)
    n_rows = len(first)
    rows = np.broadcast_to(np.arange(n_rows)[:, None], first.shape)
    found = (first >= 0) & (first != rows)
    require(
        int(first.max(initial=-1)) < n_rows,
        argument,
        f"row number {first.max(initial=-1)} among {n_rows} rows",
        "give neighbours among the same rows",
    )
    distances = second[found].astype(np.float64)
    bad = ~(np.isfinite(distances) & (distances >= 0))
    require(
        not bad.any(),
        argument,
        f"{int(bad.sum())} distance(s) of found neighbours negative, NaN or infinite",
        REMEDY,
    )
    pointers = np.concatenate([[0], np.cumsum(found.sum(axis=1))])
    matrix = sparse.csr_array((distances, first[found], pointers), shape=(n_rows, n_rows))
    twice = matrix.copy()
    twice.sum_duplicates()
    require(twice.nnz == matrix.nnz, argument, "a neighbour that is listed twice", REMEDY)
    return matrix
