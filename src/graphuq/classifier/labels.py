"""Class labels of any type, some of which are missing."""

import sys
from numbers import Number
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike
from sklearn.exceptions import DataConversionWarning

from graphuq.classifier.types import Labels
from graphuq.errors import InvalidInput, require, shortened
from graphuq.utils.checks import array_of, describe, refuse_zero_bytes
from graphuq.utils.user_warnings import warn_user
from graphuq.utils.written.gaps import GAP_WORDS

# Class names, in lower case, that data files often use for "no label". A file turns the number
# −1, which means unlabelled in scikit-learn, into text.
PLACEHOLDERS = GAP_WORDS | {
    "unassigned", "not assigned", "unlabelled", "unlabeled", "no label", "-1", "-1.0",
    "not labelled", "not labeled", "not annotated", "unannotated", "(blank)", "to do"
}  # fmt: skip

CLASS_TYPES = (str, bool, int, float, np.bool_, np.integer, np.floating)
NO_CLASSES = {"c": "complex numbers", "m": "time differences", "M": "dates", "S": "bytes",
              "V": "records"}  # by NumPy's kind  # fmt: skip

AS_TEXT = "give texts, integers or booleans, as by [str(label) for label in y]"
AS_DECODED = "give texts, as by [label.decode() for label in y]"


def unmasked(y: Any) -> Any:
    """Return what is masked as missing: NaN among floats, None among others."""
    if not np.ma.isMaskedArray(y):
        return y
    if not np.ma.is_masked(y):
        return np.asarray(y)
    values = y.data.astype(np.float64 if y.dtype.kind == "f" else object)
    values[np.ma.getmaskarray(y)] = None
    return values


def label_array(y: Labels, argument: str = "y") -> np.ndarray:
    """Return labels as an array; missing values of pandas and of mixed lists stay missing.

    Labels that NumPy would change stay objects: texts that end with a zero byte, and integers
    that no float is equal to, or that have more than 63 bits.
    """
    y = unmasked(y)
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "kind", "") == "T":
        return np.asarray(y.astype(object))  # type: ignore[union-attr]
    pandas = sys.modules.get("pandas")  # whoever has an object of pandas has imported it
    if pandas is not None and isinstance(dtype, pandas.api.extensions.ExtensionDtype):
        return np.asarray(y.astype(object))  # type: ignore[union-attr]
    values = array_of(y, argument, "give one label a row, as text or integers")
    if not (isinstance(y, list | tuple) and values.ndim == 1):
        return values
    if values.dtype.kind == "U":
        # NumPy has written NaN among texts as the text "nan", and -1 as "-1".
        # It writes an Enum of texts as the name of its class, cut to the length of the values.
        changed = not all(type(value) in (str, np.str_) and value[-1:] != "\0" for value in y)
    else:
        whole = values.dtype.kind == "f"
        changed = whole and any(isinstance(v, int) and (v != v / 1 or abs(v) >= 2**63) for v in y)
    if not changed:
        return values
    mixed = np.empty(len(y), dtype=object)
    mixed[:] = y
    return mixed


def unknown_mask(values: np.ndarray) -> Bool[np.ndarray, " N"]:
    """Return which values are NaN, NaT, None or ``pd.NA``."""
    if values.dtype.kind in "fcmM":
        return np.asarray(np.isnan(values))
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    return np.array([_is_unknown(value) for value in values.ravel()], bool).reshape(values.shape)


def _is_unknown(value: object) -> bool:
    """Return whether a value is one of those without an equal: NaN, NaT, None or ``pd.NA``."""
    if isinstance(value, str):
        return False
    nameless = value is None or type(value).__name__ in ("NAType", "NaTType")
    return nameless or (isinstance(value, Number | np.generic) and bool(value != value))


