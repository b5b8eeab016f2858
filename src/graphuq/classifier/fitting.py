"""The fit of a classifier: graph, spectrum, posterior, inference.

This module imports all methods, `graphuq.classifier.classifier` does not. So a classifier
can be made, cloned and searched over before they are loaded.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from graphuq.classifier.class_order import check_order
from graphuq.classifier.given_graph import checked_rows, labels_of_names
from graphuq.classifier.labels import require_same_order
from graphuq.classifier.options import (
    basis_of,
    build_graph,
    check_options,
    seed_of,
)
from graphuq.classifier.training_labels import training_labels
from graphuq.classifier.types import Labels, Table
from graphuq.errors import GraphuqWarning, require
from graphuq.inference import MCMC, Approximation
from graphuq.models import Model
from graphuq.posterior.posterior import Posterior
from graphuq.results.class_proportions import class_thresholds, shares_of
from graphuq.results.label_numbers import with_classes
from graphuq.results.result import Result
from graphuq.results.unknown_shares import has_unknown_shares
from graphuq.run.infer import infer
from graphuq.spectrum import Basis
from graphuq.spectrum.node_blocks import NODE_BLOCKS
from graphuq.utils.concurrency import require_no_fork
from graphuq.utils.progress import reporting
from graphuq.utils.user_warnings import warn_user

if TYPE_CHECKING:
    from graphuq.classifier.classifier import GraphClassifier


def fit_classifier(
    classifier: "GraphClassifier",
    X: Table | None,
    y: Labels,
    sample_weight: ArrayLike | None,
    basis: Any = None,
) -> None:
    """Infer the class of every row; see `GraphClassifier.fit`.

    A basis is that of an earlier fit with the same graph, Laplacian and number of eigenpairs.
    """
    require_no_fork()
    word, model, inference = check_options(classifier)  # before any work
    require_same_order(X, y)
    graph, X, n_rows = checked_rows(classifier, word, X, y)
    given = training_labels(
        labels_of_names(y, graph), n_rows, classifier.missing_label, sample_weight,
        classifier.max_classes, classifier.ordered,
    )  # fmt: skip
    labels = given.labels
    soft = labels.distributions is not None
    require(
        not (soft and classifier.class_proportions is not None),
        "class_proportions",
        f"{classifier.class_proportions!r} beside soft labels",
        "leave it out",
    )
    check_order(classifier, model, inference, labels)
    model.check(labels)
    shares = shares_of(
        classifier.class_proportions, given.classes, labels.codes, classifier.max_classes
    )

    with reporting(classifier.progress) as report:
        classifier.graph_ = build_graph(
            graph,
            X,
            classifier.n_neighbors,
            classifier.weights,
            classifier.metric,
            report,
            getattr(classifier, "feature_names_in_", None),
        )
        if basis is None:
            basis = basis_of(
                classifier.graph_,
                classifier.laplacian,
                classifier.n_eigenpairs,
                classifier.tail_eigenvalue,
                model,
                report,
                labels.n_classes,
            )
    classifier.classes_ = given.classes
    selected = model.select(basis, labels)
    _warn_of_unused_blocks(basis, selected)
    posterior = selected.posterior(basis, labels)
    classifier.model_ = selected.used(posterior)
    classifier._feature_space, classifier._basis = classifier.graph_.feature_space, basis
    classifier.withdrawn_ = np.arange(0)
    classifier._explore(posterior, inference, shares)


def _warn_of_unused_blocks(basis: Any, model: Model) -> None:
    """Warn if a model leaves features of the nodes, or other graphs, out."""
    names = basis.settings.get(NODE_BLOCKS, ()) if isinstance(basis, Basis) else ()
    if names and not model.uses_blocks:
        warn_user(
            f"{model} uses the first graph alone, without {', '.join(names)}; use model='average'",
            GraphuqWarning,
        )


def explore(
    classifier: "GraphClassifier",
    posterior: Posterior,
    inference: MCMC | Approximation,
    shares: Any = None,
    **more: Any,
) -> None:
    """Run inference, with more arguments of `infer`, and set the attributes of every row."""
    if isinstance(inference, MCMC):
        callback = inference.on_first_result
        if callback is not None:
            named = _named(callback, classifier.classes_)
            inference = dataclasses.replace(inference, on_first_result=named)
        more["progress"] = classifier.progress
    if shares is not None and has_unknown_shares(posterior):  # label counts decide nothing
        posterior = dataclasses.replace(posterior, label_design="random")
    result = infer(posterior, inference, rng=seed_of(classifier.random_state), **more)
    classifier.result_ = with_classes(result, classifier.classes_)
    classifier._tuning = None if shares is None else class_thresholds(classifier.result_, shares)
    classifier._describe()


def _named(callback: Callable[[Result], None], classes: np.ndarray) -> Callable[[Result], None]:
    """Return a callback that receives a result with class names."""
    return lambda first: callback(with_classes(first, classes))
