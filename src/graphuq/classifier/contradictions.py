"""Labels that contradict each other: rows with equal features have different labels."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Int

from graphuq.errors import GraphuqWarning
from graphuq.graphs.feature_space import FeatureSpace
from graphuq.graphs.fingerprints import fingerprints
from graphuq.graphs.inputs import Features
from graphuq.utils.user_warnings import warn_user

FEW = 0.1  # share of rows up to which it is no habit of a table that rows are equal
MANY = 0.1  # share of labels that differ from those of equal rows from which there is a warning


def warn_of_contradictions(
    classifier: Any,
    rows: Int[np.ndarray, " J"],
    labels: np.ndarray,
    changed: Int[np.ndarray, " M"] | None = None,
) -> None:
    """Warn if labelled rows of a graph that features made are equal, and their labels are not.

    Parameters
    ----------
    classifier : GraphClassifier
        With the feature space of its graph. Pixels and the like, which a `GraphBuilder` joined, are
        told apart by their places.
    rows : numpy.ndarray of int, shape (J,)
        The labelled rows.
    labels : numpy.ndarray, shape (J,) or (J, T)
        What each row is labelled as.
    changed : numpy.ndarray of int, shape (M,), optional
        Rows of which at least one must be among those that contradict each other.
    """
    space: FeatureSpace | None = classifier._feature_space
    if space is not None and space.makes_edges and isinstance(classifier.graph, str):
        points = space.features
        warn_of_equal_rows(points[rows], rows, labels, changed, lambda: _are_usual(points))


def warn_of_equal_rows(
    features: Features,
    rows: Int[np.ndarray, " J"],
    labels: np.ndarray,
    changed: Int[np.ndarray, " M"] | None,
    are_usual: Callable[[], bool],
) -> None:
    """Warn if features are equal and labels are not; see `warn_of_contradictions`.

    In a table of few distinct rows, such as answers of yes and no, contradictions are part of the
    noise. Then there is a warning only if they are many.

    Parameters
    ----------
    features : numpy.ndarray or sparse matrix, shape (J, d)
        Those of the labelled rows.
    rows, labels, changed
        See `warn_of_contradictions`.
    are_usual : callable
        Returns whether rows of the table are equal by chance.

    Warns
    -----
    GraphuqWarning
        With the number of these rows, and two of them.
    """
    _, group, sizes = np.unique(fingerprints(features), return_inverse=True, return_counts=True)
    codes = np.unique(labels, axis=0, return_inverse=True)[1].ravel()
    kinds, n_each = np.unique(np.column_stack([group, codes]), axis=0, return_counts=True)
    most = np.zeros(len(sizes), np.int64)  # labels of each group that one answer can match
    np.maximum.at(most, kinds[:, 0], n_each)
    differs = (most < sizes)[group]
    if changed is not None:
        differs &= np.isin(group, group[np.isin(rows, changed)])
    if not differs.any():
        return
    usual = are_usual()
    share = float((sizes - most).sum() / len(rows))
    if usual and share < MANY:
        return
    one = int(differs.argmax())
    other = int(((group == group[one]) & (codes != codes[one])).argmax())
    first, second = sorted((int(rows[one]), int(rows[other])))
    warn_user(
        f"y: {differs.sum()} labelled rows have the features of a row with another label, such as "
        f"rows {first} and {second}; "
        + (
            f"equal rows get equal answers, so that {share:.0%} of the labels or more are not "
            "matched: add features that tell such rows apart"
            if usual
            else "correct one of the labels, or add a feature that tells such rows apart"
        ),
        GraphuqWarning,
    )


def _are_usual(features: Features) -> bool:
    """Return whether rows are equal by chance: many are, and no column tells most of them apart."""
    sizes = np.unique(fingerprints(features), return_counts=True)[1]
    if sizes[sizes > 1].sum() <= max(2, FEW * sizes.sum()):
        return False
    columns = features.T if isinstance(features, np.ndarray) else ()  # counts of words tell few
    return not any(len(np.unique(column)) > len(sizes) / 2 for column in columns)