def missing_mask(values: np.ndarray, missing_label: object) -> Bool[np.ndarray, " N"]:
    """Return which labels are missing: NaN, None, ``pd.NA``, blank and ``missing_label``.

    Parameters
    ----------
    values : numpy.ndarray, shape (N,)
    missing_label : object
        A further value that means unlabelled; there is none for None, NaN or ``pd.NA``.
    """
    missing = unknown_mask(values)
    further = not _is_unknown(missing_label)
    for k in np.flatnonzero(~missing) if values.dtype.kind in "OUS" else ():
        text = isinstance(values[k], str)
        missing[k] = (text and not values[k].strip()) or (
            further and text == isinstance(missing_label, str) and bool(values[k] == missing_label)
        )
    if further and values.dtype.kind in "biuf" and not isinstance(missing_label, str):
        missing |= values == missing_label
    return missing


def is_matrix(y: Any) -> bool:
    """Return whether y has two columns or more."""
    if y is None or isinstance(y, dict):
        return False
    shape = shape_of(y)
    return len(shape) == 2 and shape[1] > 1


def shape_of(y: Any) -> tuple[int, ...]:
    """Return the shape of an array or of nested lists; that of a list if its rows differ."""
    shape: tuple[int, ...] | None = getattr(y, "shape", None)
    if shape is None:
        try:
            shape = np.asarray(y).shape
        except ValueError:  # rows of different lengths
            shape = (len(y),)
    return shape


def split_labels(
    y: Labels, missing_label: object, needed: bool = True, argument: str = "y"
) -> tuple[np.ndarray, Bool[np.ndarray, " N"]]:
    """Return labels as an array, and which of them are given.

    Parameters
    ----------
    y : array_like, shape (N,)
    missing_label : object
        Value that means unlabelled, besides NaN, None, ``pd.NA`` and blank text.
    needed : bool, default True
        Whether at least one label must be given.
    argument : str, default "y"
        Name of ``y`` in error messages.

    Raises
    ------
    InvalidInput
        If ``y`` is missing, not one-dimensional, or holds no label although one is needed; if
        labels are no texts, integers or booleans; if ``missing_label`` is text and the labels are
        numbers.
    """
    if y is None:
        raise InvalidInput(
            argument, "requires y to be passed, but the target y is None", "give the known labels"
        )
    require(
        isinstance(missing_label, CLASS_TYPES) or _is_unknown(missing_label),
        "missing_label",
        describe(missing_label),
        "give one value, such as -1 or '?'; others can be replaced by None in y",
    )
    values = label_array(y, argument)
    if values.ndim == 2 and values.shape[1] == 1:
        warn_user(
            "A column-vector y was passed when a 1d array was expected", DataConversionWarning
        )
        values = values.ravel()
    shown = f"shape {values.shape}" if values.ndim else describe(y)
    require(values.ndim == 1, argument, shown, "give one label a row")
    if np.issubdtype(values.dtype, np.floating) and np.isinf(values).any():
        raise InvalidInput(argument, "infinite values", "give classes, or NaN where unknown")
    _require_class_kind(values, argument)
    missing = missing_mask(values, missing_label)
    require(
        not (needed and missing.all()),
        argument,
        f"no label among {len(values)} rows",
        "label at least one row of each class",
    )
    given = values[~missing]
    texts = values.dtype.kind in "US" or any(isinstance(value, str | bytes) for value in given)
    require(
        texts or not isinstance(missing_label, str) or not missing_label.strip(),
        "missing_label",
        f"the text {missing_label!r} beside labels that are numbers",
        "give a number, such as -1, or leave it out",
    )
    if len(given) and values.dtype == object:
        _require_class_types(given, argument)
        refuse_zero_bytes(given, argument)
        values = values.copy()
        values[missing] = given[0]  # a placeholder of the right type, never read
        values = np.array([str.__str__(v) if isinstance(v, str) else v for v in values.tolist()])
    return values, ~missing


def _require_class_kind(values: np.ndarray, argument: str) -> None:
    """Refuse arrays of a type that names no classes: a file could not hold their names."""
    require(
        values.dtype.kind not in NO_CLASSES,
        argument,
        f"labels that are {NO_CLASSES.get(values.dtype.kind)}",
        AS_TEXT if values.dtype.kind != "S" else AS_DECODED,
    )


