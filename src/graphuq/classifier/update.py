"""What an update keeps of the fit before: the model, and the sites from which it starts."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Int

from graphuq.classifier.options import posterior_of_learnt_models
from graphuq.inference import Approximation, ExpectationPropagation, GaussianApproximation
from graphuq.inference.model_average import likeliest_of_kind
from graphuq.posterior.posterior import Posterior

if TYPE_CHECKING:
    from graphuq.classifier.classifier import GraphClassifier

UPDATE_TOLERANCE = 1e-3  # of means at the labels, in standard deviations, after labels were added


def quick_method() -> ExpectationPropagation:
    """Return the default of `GraphClassifier.add_labels`."""
    return ExpectationPropagation(tolerance=UPDATE_TOLERANCE)


def continued(
    classifier: "GraphClassifier",
    posterior: Posterior,
    classes: np.ndarray,
    codes: Int[np.ndarray, " J"],
    rows: Int[np.ndarray, " M"],
    method: Any,
) -> tuple[Posterior, GaussianApproximation | None]:
    """Return the posterior of an update, and the answer from whose sites it starts.

    An approximation of an average over models is that of the most probable model. A sampler
    averages again.

    Parameters
    ----------
    classifier : GraphClassifier
        As the fit or the last update left it.
    posterior : Posterior
        With changed labels: those that stay come first.
    classes : numpy.ndarray, shape (K,)
        Names of its classes.
    codes : numpy.ndarray of int, shape (J,)
        Classes of its labels, from 0.
    rows : numpy.ndarray of int, shape (M,)
        Rows whose labels changed.
    method : Sampler, Approximation or None
    """
    answer, known = classifier.result_.answer, classifier.result_.posterior.labelled
    if isinstance(method, Approximation):
        if posterior.prior.is_mixture and posterior.learnt:
            return with_likeliest_component(posterior, answer), None
        if method.unused_arguments(["start"]) or not np.array_equal(classes, classifier.classes_):
            return posterior, None
        return posterior, sites_of(answer, ~np.isin(known, rows))
    if posterior.prior.is_mixture:
        basis, labelled = posterior.spectrum, posterior.labelled
        weights, space = posterior.label_weights, classifier._feature_space
        again = posterior_of_learnt_models(
            classifier, method, basis, labelled, codes, weights, space
        )
        posterior = posterior if again is None else again
    return posterior, None


def with_likeliest_component(posterior: Posterior, answer: Any) -> Posterior:
    """Return the posterior with the component of its mixture of priors that most draws have.

    It is on the graph or on features, as most draws are.
    """
    numbers, counts = np.unique(answer.hyperparameters["model"].astype(int), return_counts=True)
    mixture: Any = posterior.prior
    likeliest = likeliest_of_kind(posterior, numbers, counts.astype(float))
    return dataclasses.replace(posterior, prior=mixture.component(likeliest))


def sites_of(answer: Any, kept: Bool[np.ndarray, " J"]) -> GaussianApproximation | None:
    """Return a Gaussian with the sites of the labels that are kept, or None if it has none."""
    if not isinstance(answer, GaussianApproximation):
        return None
    if answer.class_precision is not None:
        precision, shift = answer.class_precision[kept], answer.class_shift[kept]
        return answer._replace(class_precision=precision, class_shift=shift)
    return None if answer.sites is None else answer._replace(sites=answer.sites[:, kept])
