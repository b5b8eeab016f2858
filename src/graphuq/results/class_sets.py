"""Sets of classes that hold the true class of a given share of the nodes."""

import math

import numpy as np
from jaxtyping import Bool, Float

from graphuq.errors import InvalidInput, require

METHODS = ("posterior", "conformal")
ROUNDING = 1e-9  # by which a sum of probabilities may miss the coverage


def posterior_sets(
    probabilities: Float[np.ndarray, "M K"],
    coverage: float = 0.9,
    of_nodes: Float[np.ndarray, "N K"] | None = None,
) -> Bool[np.ndarray, "M K"]:
    """Return the smallest sets that hold the true class of a share ``coverage`` of the nodes.

    A set holds the classes with at least a probability that is the same for all rows, and always
    the most probable class. Of all sets that are not empty and hold this share, these have the
    fewest classes in total (Sadinle, Lei & Wasserman 2019). A smallest set for each row by itself
    would hold the true class more often than was asked for, because few sets of whole classes have
    that probability exactly. Classes of equal probability enter together, so that many ties, such
    as those of nodes that no label informs, make the sets larger.

    Parameters
    ----------
    probabilities : numpy.ndarray, shape (M, K)
        Each row adds up to 1.
    coverage : float, default 0.9
        In (0, 1).
    of_nodes : numpy.ndarray, shape (N, K), optional
        Probabilities of the nodes of which the share is; ``probabilities`` by default.

    Returns
    -------
    numpy.ndarray of bool, shape (M, K)
        At least one class a row.

    Raises
    ------
    InvalidInput
        If ``coverage`` is not in (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from graphuq.results.class_sets import posterior_sets
    >>> posterior_sets(np.array([[0.7, 0.25, 0.05], [0.97, 0.02, 0.01]]), 0.9)
    array([[ True,  True, False],
           [ True, False, False]])
    """
    threshold = posterior_threshold(probabilities if of_nodes is None else of_nodes, coverage)
    return _at_least(probabilities, threshold)


def posterior_threshold(probabilities: Float[np.ndarray, "N K"], coverage: float) -> float:
    """Return the least probability of a class that belongs to a set of `posterior_sets`.

    Raises
    ------
    InvalidInput
        If ``coverage`` is not in (0, 1).
    """
    check_coverage(coverage)
    ranked = np.sort(probabilities, axis=1)
    others = np.sort(ranked[:, :-1], axis=None)[::-1]
    held = ranked[:, -1].sum() + np.append(0.0, np.cumsum(others))  # by the first of the others
    n_others = int(np.argmax(held >= coverage * len(probabilities) - ROUNDING))
    return float(others[n_others - 1]) if n_others else 1.0


def conformal_sets(
    probabilities: Float[np.ndarray, "N K"],
    of_given: Float[np.ndarray, " J"],
    coverage: float = 0.9,
) -> Bool[np.ndarray, "N K"]:
    """Return the classes of each row that are at least as probable as most given labels were.

    The score of a label is 1 minus its leave-one-out probability. The threshold is the
    ``⌈(J + 1) coverage⌉``-th smallest of the J scores. The set of a row holds the classes with 1
    minus probability at most this threshold, and always the most probable class (Vovk, Gammerman
    & Shafer 2005, in leave-one-out form).

    Parameters
    ----------
    probabilities : numpy.ndarray, shape (N, K)
    of_given : numpy.ndarray, shape (J,)
        Leave-one-out probability of each given label.
    coverage : float, default 0.9
        In (0, 1).

    Returns
    -------
    numpy.ndarray of bool, shape (N, K)

    Raises
    ------
    InvalidInput
        If ``coverage`` is not in (0, 1), or J is less than ``coverage / (1 − coverage)``.

    Examples
    --------
    >>> import numpy as np
    >>> from graphuq.results.class_sets import conformal_sets
    >>> of_given = np.array([0.9, 0.8, 0.95, 0.3])
    >>> conformal_sets(np.array([[0.6, 0.4], [0.75, 0.25]]), of_given, coverage=0.8)
    array([[ True,  True],
           [ True, False]])
    """
    return _at_least(probabilities, 1 - conformal_threshold(of_given, coverage))


def conformal_threshold(of_given: Float[np.ndarray, " J"], coverage: float) -> float:
    """Return the largest score ``1 − p`` of a class that belongs to a conformal set.

    Raises
    ------
    InvalidInput
        See `conformal_sets`.
    """
    check_coverage(coverage)
    n_labels = len(of_given)
    position = math.ceil((n_labels + 1) * coverage - ROUNDING)
    if position > n_labels:
        needed = math.ceil(coverage / (1 - coverage) - ROUNDING)
        raise InvalidInput(
            "coverage",
            f"{coverage:g} with {n_labels} labels",
            f"conformal sets of this coverage need at least {needed} labels: label more rows, "
            "lower the coverage, or use method='posterior'",
        )
    return float(np.sort(1 - of_given)[position - 1])


def _at_least(probabilities: Float[np.ndarray, "M K"], threshold: float) -> Bool[np.ndarray, "M K"]:
    """Return the classes of at least a probability, and the most probable class of each row."""
    sets = probabilities >= threshold - ROUNDING
    sets[np.arange(len(sets)), probabilities.argmax(axis=1)] = True
    return np.asarray(sets)


def check_coverage(coverage: float) -> None:
    """Raise `InvalidInput` unless the coverage is in (0, 1)."""
    require(0 < coverage < 1, "coverage", f"{coverage!r}", "use a number in (0, 1)")


def check_method(method: str) -> None:
    """Raise `InvalidInput` unless the method is known."""
    require(method in METHODS, "method", f"{method!r}", f"use one of {', '.join(METHODS)}")
