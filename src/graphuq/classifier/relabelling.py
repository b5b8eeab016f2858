"""Posterior and classes after labels were added, corrected or withdrawn."""

import dataclasses

import numpy as np
from jaxtyping import Bool, Int

from graphuq.classifier.labels import check_classes, codes_among
from graphuq.distributions import is_learnt
from graphuq.errors import InvalidInput
from graphuq.models.evidence import likelihood_of
from graphuq.posterior.given_labels import weights_after
from graphuq.posterior.posterior import Posterior
from graphuq.utils.checks import numbers_among


def relabelled(
    posterior: Posterior,
    classes: np.ndarray,
    rows: Int[np.ndarray, " M"],
    values: np.ndarray,
    given: Bool[np.ndarray, " M"],
    ordered: bool = False,
) -> tuple[Posterior, np.ndarray]:
    """Return the posterior with changed labels, and the classes that have a label.

    The likelihood keeps its hyperparameters when the number of classes changes.

    Parameters
    ----------
    posterior : Posterior
    classes : numpy.ndarray, shape (K,)
        Names of the classes of ``posterior``.
    rows : numpy.ndarray of int, shape (M,)
    values : numpy.ndarray, shape (M,)
        Their class names; not read where ``given`` is false.
    given : numpy.ndarray of bool, shape (M,)
        Whether a row has a label. The label of other rows is withdrawn.
    ordered : bool, default False
        Whether the classes have an order, in which they all stay, with labels or without.

    Raises
    ------
    InvalidInput
        If a row does not exist or is given twice, if class names mix text and numbers, or if
        fewer than two classes are left.
    """
    numbers_among(rows, posterior.spectrum.n_nodes, "rows", "row", needed=False)
    check_kind(classes, values[given])
    kept = ~np.isin(posterior.labelled, rows)
    old = posterior.labels if posterior.likelihood.has_codes else posterior.labels > 0
    before = classes[old[kept].astype(np.int64)]
    names = np.concatenate([before, values[given]]) if given.any() else before
    left, codes = np.unique(names, return_inverse=True)
    check_classes(left, None)
    if ordered:
        left, codes = classes, codes_among(names, classes)
    likelihood = posterior.likelihood
    if len(left) != len(classes):
        count = getattr(likelihood, "n_classes", 2)
        most = int(count.support[1]) if is_learnt(count) else None
        likelihood = likelihood_of(likelihood, len(left), most)
    labels = codes if likelihood.has_codes else 2 * codes - 1
    labelled = np.append(posterior.labelled[kept], rows[given])
    keeps = likelihood.is_multiclass and not posterior.is_weighted
    changed = dataclasses.replace(
        posterior,
        # The model of a weighted set finds it again.
        label_design=posterior.label_design if keeps else "random",
        likelihood=likelihood,
        labelled=labelled,
        labels=labels,
        label_weights=weights_after(posterior.label_weights, kept, int(given.sum())),
        experts=(),  # they saw other labels
    )
    return changed, left


def check_kind(classes: np.ndarray, values: np.ndarray) -> None:
    """Refuse text beside numbers, which have no common order."""
    kinds = [array.dtype.kind in "US" for array in (classes, values)]
    if len(values) and classes.dtype != object and kinds[0] != kinds[1]:
        raise InvalidInput(
            "labels",
            f"{values[:1].tolist()} beside the classes {classes[:3].tolist()}",
            "give all classes as text, or all as numbers",
        )
