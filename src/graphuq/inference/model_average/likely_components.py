"""Components of a mixture that the labels leave likely, found with as few labels as will do.

With many labels few components have any weight, and some labels tell which. The evidence of the
first labels of all components is compared, then that of twice as many, and so on. A component that
is far behind is left out.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from graphuq.inference.model_average.components import Component, Components, require_any
from graphuq.posterior.posterior import Posterior

N_FIRST = 60  # labels that are compared first
N_CHECKED = 30  # labels that tell which components are out of the question
BEHIND = 8.0  # log weight behind the largest, from which a component is left out
FAR_BEHIND = 10.0  # the same, given N_CHECKED labels
KEPT = "_screened"  # name under which a posterior keeps what was found
MAX_SWEEPS, TOLERANCE = 100, 1e-3  # of expectation propagation, as `nested_sites` has them
ENOUGH_LABELS = 480  # labels that tell the likeliest component


class LikelyComponents(NamedTuple):
    """What is left of a mixture.

    Attributes
    ----------
    given : Components
        Those that are left, and all labels, in a random order.
    sites : list of LowRankSites or None
        Of each component, at all labels.
    log_weights : numpy.ndarray, shape (M,)
        Log of prior probability times evidence; −inf without a fixed point.
    """

    given: Components
    sites: list[Any]
    log_weights: Float[np.ndarray, " M"]


def likely_components(posterior: Posterior, enough: int | None = None) -> LikelyComponents:
    """Return the components whose evidence is not far behind, fitted to all labels, or enough."""
    given, _ = _near(posterior)
    given = given.at(stratified(given.codes)[:enough], slice(None))
    n_all, n_labels = len(given.codes), min(N_FIRST, len(given.codes))
    sites: list[Any] = [None] * len(given.stds)
    while True:
        sites = _fitted(given.at(slice(n_labels), slice(None)), sites)
        logs = given.log_prior + [-np.inf if one is None else one.log_evidence for one in sites]
        require_any(logs)
        if n_labels == n_all:
            return LikelyComponents(given, sites, logs)
        kept = np.flatnonzero(logs >= logs.max() - BEHIND)
        given, sites = given.at(slice(None), kept), [sites[m] for m in kept]
        n_labels = 2 * n_labels if 3 * n_labels < n_all else n_all


def likeliest_component(posterior: Posterior) -> int:
    """Return the number of the component that 480 of the labels, or all, leave most probable.

    Components on a graph are many and each of them is improbable beforehand. So the sums of the
    probabilities of all components on a block are compared first.
    """
    found = likely_components(posterior, ENOUGH_LABELS)
    return likeliest_of_block(posterior, found.given.numbers, softmax(found.log_weights))


def likeliest_of_block(
    posterior: Posterior, numbers: Int[np.ndarray, " m"], probability: Float[np.ndarray, " m"]
) -> int:
    """Return the most probable component on the block whose components are the most probable."""
    prior: Any = posterior.prior
    block = np.array(prior.blocks)[numbers]
    names, place = np.unique(block, return_inverse=True)
    best = np.bincount(place, probability).argmax()
    return int(numbers[np.where(block == names[best], probability, -1.0).argmax()])


class Screened(NamedTuple):
    """What some of the labels say of the components of positive probability.

    Attributes
    ----------
    log_weights : numpy.ndarray, shape (m,)
        Log of prior probability times evidence of 30 of the labels, or all; −inf without a fixed
        point of expectation propagation. Without any fixed point, of the prior probability.
    numbers : numpy.ndarray of int, shape (m,)
        Numbers of the components in the prior.
    fits : list of Component or None
        Their fits, if these are to all labels.
    """

    log_weights: Float[np.ndarray, " m"]
    numbers: Int[np.ndarray, " m"]
    fits: list[Component] | None


def screened(posterior: Posterior) -> Screened:
    """Return the weight of each component given 30 of the labels, or all."""
    given, few = Components.of(posterior), len(posterior.labels) <= N_CHECKED
    if not few:
        given = given.at(stratified(given.codes)[:N_CHECKED], slice(None))
    fits = given.fit()
    logs = given.log_prior + [one.log_evidence for one in fits]
    known = logs if np.isfinite(logs).any() else given.log_prior
    return Screened(known, given.numbers, fits if few else None)


def keep_screened(
    posterior: Posterior, found: Screened, blocks: Any, columns: Int[np.ndarray, " l"]
) -> None:
    """Keep what is screened for `fits_of` a posterior, which may be on some of the blocks alone.

    Parameters
    ----------
    posterior : Posterior
        On the basis of the screening, or on some of its blocks.
    found : Screened
        For the same labels.
    blocks : numpy.ndarray of str, shape (m,)
        Block of each component.
    columns : numpy.ndarray of int, shape (l,)
        Places of the columns of the posterior among those of the screening.
    """
    prior: Any = posterior.prior
    own = np.flatnonzero(np.isin(blocks, prior.blocks))
    fits = found.fits and [
        found.fits[m]._replace(
            std=found.fits[m].std[columns], factor=found.fits[m].factor[:, columns]
        )
        for m in own
    ]
    vars(posterior)[KEPT] = Screened(found.log_weights[own], found.numbers[own], fits)


def fits_of(posterior: Posterior) -> tuple[Components, list[Component]]:
    """Return components, and their fits to all labels; what `keep_screened` kept is used up.

    With more than 30 labels they are those that 30 of them do not leave far behind.
    """
    given, fits = _near(posterior)
    return given, given.fit() if fits is None else fits


def _near(posterior: Posterior) -> tuple[Components, list[Component] | None]:
    """Return the components that 30 labels do not leave far behind, and fits if these are all."""
    given = Components.of(posterior)
    found: Screened = vars(posterior).pop(KEPT, None) or screened(posterior)
    if found.fits is not None:
        return given, found.fits
    near = found.log_weights >= found.log_weights.max() - FAR_BEHIND
    return given.at(slice(None), near), None


def _fitted(some: Components, starts: list[Any]) -> list[Any]:
    """Return the sites of each component, or None where they have no fixed point."""
    from graphuq.inference.nested_low_rank import fit_low_rank_sites

    if len(some.codes) <= N_FIRST:
        sites: list[Any] = [one.sites for one in some.fit()]
    else:
        settings = some.codes, some.n_classes, some.noise_std, MAX_SWEEPS, TOLERANCE
        sites = []
        for m, start in enumerate(starts):
            try:
                sites.append(fit_low_rank_sites(some.factor(m), *settings, start))
            except np.linalg.LinAlgError:
                sites.append(None)
    return [one if one and one.converged else None for one in sites]


def stratified(codes: Int[np.ndarray, " J"]) -> Int[np.ndarray, " J"]:
    """Return a random order of the labels, whose first ones have the shares of all classes."""
    rng, places = np.random.default_rng(0), np.empty(len(codes))
    for k in np.unique(codes):
        own = rng.permutation(np.flatnonzero(codes == k))
        places[own] = (np.arange(len(own)) + 0.5) / len(own)
    return np.argsort(places, kind="stable")