def _require_class_types(given: np.ndarray, argument: str) -> None:
    """Refuse classes that have no order with each other, or that files cannot hold."""
    for value in given:
        require(
            isinstance(value, CLASS_TYPES),
            argument,
            f"a label of type {type(value).__name__}, such as {shortened(repr(value), 40)}",
            AS_TEXT if not isinstance(value, bytes) else AS_DECODED,
        )
    _require_one_kind(given, argument)
    whole = [int(v) for v in given if isinstance(v, int | np.integer)]
    require(
        len(whole) < len(given) or np.array(whole).dtype.kind in "iu",
        argument,
        f"integers of more than 64 bits, such as {shortened(str(max(whole, key=abs)), 40)}"
        if whole
        else "",
        AS_TEXT,
    )


def _require_one_kind(given: np.ndarray, argument: str) -> None:
    """Refuse texts among other labels, which have no common order."""
    texts = [value for value in given if isinstance(value, str)]
    others = [value for value in given if not isinstance(value, str)]
    if texts and others:
        raise InvalidInput(
            argument,
            f"labels of types str and {type(others[0]).__name__}, such as {texts[0]!r} and "
            f"{others[0]!r}",
            "give all as text, for instance [str(label) for label in labels], or all as numbers; "
            "mark unlabelled rows by None",
        )


def check_classes(classes: np.ndarray, missing_label: object) -> None:
    """Require at least two classes among the given labels, whose names files can hold."""
    for name in classes.tolist():
        require(
            not isinstance(name, str) or name.isascii() or _is_unicode(name),
            "y",
            f"the class {name!r}, which no file can hold",
            "replace what is no character, as by name.encode(errors='replace').decode()",
        )
    hint = f" ({missing_label!r} means unlabelled; missing_label=None makes it a class)"
    require(
        len(classes) > 1,
        "y",
        f"labels of one class only: {classes.tolist()}",
        "label rows of two classes or more" + (hint if missing_label is not None else ""),
    )


def _is_unicode(name: str) -> bool:
    """Return whether a text has no lone surrogates, as by ``errors="surrogateescape"``."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def require_same_order(X: Any, y: Any, argument: str = "y") -> None:
    """Refuse labels whose names of rows are those of the features in another order.

    Raises
    ------
    InvalidInput
        If both have an index of the same names, which say otherwise than the positions.
    """
    own: Any = getattr(X, "index", None)
    other: Any = getattr(y, "index", None)
    if not (hasattr(own, "equals") and hasattr(other, "equals")) or len(own) != len(other):
        return
    differ = not own.equals(other) and own.is_unique and own.symmetric_difference(other).empty
    require(
        not differ,
        argument,
        "its index has the names of the rows of X in another order",
        f"give {argument}.loc[X.index]",
    )


def codes_among(labels: Labels, classes: np.ndarray) -> Int[np.ndarray, " M"]:
    """Return the position of each label among the classes.

    Raises
    ------
    InvalidInput
        If a label is not among the classes.
    """
    labels = np.asarray(labels)
    unknown = labels[~np.isin(labels, classes)]
    require(
        len(unknown) == 0,
        "labels",
        f"{unknown[:1].tolist()} is not among the classes {classes.tolist()}",
        "fit again with it",
    )
    order = np.argsort(classes)
    positions: Int[np.ndarray, " M"] = order[np.searchsorted(classes[order], labels)]
    return positions


def weights_of_rows(sample_weight: ArrayLike | None, n_rows: int) -> Float[np.ndarray, " N"]:
    """Return the weight of each row, 1 by default.

    Raises
    ------
    InvalidInput
        If there is not one finite weight >= 0 a row.
    """
    if sample_weight is None:
        return np.ones(n_rows)
    remedy = "give one number >= 0 a row"
    require(not np.ma.is_masked(sample_weight), "sample_weight", "masked values", remedy)
    weights = array_of(sample_weight, "sample_weight", remedy)
    require(
        weights.shape == (n_rows,),
        "sample_weight",
        f"shape {weights.shape} for {n_rows} rows",
        remedy,
    )
    require(weights.dtype.kind in "biuf", "sample_weight", f"type {weights.dtype}", remedy)
    weights = weights.astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    require(
        len(wrong) == 0,
        "sample_weight",
        f"{weights[wrong[:1]].tolist()} in row {wrong[:1].tolist()}",
        remedy,
    )
    return weights
