"""Classes with an order, such as grades: where their order comes from, and what cannot serve."""

from typing import Any

import numpy as np

from graphuq.classifier.labels import label_array, missing_mask
from graphuq.errors import require
from graphuq.inference import MCMC, Approximation
from graphuq.models import Labels, Model

REMEDY = "give the classes from the lowest to the highest, as in ordered=['low', 'mid', 'high']"


def is_ordered(ordered: Any) -> bool:
    """Return whether a parameter ``ordered`` asks for an order: True, or a list of classes.

    Raises
    ------
    InvalidInput
        If it is neither of these, nor False or None.
    """
    if ordered is None or isinstance(ordered, bool | np.bool_):
        return bool(ordered)
    listed = isinstance(ordered, list | tuple) or getattr(ordered, "ndim", 0) == 1
    require(listed, "ordered", f"{ordered!r}", f"use True or False, or {REMEDY}")
    return True


def refuse_order(ordered: Any, beside: str) -> None:
    """Raise `InvalidInput` if there is an order beside what takes none."""
    require(not is_ordered(ordered), "ordered", f"{ordered!r} {beside}", "leave it out")


def classes_in_order(
    ordered: Any, y: Any, given: np.ndarray, missing_label: object = -1
) -> np.ndarray:
    """Return the names of all grades, the lowest first; some may be without a label.

    Parameters
    ----------
    ordered : True or list
        A list is the order. True: numbers are sorted, and an ordered categorical of pandas has its
        own order.
    y : array_like
        What the user gave.
    given : numpy.ndarray
        Labels among it, without missing ones.
    missing_label : object
        Value that is no class.

    Raises
    ------
    InvalidInput
        If texts have no order, or the list lacks a class, has one twice, or only one.
    """
    if not isinstance(ordered, bool | np.bool_):
        return _checked(label_array(list(ordered), "ordered"), given)
    dtype: Any = getattr(y, "dtype", None)
    if getattr(dtype, "ordered", False):
        names = label_array(list(dtype.categories), "y")
        return _checked(names[~missing_mask(names, missing_label)], given)
    classes = np.unique(given)
    require(
        classes.dtype.kind in "biuf",
        "ordered",
        f"True beside classes that are text: {classes[:5].tolist()}",
        f"{REMEDY}, or an ordered categorical of pandas",
    )
    return classes


def _checked(classes: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return an order of classes, which must hold each label once."""
    names, counts = np.unique(classes, return_counts=True)
    require(len(classes) > 1, "ordered", f"{classes.tolist()}", REMEDY)
    twice = names[counts > 1][:1].tolist()
    require(not twice, "ordered", f"{twice} twice", "give each class once")
    texts = [values.dtype.kind in "US" for values in (classes, given)]
    others = given if texts[0] != texts[1] else given[~np.isin(given, classes)]
    require(
        len(others) == 0,
        "ordered",
        f"{classes[:9].tolist()} without the label {others[:1].tolist()}",
        "add it at its place in the order, or correct the label",
    )
    return classes


def check_order(
    classifier: Any, model: Model, inference: MCMC | Approximation, labels: Labels
) -> None:
    """Raise, before a graph is made, if a parameter has no meaning beside ordered classes.

    Raises
    ------
    InvalidInput
        If there is one. With two classes there is none: their order changes nothing.
    """
    if not labels.ordered or labels.n_classes == 2:
        return
    require(
        model.takes_order,
        "model",
        f"{model!r} beside ordered classes",
        "leave it out, or give gq.models.Fixed(prior, gq.likelihoods.Ordered(thresholds))",
    )
    unused = {"max_classes": None, "tail_eigenvalue": False}
    for name, only in unused.items():
        value = getattr(classifier, name)
        require(
            value is only or (name == "tail_eigenvalue" and not model.averages_in_order),
            name,
            f"{value!r} beside ordered classes",
            "leave it out, or leave the order out",
        )
    require(
        not (model.averages_in_order and isinstance(inference, MCMC) and inference.asks_for_draws),
        "inference",
        f"{classifier.inference!r} beside ordered classes, of which no sampler serves an average",
        "leave it out, or use 'expectation-propagation'",
    )
