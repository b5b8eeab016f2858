"""When classes are many, and which are near each label, by the prior covariance of their labels."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

FEW_CLASSES, FEW_FIELDS = 50, 12_000  # classes, and classes × labels, up to which draws are quick
MAX_NUMBERS = 2_000_000  # of the matrices of the classes that are computed together


class Group(NamedTuple):
    """Some classes, and the labels that are of each or near it.

    Attributes
    ----------
    classes : numpy.ndarray of int, shape (c,)
    places : numpy.ndarray of int, shape (c, s)
        Places of the labels; those of classes with fewer are filled up with others.
    used : numpy.ndarray of bool, shape (c, s)
        Which are no filling.
    """

    classes: Int[np.ndarray, " c"]
    places: Int[np.ndarray, "c s"]
    used: Bool[np.ndarray, "c s"]


def are_many(n_labels: int, n_classes: int) -> bool:
    """Return whether draws, and averages over components, would take minutes."""
    return n_classes > FEW_CLASSES and n_labels * n_classes > FEW_FIELDS


def far_classes(
    covariance: Float[np.ndarray, "J J"], labels: Int[np.ndarray, " J"], n_classes: int, n_near: int
) -> Bool[np.ndarray, "J K"]:
    """Return which classes are far from each label: all but its own and the nearest.

    A class is as near as that of its labels with the largest prior covariance. Classes without a
    label are far.
    """
    n_labels, order = len(labels), np.argsort(labels, kind="stable")
    seen, begins = np.unique(labels[order], return_index=True)
    closeness = np.maximum.reduceat(covariance[:, order], begins, axis=1)
    closeness[np.arange(n_labels), np.searchsorted(seen, labels)] = np.inf
    n_kept = min(n_near + 1, len(seen))
    nearest = np.argpartition(-closeness, n_kept - 1, axis=1)[:, :n_kept]
    is_far = np.ones((n_labels, n_classes), dtype=bool)
    np.put_along_axis(is_far, seen[nearest], False, axis=1)
    return is_far


def groups_of(is_far: Bool[np.ndarray, "J K"]) -> Iterator[Group]:
    """Yield all classes, those together that have about as many labels near them."""
    n_labels, counts = len(is_far), (~is_far).sum(axis=0)
    order = np.argsort(-counts, kind="stable")
    begin = 0
    while begin < len(order):
        size = int(counts[order[begin]])
        some = order[begin : begin + max(1, MAX_NUMBERS // (max(1, size) * n_labels))]
        some = some[(counts[some] >= size // 2) | (counts[some] == counts[some[0]])]
        places = np.argsort(is_far[:, some], axis=0, kind="stable")[:size].T
        yield Group(some, np.ascontiguousarray(places), np.arange(size) < counts[some][:, None])
        begin += len(some)
