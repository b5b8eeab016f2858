"""Probabilities of the components of a mixture, given the labels."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from graphuq.inference.model_average.class_shares import ClassShares
from graphuq.inference.model_average.component_chains import tolerances
from graphuq.inference.model_average.likely_components import MANY_LABELS, likely_components
from graphuq.inference.model_average.proposals import Proposals
from graphuq.inference.nested_start import StartingSites
from graphuq.posterior.posterior import Posterior

MIN_WEIGHT = 1e-3  # share of the likeliest component, from which an evidence is corrected
# Parts of the posterior over components on graphs, each with one component. With 30 Gaussians the
# probabilities of a broad posterior were off by 0.007, and with 100 by 0.002 (root mean square).
N_SAMPLED, N_APPROXIMATED = 30, 100
MIN_BLOCK = 0.01  # share of a block, or of a function of its block, from which it has a part


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
    starts : list of StartingSites, length m
        Sites of expectation propagation of each component.
    """

    numbers: Int[np.ndarray, " m"]
    log_weights: Float[np.ndarray, " m"]
    log_evidence: float
    shares: ClassShares | None
    starts: list[StartingSites]


def component_weights(
    posterior: Posterior, seed: int, corrected: bool, n_strata: int
) -> ComponentWeights:
    """Return components that stand for so many strata of the posterior over components.

    The evidence of each is that of expectation propagation. With ``corrected``, for two classes and
    up to 100 labels, importance sampling corrects it.
    """
    shares = ClassShares.of(posterior)
    if len(posterior.labels) > MANY_LABELS:
        given, sites, logs, order = likely_components(posterior)
        numbers = given.numbers
    else:
        found = Proposals(posterior)
        numbers, logs = found.numbers, found.log_weights.copy()
        sites, order = [one.sites for one in found.components], np.arange(len(found.codes))
        if corrected and found.binary:
            kept = np.flatnonzero(logs >= logs.max() + np.log(MIN_WEIGHT))
            for m, bound in zip(kept.tolist(), tolerances(logs[kept]), strict=True):
                rng = np.random.default_rng([seed, int(numbers[m]), 1])
                logs[m] += found.correction(rng, m, bound)[0]
    total = float(np.logaddexp.reduce(logs))
    kept, weights = _strata(posterior.prior, numbers, softmax(logs), n_strata)
    starts = [
        StartingSites(sites[m].weights, sites[m].shifts).in_order(order) for m in kept.tolist()
    ]
    return ComponentWeights(numbers[kept], np.log(weights), total, shares, starts)


def _strata(
    mixture: Any, numbers: Int[np.ndarray, " m"], probability: Float[np.ndarray, " m"], most: int
) -> tuple[Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return places of components that stand for all of them, and their weights.

    The few components of a block of functions stand for themselves. Those on a graph are put in an
    order in which neighbours are alike, and each stands for its stratum.
    """
    blocks = np.array(mixture.blocks)[numbers]
    places, weights = [], []
    for block in dict.fromkeys(blocks.tolist()):
        own = np.flatnonzero(blocks == block)
        share = probability[own].sum()
        if share < MIN_BLOCK:
            continue
        if mixture.on_features[numbers[own]].all():
            kept = own[probability[own] >= MIN_BLOCK * share]
            found = probability[kept] / probability[kept].sum()
        else:
            own = own[_back_and_forth([_numbers_of(mixture.components[m]) for m in numbers[own]])]
            n_strata = max(1, round(most * share))
            points = share * (np.arange(n_strata) + 0.5) / n_strata
            at = np.searchsorted(np.cumsum(probability[own]), points).clip(max=len(own) - 1)
            chosen, counts = np.unique(at, return_counts=True)
            kept, found = own[chosen], counts / n_strata
        places.append(kept)
        weights.append(share * found)
    total = np.concatenate(weights)
    return np.concatenate(places), total / total.sum()


def _numbers_of(terms: Any) -> list[float]:
    """Return what tells components apart: constants, scales, and numbers of the priors."""
    priors = [term.prior for term in terms if term.prior is not None]
    constants = [float(bool(prior.include_constant)) for prior in priors]
    values = [
        float(value)
        for prior in priors
        for field in dataclasses.fields(prior)
        if isinstance(value := getattr(prior, field.name), int | float)
        and not isinstance(value, bool)
    ]
    return [*constants, *(term.scale for term in terms), *values]


def _back_and_forth(rows: list[list[float]]) -> Int[np.ndarray, " m"]:
    """Return the order of rows by their numbers, in which few numbers change from one to the next.

    The second number rises where the first has an even rank, and falls otherwise, and so on. Rows
    that lack numbers which others have are taken in the order of their first one.
    """
    n_numbers = min(len(row) for row in rows)
    place = np.zeros(len(rows), dtype=np.int64)
    for k in range(n_numbers):
        values, rank = np.unique([row[k] for row in rows], return_inverse=True)
        rank = np.where(place % 2 == 0, rank, len(values) - 1 - rank)
        place = np.unique(place * len(values) + rank, return_inverse=True)[1]
    return np.argsort(place, kind="stable")
