"""Labels of any type, some of them missing."""

import warnings
from typing import Any

import numpy as np
from jaxtyping import Bool
from sklearn.exceptions import DataConversionWarning

from graphuq.errors import InvalidInput, require


def split_labels(
    y: Any, missing_label: Any, needed: bool = True
) -> tuple[np.ndarray, Bool[np.ndarray, " N"]]:
    """Labels as an array, and which of them are given.

    Unlabelled are ``missing_label``, NaN, None and the empty string.

    Raises
    ------
    InvalidInput
        If ``y`` is missing, not one-dimensional, or holds no label at all.
    """
    if y is None:
        raise InvalidInput(
            "y", "requires y to be passed, but the target y is None", "give the known labels"
        )
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected",
            DataConversionWarning,
            stacklevel=3,
        )
        values = values.ravel()
    require(values.ndim == 1, "y", f"shape {values.shape}", "give one label a row")
    if np.issubdtype(values.dtype, np.floating) and np.isinf(values).any():
        raise InvalidInput("y", "infinite values", "give classes, or NaN where unknown")
    missing = np.array(
        [
            value is None
            or (isinstance(value, float | np.floating) and np.isnan(value))
            or (isinstance(value, str) and value == "")
            or (missing_label is not None and _same(value, missing_label))
            for value in values
        ],
        dtype=bool,
    )
    require(
        not (needed and missing.all()),
        "y",
        f"no label among {len(values)} rows",
        "label at least one row of each class",
    )
    given = values[~missing]
    if len(given) and values.dtype == object and len({isinstance(v, str) for v in given}) == 1:
        values = values.copy()
        values[missing] = given[0]  # any value of the right type: never looked at
        values = np.array(values.tolist())
    return values, ~missing


def _same(value: Any, missing_label: Any) -> bool:
    if isinstance(value, str) != isinstance(missing_label, str):
        return False
    return bool(value == missing_label)


def check_classes(classes: np.ndarray, missing_label: Any) -> None:
    """Demand two classes at least among the given labels."""
    hint = f" ({missing_label!r} means unlabelled; missing_label=None makes it a class)"
    require(
        len(classes) > 1,
        "y",
        f"labels of one class only: {classes.tolist()}",
        "label rows of two classes or more" + (hint if missing_label is not None else ""),
    )


def codes_among(labels: Any, classes: np.ndarray) -> np.ndarray:
    """Place of each label among the classes.

    Raises
    ------
    InvalidInput
        If one is not among them.
    """
    labels = np.asarray(labels)
    strange = labels[~np.isin(labels, classes)]
    require(
        len(strange) == 0,
        "labels",
        f"{strange[:1].tolist()} is not among the classes {classes.tolist()}",
        "fit again with it",
    )
    order = np.argsort(classes)
    found: np.ndarray = order[np.searchsorted(classes[order], labels)]
    return found
