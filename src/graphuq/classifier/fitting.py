"""The fit of a classifier: graph, spectrum, posterior, inference.

This module imports JAX and all methods, `graphuq.classifier.classifier` does not. So a classifier
can be made, cloned and searched over before they are loaded.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from graphuq.classifier.given_graph import checked_rows, labels_of_names
from graphuq.classifier.options import (
    basis_of,
    build_graph,
    check_unused,
    check_words,
    method_of,
    model_of,
    seed_of,
)
from graphuq.classifier.training_labels import training_labels
from graphuq.classifier.types import Labels, Table
from graphuq.errors import require
from graphuq.inference import Approximation
from graphuq.posterior.posterior import Posterior
from graphuq.results.class_proportions import class_thresholds, shares_of
from graphuq.results.label_numbers import with_classes
from graphuq.run.infer import infer
from graphuq.run.stopping import default_rule
from graphuq.utils.progress import reporting

if TYPE_CHECKING:
    from graphuq.classifier.classifier import GraphClassifier


def fit_classifier(
    classifier: "GraphClassifier", X: Table | None, y: Labels, sample_weight: ArrayLike | None
) -> None:
    """Infer the class of every row; see `GraphClassifier.fit`."""
    check_words(
        classifier.graph, classifier.n_neighbors, classifier.n_eigenpairs, classifier.out_of_sample
    )
    model = model_of(classifier.model)  # raise for an unknown word before any work
    method = method_of(classifier.inference)
    check_unused(classifier, method)
    graph, X, n_rows = checked_rows(classifier, X)
    given = training_labels(
        labels_of_names(y, graph), n_rows, classifier.missing_label, sample_weight,
        classifier.max_classes,
    )  # fmt: skip
    labels = given.labels
    soft = labels.distributions is not None
    require(
        not (soft and classifier.class_proportions is not None),
        "class_proportions",
        f"{classifier.class_proportions!r} beside soft labels",
        "leave it out",
    )
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
            classifier.scale,
            classifier.metric,
            classifier.radius,
            report,
            getattr(classifier, "feature_names_in_", None),
        )
        basis = basis_of(
            classifier.graph_,
            classifier.laplacian,
            classifier.n_eigenpairs,
            classifier.tail_eigenvalue,
            model,
            report,
        )
    classifier.classes_ = given.classes
    selected = model.select(basis, labels)
    posterior = selected.posterior(basis, labels)
    classifier.model_ = selected.used(posterior)
    classifier._feature_space = classifier.graph_.feature_space
    classifier.withdrawn_ = np.arange(0)
    classifier._explore(posterior, method, shares, checkpoint=classifier.checkpoint)


def explore(
    classifier: "GraphClassifier",
    posterior: Posterior,
    method: Any,
    shares: Any = None,
    **more: Any,
) -> None:
    """Run inference, with more arguments of `infer`, and set the attributes of every row."""
    sampling: dict[str, Any] = {
        "n_samples": classifier.n_samples,
        "n_chains": classifier.n_chains,
        "n_warmup": classifier.n_warmup,
        "thin": classifier.thin,
        "precision": classifier.precision,
        "stop": default_rule(posterior) if classifier.until_converged else None,
        "progress": classifier.progress,
    }
    if method is None:
        sampling["on_first_result"] = _named_callback(classifier)
    arguments = {} if isinstance(method, Approximation) else sampling
    result = infer(posterior, method, seed=seed_of(classifier.random_state), **arguments, **more)
    classifier.result_ = with_classes(result, classifier.classes_)
    classifier._tuning = None if shares is None else class_thresholds(classifier.result_, shares)
    classifier._describe()


def _named_callback(classifier: "GraphClassifier") -> Any:
    """Return the callback ``on_first_result``, which receives a result with class names."""
    callback = classifier.on_first_result
    return callback and (lambda first: callback(with_classes(first, classifier.classes_)))
