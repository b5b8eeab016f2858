"""One step of a three-term recurrence with row blocks of the Laplacian. Compiled by Numba."""

from typing import Any, no_type_check

from graphuq.utils.arrays import njit_cached


@njit_cached
@no_type_check
def laplacian_step(
    pointers: Any,  # (n + 1,) where each row of the block begins
    columns: Any,  # (m,) below n: rows of the part; from n on: rows of the halo
    weights: Any,  # (m,) w_ij / √(d_i d_j)
    own: Any,  # (n, b)
    halo: Any,  # (h, b)
    before: Any,  # (n, b)
    of_l: Any,
    of_x: Any,
    of_before: Any,
    out: Any,  # (n, b) output
) -> None:
    """Compute ``of_l · L x + of_x · x + of_before · before``; L is 0 at an isolated node."""
    n, width = own.shape
    for i in range(n):
        row = out[i]
        for c in range(width):
            row[c] = 0
        for e in range(pointers[i], pointers[i + 1]):
            w, j = weights[e], columns[e]
            other = own[j] if j < n else halo[j - n]
            for c in range(width):
                row[c] += w * other[c]
        diagonal = of_x + (of_l if pointers[i] < pointers[i + 1] else 0 * of_l)
        for c in range(width):
            row[c] = diagonal * own[i, c] - of_l * row[c] + of_before * before[i, c]
