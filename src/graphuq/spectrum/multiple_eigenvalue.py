"""All copies of a multiple eigenvalue, or none.

A solver returns an arbitrary basis of the eigenvectors of a multiple eigenvalue. If only some of
them are kept, the covariance of the field depends on that basis: the leaves of a star, which
nothing tells apart, get unequal answers, and others when they are renumbered. With all of them, or
with none, the covariance is a function of the Laplacian alone. It is one, too, if some are kept and
the tail has this eigenvalue, because all its eigenvectors then have the same variance.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float

EQUAL = 1e-6  # relative difference up to which eigenvalues count as equal; solvers are as accurate
EQUAL_TO_NORM = 1e-12  # the same for eigenvalues near 0, relative to the largest possible value
MAX_PAIRS = 600  # pairs up to which all copies are computed; at least twice those asked for
MIN_SHARE = 0.5  # of the pairs above the null ones, which are left at least without any copy

Solution: TypeAlias = tuple[np.ndarray, Any, np.ndarray]  # eigenvalues, eigenvectors, residuals
WHOLE, ALL, NONE, TAIL, CUT = "", "all copies", "no copy", "tail", "some copies"


def whole_eigenvalues(
    solved: Callable[[int], tuple[Solution, str]],
    n_pairs: int,
    n_null: int,
    n_nodes: int,
    largest: float,
    *,
    may_change: bool,
) -> tuple[Solution, str, str]:
    """Return pairs that hold all copies of their last eigenvalue.

    Parameters
    ----------
    solved : callable
        Returns the smallest pairs of a number, and the solver in words.
    n_pairs, n_null, n_nodes : int
        Pairs asked for, null ones among them, and N.
    largest : float
        Bound of the eigenvalues.
    may_change : bool
        Whether there may be other than ``n_pairs``.

    Returns
    -------
    solution : tuple
    solver : str
    copies : str
        "" if nothing had to be done. "all copies": there are more pairs. "no copy": there are
        fewer. "tail": there are ``n_pairs``, and a tail must have the last eigenvalue. "some
        copies": there are ``n_pairs``, as asked.
    """
    limit = min(n_nodes, max(MAX_PAIRS, 2 * n_pairs))
    tried = n_pairs
    while True:
        found, solver = solved(min(tried + 1, n_nodes))
        values = found[0]
        if len(values) <= n_pairs:  # all of them, or fewer because they did not converge
            return found, solver, WHOLE
        differ = ~equal_to_last(values, largest)
        if differ[n_pairs]:
            return _first(found, n_pairs), solver, WHOLE
        if not may_change:
            return _first(found, n_pairs), solver, CUT
        ends = np.flatnonzero(differ[n_pairs:])
        if len(ends) or len(values) == n_nodes:
            end = n_pairs + ends[0] if len(ends) else n_nodes
            return _first(found, int(end)), solver, ALL
        if tried >= limit:
            break
        tried = min(2 * tried, limit)
    begin = int(np.flatnonzero(differ[:n_pairs])[-1])
    if begin - n_null >= MIN_SHARE * (n_pairs - n_null):
        return _first(found, begin), solver, NONE
    return _first(found, n_pairs), solver, TAIL


def equal_to_last(values: Float[np.ndarray, " L"], largest: float) -> np.ndarray:
    """Return whether each of ascending eigenvalues equals the one before; False for the first."""
    near = np.diff(values) <= EQUAL * values[1:] + EQUAL_TO_NORM * largest
    return np.append(False, near)


def _first(found: Solution, n_pairs: int) -> Solution:
    values, vectors, residuals = found
    if len(values) == n_pairs:
        return found
    kept = vectors[:, :n_pairs]
    if isinstance(kept, np.ndarray):
        kept = np.ascontiguousarray(kept)
    return values[:n_pairs], kept, residuals[:n_pairs]
