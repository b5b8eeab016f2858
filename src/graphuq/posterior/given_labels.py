"""Checks of labels, their nodes and their weights."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.likelihoods import Likelihood


def check_labels(
    labelled: Any, labels: Any, n_nodes: int, likelihood: Likelihood
) -> tuple[Int[np.ndarray, " J"], Float[np.ndarray, " J"]]:
    """Return labelled nodes and labels as arrays.

    Raises
    ------
    InvalidInput
        See `Posterior`.
    """
    nodes = np.asarray(labelled)
    require(
        nodes.ndim == 1 and nodes.size > 0,
        "labelled",
        f"shape {nodes.shape}",
        "give the indices of the labelled nodes, at least one of each class",
    )
    if not np.issubdtype(nodes.dtype, np.integer):
        raise InvalidInput("labelled", f"of type {nodes.dtype}", "give integer node indices")
    outside = nodes[(nodes < 0) | (nodes >= n_nodes)]
    require(
        outside.size == 0,
        "labelled",
        f"node {outside[:1].tolist()} does not exist",
        f"use indices from 0 to {n_nodes - 1}",
    )
    require(
        len(np.unique(nodes)) == len(nodes),
        "labelled",
        "a node is labelled twice",
        "give each node once",
    )
    values = np.asarray(labels)
    require(
        values.shape == nodes.shape,
        "labels",
        f"shape {values.shape} beside {nodes.size} labelled nodes",
        "give one label per labelled node",
    )
    known = list(range(likelihood.min_classes)) if likelihood.is_multiclass else [-1, 1]
    strange = [value for value in np.unique(values).tolist() if value not in known]
    require(
        not strange,
        "labels",
        f"{strange[:3]} beside {_among(known)}",
        f"code the {'' if likelihood.is_multiclass else 'two '}classes as {_among(known)}, or use "
        "GraphClassifier for labels of any type"
        + ("" if likelihood.is_multiclass else "; more than two need n_classes of the likelihood"),
    )
    if likelihood.has_soft_labels:
        return nodes.astype(np.int64), _most_probable(values, likelihood)
    require(
        len(np.unique(values)) >= 2,
        "labels",
        f"only the class {np.unique(values).tolist()}",
        "label at least one node of each of two classes",
    )
    return nodes.astype(np.int64), values.astype(np.float64)


def _most_probable(values: np.ndarray, likelihood: Any) -> Float[np.ndarray, " J"]:
    """Return the most probable class of each soft label, which the labels must be."""
    q = likelihood.probabilities
    require(
        q is not None and len(q) == len(values),
        "probabilities",
        f"{0 if q is None else len(q)} soft labels of {len(values)} labelled nodes",
        "give one row for each labelled node; after new labels, fit again",
    )
    expected: np.ndarray = likelihood.most_probable
    require(
        bool((values == expected).all()),
        "labels",
        "they are not the most probable classes of the soft labels",
        "pass likelihood.most_probable",
    )
    return expected.astype(np.float64)


def _among(codes: list[int]) -> str:
    return "-1 and +1" if codes == [-1, 1] else f"0 to {codes[-1]}"


def check_weights(
    weights: Any, n_labels: int, likelihood: Likelihood
) -> Float[np.ndarray, " J"] | None:
    """Return weights of labels as an array, or None if each is 1.

    Raises
    ------
    InvalidInput
        If there is not one positive number a label.
    IncompatibleParts
        If the likelihood takes no weights.
    """
    if weights is None:
        return None
    values = np.asarray(weights, dtype=np.float64)
    require(
        values.shape == (n_labels,),
        "label_weights",
        f"shape {values.shape} beside {n_labels} labels",
        "give one weight per label",
    )
    require(
        bool((np.isfinite(values) & (values > 0)).all()),
        "label_weights",
        f"{values[~(np.isfinite(values) & (values > 0))][:1].tolist()}",
        "give finite numbers > 0; leave labels of weight 0 out",
    )
    if np.all(values == 1.0):
        return None
    if not likelihood.takes_weights:
        raise IncompatibleParts(
            f"{likelihood} takes no weights of labels, which divide the variance of noise that is "
            "added to u; use Probit(), or leave the weights out"
        )
    return values


def weights_after(
    weights: Float[np.ndarray, " J"] | None, kept: Bool[np.ndarray, " J"], n_new: int
) -> Float[np.ndarray, " M"] | None:
    """Return the weights after labels were withdrawn and new ones of weight 1 were added."""
    return None if weights is None else np.append(weights[kept], np.ones(n_new))
