"""Labels of a fit as posteriors take them: certain ones, or a distribution for each row."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets

from graphuq.classifier.class_names import warn_of_class_names
from graphuq.classifier.class_order import classes_in_order, is_ordered
from graphuq.classifier.labels import (
    check_classes,
    codes_among,
    is_matrix,
    split_labels,
    unmasked,
    weights_of_rows,
)
from graphuq.classifier.types import Labels
from graphuq.errors import InvalidInput, require
from graphuq.graphs.containers import is_frame, is_polars, plain_table
from graphuq.models import Labels as ModelLabels
from graphuq.utils.checks import refuse_zero_bytes

SUM_TOLERANCE = 1e-3  # of a row of probabilities, which is then divided by its sum
REMEDY = "give one label a row, or one column of probabilities for each class"


class TrainingLabels(NamedTuple):
    """Names of the classes, and labels as a model takes them."""

    classes: np.ndarray
    labels: ModelLabels


def training_labels(
    y: Labels,
    n_rows: int,
    missing_label: object = -1,
    sample_weight: ArrayLike | None = None,
    max_classes: int | None = None,
    ordered: Any = False,
) -> TrainingLabels:
    """Return the labels of a fit, after all checks.

    Parameters
    ----------
    y : array_like, shape (N,) or (N, K)
        Classes, or probabilities of classes.
    n_rows : int
        N.
    missing_label : object, default -1
        Further value that means unlabelled.
    sample_weight : array_like, shape (N,), optional
    max_classes : int, optional
    ordered : bool or list, default False
        See `classes_in_order`.

    Raises
    ------
    InvalidInput
        If labels or weights cannot be used, if classes have no order that is asked for, or there
        are more classes than ``max_classes``.
    """
    weights = weights_of_rows(sample_weight, n_rows)
    has_order = is_ordered(ordered)
    if is_matrix(y):
        require(not has_order, "ordered", f"{ordered!r} beside soft labels", "leave it out")
        return _soft_labels(y, n_rows, weights, max_classes)
    values, given = split_labels(y, missing_label)
    require(len(values) == n_rows, "y", f"{len(values)} values", f"X has {n_rows} rows")
    given &= weights > 0
    require(given.any(), "sample_weight", "zero at every label", "give weights > 0")
    # Each value twice: of as many classes as labels, scikit-learn would warn as of numbers.
    check_classification_targets(np.repeat(values[given], 2))
    classes, codes = np.unique(values[given], return_inverse=True)
    check_classes(classes, missing_label)
    if has_order:
        classes = classes_in_order(ordered, y, values[given], missing_label)
        codes = codes_among(values[given], classes)
    require(
        max_classes is None or max_classes >= len(classes),
        "max_classes",
        f"{max_classes} with {len(classes)} labelled classes",
        f"use {len(classes)} or more, or leave it out",
    )
    warn_of_class_names(values, given)
    nodes = np.flatnonzero(given)
    labels = ModelLabels(nodes, codes, len(classes), weights[given], None, max_classes, has_order)
    return TrainingLabels(classes, labels)


def _soft_labels(
    y: Any, n_rows: int, weights: Float[np.ndarray, " N"], max_classes: int | None
) -> TrainingLabels:
    """Return soft labels; rows of NaN or zeros are unlabelled.

    If all rows are certain and each class has one, they are labels: the likelihood is the same,
    and all that serves labels serves them, such as the average over models.
    """
    y = plain_table(y, "y")
    named = is_frame(y) or is_polars(y)
    try:
        q = np.array(y.to_numpy() if named else unmasked(y), dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("y", "two columns or more that are not numbers", REMEDY) from None
    texts = [str(name) for name in y.columns] if named else []
    refuse_zero_bytes(texts, "y")
    classes = np.array(texts if named else range(q.shape[1]))
    names, counts = np.unique(classes, return_counts=True)
    require(
        counts.max() == 1,
        "y",
        f"{counts.max()} columns with the name {str(names[counts.argmax()])!r}",
        "give each class its own name",
    )
    require(q.shape[0] == n_rows, "y", f"{q.shape[0]} rows", f"X has {n_rows} rows")
    given = ~(np.isnan(q).all(axis=1) | (q == 0).all(axis=1)) & (weights > 0)
    require(
        given.any(),
        "y",
        f"shape {q.shape} without a row of probabilities",
        "give one label a row, or a probability of each class",
    )
    total = np.where(given, q.sum(axis=1), 1.0)
    wrong = np.flatnonzero(given & ~((q >= 0).all(axis=1) & (np.abs(total - 1) <= SUM_TOLERANCE)))
    row = int(wrong[0]) if len(wrong) else 0
    require(
        len(wrong) == 0,
        "y",
        f"{q[row].tolist()} in row {row}, which are no probabilities",
        "give numbers >= 0 that sum to 1, or NaN or 0 in all columns of an unlabelled row; or use "
        "gq.MultilabelClassifier, if a row may have several tags",
    )
    rows = np.flatnonzero(given)
    q = q[rows] / total[rows, None]
    codes = q.argmax(axis=1)
    certain = ((q == 0) | (q == 1)).all() and len(np.unique(codes)) == len(classes)
    require(
        certain or max_classes is None, "max_classes", f"{max_classes} beside soft labels",
        "leave it out",
    )  # fmt: skip
    distributions = None if certain else q
    labels = ModelLabels(rows, codes, len(classes), weights[rows], distributions, max_classes)
    return TrainingLabels(classes, labels)
