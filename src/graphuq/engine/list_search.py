"""Search of the lists that are nearest to each row. Compiled by Numba.

Rows of one list search nearly the same lists. So the distances of its rows to a list are one
product of matrices, of those rows only that search the list.
"""

from typing import Any, no_type_check

import numpy as np

from graphuq.utils.arrays import njit_cached

FAR = np.finfo(np.float32).max  # compiled code knows no infinity


@njit_cached
@no_type_check
def search_lists(
    queries: Any,  # (R, d) rows of the lists that ask, list by list
    query_starts: Any,  # (A + 1,) where each of these lists begins
    query_centres: Any,  # (A, d)
    near: Any,  # (A, M) lists near each of them, nearest first
    rows: Any,  # (m, d) rows of all lists that are searched
    row_starts: Any,  # (C + 1,) where each list begins in `rows`
    centres: Any,  # (C, d)
    n_searched: int,
    indices: Any,  # (R, k) output: indices into `rows`, −1 where too few were found
) -> None:
    """Find the nearest rows of each query in the lists whose centres are nearest to it."""
    for a in range(len(query_starts) - 1):
        begin, end = query_starts[a], query_starts[a + 1]
        if begin == end:
            continue
        # Distances from a near point lose no digits in single precision.
        own = queries[begin:end] - query_centres[a]
        square = _squares(own)
        apart = _from_centres(own, centres[near[a]] - query_centres[a])
        last = np.empty(end - begin, np.float32)
        for i in range(end - begin):
            last[i] = np.partition(apart[i], n_searched - 1)[n_searched - 1]
        between = np.sqrt(_squares(centres[near[a]] - query_centres[a]))
        best = np.full((end - begin, indices.shape[1]), FAR, np.float32)
        asking = np.empty(end - begin, np.int64)
        for c in range(near.shape[1]):
            # Rows of a list are beyond the plane between its centre and that of the query's list,
            # from which the query has the distance apart / (2 between).
            n_asking = 0
            for i in range(end - begin):
                reach = 2 * between[c] * np.sqrt(best[i, -1])
                if apart[i, c] <= last[i] and apart[i, c] <= reach:
                    asking[n_asking] = i
                    n_asking += 1
            first, stop = row_starts[near[a, c]], row_starts[near[a, c] + 1]
            if n_asking and first < stop:
                some = rows[first:stop] - query_centres[a]
                product = np.dot(own[asking[:n_asking]], some.T)
                _merge(
                    asking[:n_asking], square, _squares(some), product, first, best,
                    indices[begin:end],
                )  # fmt: skip


@njit_cached
@no_type_check
def _squares(rows: Any) -> Any:
    """Return the squared length of each row."""
    squares = np.empty(len(rows), np.float32)
    for i in range(len(rows)):
        squares[i] = (rows[i] * rows[i]).sum()
    return squares


@njit_cached
@no_type_check
def _from_centres(own: Any, centres: Any) -> Any:
    """Return the squared distances of rows from centres, less the squared length of the row."""
    apart = np.dot(own, centres.T)
    squares = _squares(centres)
    for i in range(len(own)):
        for c in range(len(centres)):
            apart[i, c] = squares[c] - 2 * apart[i, c]
    return apart


@njit_cached
@no_type_check
def _merge(
    asking: Any, square: Any, squares: Any, product: Any, first: int, best: Any, indices: Any
) -> None:
    """Put the rows of one list in their places among the nearest that were found before."""
    k = best.shape[1]
    for s in range(len(asking)):
        i = asking[s]
        bound, base = best[i, k - 1], square[i]
        for j in range(len(squares)):
            distance = base + squares[j] - 2 * product[s, j]
            if distance < bound:
                place = k - 1
                while place > 0 and best[i, place - 1] > distance:
                    best[i, place] = best[i, place - 1]
                    indices[i, place] = indices[i, place - 1]
                    place -= 1
                best[i, place] = distance
                indices[i, place] = first + j
                bound = best[i, k - 1]
