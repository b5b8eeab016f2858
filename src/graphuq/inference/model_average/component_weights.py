"""Probabilities of the components of a mixture, given the labels."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from graphuq.inference.model_average.class_shares import ClassShares
from graphuq.inference.model_average.component_chains import tolerances
from graphuq.inference.model_average.components import Components
from graphuq.inference.model_average.likely_components import likely_components
from graphuq.inference.model_average.proposals import Proposals
from graphuq.posterior.posterior import Posterior

MANY_LABELS = 100  # more labels than this: only likely components are fitted to all of them
MIN_WEIGHT = 1e-3  # share of the likeliest component, from which an evidence is corrected
N_STRATA = 20  # equal parts of the posterior over components, each with one component


class ComponentWeights(NamedTuple):
    """Components that stand for the posterior over all of them.

    Attributes
    ----------
    numbers : numpy.ndarray of int, shape (m,)
        Their numbers in the prior.
    log_weights : numpy.ndarray, shape (m,)
        Log probabilities, without class shares; they add up to 1.
    log_evidence : float
        Estimate of ``log p(y)``.
    shares : ClassShares or None
        Weights of fields for labels that were drawn class by class.
    """

    numbers: Int[np.ndarray, " m"]
    log_weights: Float[np.ndarray, " m"]
    log_evidence: float
    shares: ClassShares | None


def component_weights(posterior: Posterior, seed: int, corrected: bool) -> ComponentWeights:
    """Return up to 20 components, which stand for strata of the posterior over components.

    The evidence of each is that of expectation propagation. With ``corrected``, for two classes and
    up to 100 labels, importance sampling corrects it.
    """
    shares = ClassShares.of(posterior)
    if len(posterior.labels) > MANY_LABELS:
        given, _, logs = likely_components(Components.of(posterior))
        numbers = given.numbers
    else:
        found = Proposals(posterior)
        numbers, logs = found.numbers, found.log_weights.copy()
        if corrected and found.binary:
            kept = np.flatnonzero(logs >= logs.max() + np.log(MIN_WEIGHT))
            for m, bound in zip(kept.tolist(), tolerances(logs[kept]), strict=True):
                logs[m] += found.correction(np.random.default_rng([seed, m, 1]), m, bound)[0]
    total = float(np.logaddexp.reduce(logs))
    # Neighbours in the order of the prior are alike, so that each stands for its stratum.
    points = (np.arange(N_STRATA) + 0.5) / N_STRATA
    places = np.searchsorted(np.cumsum(softmax(logs)), points).clip(max=len(logs) - 1)
    kept, counts = np.unique(places, return_counts=True)
    return ComponentWeights(numbers[kept], np.log(counts / N_STRATA), total, shares)
