"""The fit of a classifier: graph, spectrum, posterior, inference.

This module imports all methods, `graphuq.classifier.classifier` does not. So a classifier
can be made, cloned and searched over before they are loaded.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from graphuq.classifier.class_order import check_order
from graphuq.classifier.contradictions import warn_of_contradictions
from graphuq.classifier.given_graph import checked_rows, labels_of_names
from graphuq.classifier.labels import require_same_order
from graphuq.classifier.options import (
    basis_of,
    build_graph,
    check_options,
    seed_of,
)
from graphuq.classifier.training_labels import TrainingLabels, training_labels
from graphuq.classifier.types import Labels, Table
from graphuq.errors import GraphuqWarning, require
from graphuq.graphs.signs import require_two_classes
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

OF_ROWS = ("graph_", "n_features_in_", "feature_names_in_")  # what fits of the same rows share


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
    require_same_order(X, y)
    fit_together([classifier], X, [y], y, sample_weight, basis)


def fit_together(
    classifiers: "Sequence[GraphClassifier]",
    X: Table | None,
    answers: Sequence[Labels],
    named: Any,
    sample_weight: ArrayLike | None,
    basis: Any = None,
    rows_were_chosen: bool = False,
) -> None:
    """Fit classifiers with equal parameters to labels of their own, on one graph and one basis.

    Parameters
    ----------
    classifiers : sequence of GraphClassifier, length T
    X : array_like, shape (N, d), or None
    answers : sequence of array_like, length T
        Labels of the rows for each classifier.
    named : array_like
        Labels as the user gave them, whose names of rows may say in which order the nodes are.
    sample_weight : array_like, shape (N,), optional
    basis : Basis, optional
        See `fit_classifier`.
    rows_were_chosen : bool, default False
        Whether rows were chosen without regard to their classes; see `graphuq.models.Labels`.
    """
    first = classifiers[0]
    word, model, inference = check_options(first)  # before any work
    graph, X, n_rows = checked_rows(first, word, X, named)
    asked = [
        _checked_labels(one, labels_of_names(y, graph), n_rows, sample_weight, model, inference)
        for one, y in zip(classifiers, answers, strict=True)
    ]
    with reporting(first.progress) as report:
        first.graph_ = build_graph(
            graph,
            X,
            first.n_neighbors,
            first.weights,
            first.metric,
            report,
            getattr(first, "feature_names_in_", None),
        )
        for own in (first.graph_, *first.graph_.others.values()):
            for given, _ in asked:
                n_most = max(given.labels.n_classes, given.labels.max_classes or 0)
                require_two_classes(own.is_signed, n_most)
        first._feature_space = first.graph_.feature_space
        _warn_of_contradictions(first, [given for given, _ in asked])
        if basis is None:
            basis = basis_of(
                first.graph_,
                first.laplacian,
                first.n_eigenpairs,
                first.tail_eigenvalue,
                model,
                report,
                max(given.labels.n_classes for given, _ in asked),
            )
    several = [g.labels._replace(rows_were_chosen=rows_were_chosen) for g, _ in asked]
    selected = [model.select(basis, labels) for labels in several]
    _warn_of_unused_blocks(basis, selected[0])
    alike = all(one == selected[0] for one in selected)
    posteriors = (
        selected[0].posteriors(basis, several)
        if alike
        else [one.posterior(basis, own) for one, own in zip(selected, several, strict=True)]
    )
    for one, (given, shares), chosen, posterior in zip(
        classifiers, asked, selected, posteriors, strict=True
    ):
        for name in OF_ROWS:
            if hasattr(first, name):
                setattr(one, name, getattr(first, name))
        one.classes_ = given.classes
        one.model_ = chosen.used(posterior)
        one._feature_space, one._basis = one.graph_.feature_space, basis
        one.withdrawn_, one._queried = np.arange(0), np.arange(0)
        one._explore(posterior, inference, shares)


def _checked_labels(
    classifier: "GraphClassifier",
    y: Labels,
    n_rows: int,
    sample_weight: ArrayLike | None,
    model: Model,
    inference: Any,
) -> tuple[TrainingLabels, Any]:
    """Return labels that classifier, model and method can use, and the shares of the classes."""
    given = training_labels(
        y, n_rows, classifier.missing_label, sample_weight,
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
    return given, shares


def _warn_of_contradictions(classifier: "GraphClassifier", given: list[TrainingLabels]) -> None:
    """Warn of equal rows with different labels, or with different tags."""
    if any(one.labels.distributions is not None for one in given):
        return
    rows = given[0].labels.nodes
    if len(given) == 1:
        warn_of_contradictions(classifier, rows, given[0].classes[given[0].labels.codes])
    elif all(np.array_equal(one.labels.nodes, rows) for one in given):
        tags = np.column_stack([one.labels.codes for one in given])
        warn_of_contradictions(classifier, rows, tags)


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
