"""Checks of labels, their nodes and their weights, and of the prior mean."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from graphuq.distributions import check_log_prob
from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.graphs.signs import require_two_classes
from graphuq.likelihoods import Likelihood
from graphuq.utils.arrays import double_precision
from graphuq.utils.checks import array_of, describe, numbers_among


def check_labels(
    labelled: Any, labels: Any, basis: Any, likelihood: Likelihood
) -> tuple[Int[np.ndarray, " J"], Float[np.ndarray, " J"]]:
    """Return labelled nodes and labels as arrays.

    Raises
    ------
    InvalidInput
        See `Posterior`.
    """
    n_nodes, graphs = basis.n_nodes, [getattr(block, "graph", None) for block in basis.blocks]
    if likelihood.has_codes:
        signed = basis.is_signed or any(one is not None and one.is_signed for one in graphs)
        require_two_classes(signed, likelihood.max_classes)
    nodes = numbers_among(labelled, n_nodes, "labelled")
    values = array_of(labels, "labels", "give one label per labelled node")
    require(
        values.shape == nodes.shape,
        "labels",
        f"shape {values.shape} beside {nodes.size} labelled nodes",
        "give one label per labelled node",
    )
    known = list(range(likelihood.min_classes)) if likelihood.has_codes else [-1, 1]
    strange = [value for value in np.unique(values).tolist() if value not in known]
    require(
        not strange,
        "labels",
        f"{strange[:3]} beside {_among(known)}",
        f"code the {'' if likelihood.has_codes else 'two '}classes as {_among(known)}, or use "
        "GraphClassifier for labels of any type"
        + ("" if likelihood.has_codes else "; more than two need n_classes of the likelihood"),
    )
    _try_log_prob(likelihood, values, nodes, n_nodes)
    if likelihood.has_soft_labels:
        return nodes.astype(np.int64), _most_probable(values, likelihood)
    require(
        len(np.unique(values)) >= 2,
        "labels",
        f"only the class {np.unique(values).tolist()}",
        "label at least one node of each of two classes",
    )
    return nodes.astype(np.int64), values.astype(np.float64)


def _try_log_prob(
    likelihood: Likelihood, labels: np.ndarray, nodes: np.ndarray, n_nodes: int
) -> None:
    """Refuse a user's own likelihood whose `log_prob` breaks its contract."""
    likelihood = likelihood.of_component(0)
    y = labels.astype(np.float64)
    if likelihood.uses_all_nodes:
        y = np.full(n_nodes, -1.0 if likelihood.has_codes else 0.0)
        y[nodes] = labels
    shape = (len(y), likelihood.n_fields) if likelihood.is_multiclass else (len(y),)
    check_log_prob(likelihood, np.random.default_rng(0).normal(size=shape), y)


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


def check_prior_mean(
    prior_mean: Any,
    n_nodes: int,
    likelihood: Likelihood,
    labels: Float[np.ndarray, " J"],
    weights: Any,
) -> float | Float[np.ndarray, " N"] | None:
    """Return the prior mean of u as a number or an array over nodes, or None without one.

    Raises
    ------
    InvalidInput
        If it is neither a finite number nor one for each node.
    IncompatibleParts
        If labels are codes of classes, soft or weighted, or the likelihood excludes one.
    """
    if prior_mean is None:
        return None
    remedy = "give a finite number, or one for each node"
    try:
        values = np.asarray(prior_mean, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("prior_mean", describe(prior_mean), remedy) from None
    require(values.shape in ((), (n_nodes,)), "prior_mean", describe(prior_mean), remedy)
    require(bool(np.isfinite(values).all()), "prior_mean", "a value is not finite", remedy)
    excludes = False
    if likelihood.is_step and not likelihood.learnt:
        with double_precision():
            excludes = bool((np.asarray(likelihood.log_levels(labels)[1]) == -np.inf).any())
    if likelihood.has_codes or likelihood.has_soft_labels or excludes:
        raise IncompatibleParts(
            f"a prior mean needs certain labels of two classes, each with a positive probability "
            f"for every u, and not {likelihood}; use Probit(), or leave prior_mean out"
        )
    if weights is not None:
        raise IncompatibleParts(
            "a prior mean and weights of labels cannot be combined; leave one of them out"
        )
    return float(values) if values.ndim == 0 else values


def check_part(argument: str, part: object, kind: Any) -> None:
    """Refuse a part of the wrong kind by name, with the remedy."""
    if isinstance(part, kind):
        return
    value = f"a {type(part).__name__}"
    if isinstance(part, type):
        raise InvalidInput(
            argument, f"the class {part.__name__}", f"make an instance: {part.__name__}()"
        )
    remedies = {
        "spectrum": "give gq.laplacian_spectrum(graph), or gq.Laplacian(graph)",
        "prior": "give a prior such as gq.priors.Matern()",
        "likelihood": "give a likelihood such as gq.likelihoods.Probit()",
    }
    raise InvalidInput(
        argument, value, f"{remedies[argument]}; the order is spectrum, prior, likelihood"
    )


def check_design(label_design: object, has_codes: bool, is_weighted: bool) -> None:
    """Refuse an unknown design of labels, and one by class that nothing would take into account."""
    require(
        isinstance(label_design, str) and label_design in ("random", "by-class"),
        "label_design",
        f"{label_design!r}",
        "use 'random' or 'by-class'",
    )
    if label_design == "by-class" and not (has_codes or is_weighted):
        raise IncompatibleParts(
            "label_design='by-class' needs a mixture of priors if there are two classes; use "
            "'random'"
        )
