"""What an update keeps of the fit before: the model, and the sites from which it starts."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Int

from graphuq.classifier.class_order import is_ordered
from graphuq.classifier.options import model_of
from graphuq.inference import (
    MCMC,
    Approximation,
    ExpectationPropagation,
    GaussianApproximation,
)
from graphuq.inference.model_average import keep_earlier
from graphuq.models import Labels
from graphuq.models.base import eigenpairs_of
from graphuq.models.few_variables import has_same_few
from graphuq.posterior.posterior import Posterior
from graphuq.run.words import inference_from
from graphuq.spectrum import Basis

if TYPE_CHECKING:
    from graphuq.classifier.classifier import GraphClassifier

UPDATE_TOLERANCE = 1e-3  # of means at the labels, in standard deviations, after labels were added


def inference_of_update(own: Any, given: Any) -> MCMC | Approximation:
    """Return the inference of an update.

    Parameters
    ----------
    own : object
        Parameter ``inference`` of the classifier.
    given : object
        That of the update. None: expectation propagation. "auto": as `GraphClassifier.fit`
        samples, with its settings.
    """
    if given is None:
        return ExpectationPropagation(tolerance=UPDATE_TOLERANCE)
    if isinstance(given, str) and given == "auto":
        found = inference_from(own)
        return found.of_a_further_run() if isinstance(found, MCMC) else MCMC()
    return inference_from(given)


def warm_started(
    classifier: "GraphClassifier",
    posterior: Posterior,
    classes: np.ndarray,
    codes: Int[np.ndarray, " J"],
    rows: Int[np.ndarray, " M"],
    method: Any,
) -> tuple[Posterior, GaussianApproximation | None]:
    """Return the posterior of an update, and the answer from which it starts.

    A weighted set, and one with experts, is made again by its model, and starts from the components
    that were likely; another posterior keeps its hyperparameters.

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
    if posterior.is_weighted or classifier.result_.posterior.experts:
        labels = Labels(
            posterior.labelled,
            codes,
            len(classes),
            posterior.label_weights,
            ordered=is_ordered(classifier.ordered),
            rows_were_chosen=bool(np.isin(posterior.labelled, classifier._queried).any()),
        )
        basis = _with_all_blocks(classifier, posterior.spectrum)
        made = model_of(classifier.model).posterior(basis, labels)
        before = classifier.result_.posterior
        same = np.array_equal(classes, classifier.classes_)
        if made.is_weighted and same and has_same_few(made.spectrum, before.spectrum):
            keep_earlier(made, before, ~np.isin(before.labelled, rows))
        return made, None
    answer, known = classifier.result_.answer, classifier.result_.posterior.labelled
    if not isinstance(method, Approximation) or method.unused_arguments(["start"]):
        return posterior, None
    if not np.array_equal(classes, classifier.classes_):
        return posterior, None
    return posterior, sites_of(answer, ~np.isin(known, rows))


def _with_all_blocks(classifier: "GraphClassifier", basis: Any) -> Any:
    """Return the basis with blocks that fewer labels left out, which are kept for the next time."""
    kept = vars(classifier).get("_basis")
    if kept is None or kept.n_nodes != basis.n_nodes:
        space = classifier._feature_space
        if space is None or not space.makes_edges:  # a file holds no graph to smooth features over
            return basis
        own = {block.name: block for block in basis.blocks}
        features = space.rows_of_nodes(basis.n_nodes)
        kept = Basis(eigenpairs_of(basis)).with_functions(features)
        blocks = tuple(own.get(block.name, block) for block in kept.blocks)
        kept = classifier._basis = dataclasses.replace(kept, blocks=blocks)
    return kept


def sites_of(answer: Any, kept: Bool[np.ndarray, " J"]) -> GaussianApproximation | None:
    """Return a Gaussian with the sites of the labels that are kept, or None if it has none."""
    if not isinstance(answer, GaussianApproximation):
        return None
    if answer.class_weights is not None:
        weights, shift = answer.class_weights[kept], answer.class_shift[kept]
        return answer._replace(class_weights=weights, class_shift=shift)
    return None if answer.sites is None else answer._replace(sites=answer.sites[:, kept])
