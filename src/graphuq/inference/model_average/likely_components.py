"""Components of a mixture that the labels leave likely, found with as few labels as will do.

With many labels few components have any weight, and some labels tell which. The evidence of the
first labels of all components is compared, then that of twice as many, and so on. A component that
is far behind is left out. What n more labels add to the difference of two blocks has a deviation of
about √n nats. So the likeliest components of a block are kept until they are behind by more than
that, too.

How smooth and how noisy a field is, only several labels of a class tell. If all labels are of
different classes, the component with the most noise is the likeliest. So the first labels are of
some classes only, three of each. With 1,000 labels of 26 letters, first labels of all letters left
a component whose log evidence was 1,200 behind.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import softmax

from graphuq.inference.model_average.components import (
    EVIDENCE_TOLERANCE,
    MAX_SWEEPS,
    ROUGH_TOLERANCE,
    TOLERANCE,
    Component,
    Components,
    require_any,
)
from graphuq.inference.near_classes import are_many
from graphuq.inference.nested_start import StartingSites
from graphuq.posterior.posterior import Posterior

MANY_LABELS = 100  # more labels than this: only likely components are fitted to all of them, and
# draws of the average are nearly exact
N_CHECKED = 30  # labels that tell which components are out of the question
N_FIRST = 60  # labels that are compared next
A_CLASS = 3  # labels of each class that are compared; of many classes only some are compared first
BEHIND = 7.0  # log weight behind the largest, from which a component is left out
OF_BLOCK = 3.0  # the same behind the largest of a block that is behind others, at least
OF_BLOCK_SHARE = 0.2  # share of √n, for n labels to come, that it is if that is more
FAR_BEHIND = 10.0  # the same, given N_CHECKED labels
N_TRIED = 3  # last sweeps, by whose gain that of those to come is judged
SLACK = 2.0  # nats that these may add to the evidence beside twice that gain
KEPT, EARLIER = "_screened", "_earlier"  # names under which a posterior keeps what was found
MAX_GROWTH = 1.25  # factor of the labels, up to which no component is compared that these left out
ENOUGH_LABELS = 480  # labels that tell the likeliest component
ENOUGH_OF_MANY = 240  # the same for many classes, each of which tells the range again


class Earlier(NamedTuple):
    """What a fit to other labels left, from which the next one starts.

    Attributes
    ----------
    numbers : numpy.ndarray of int, shape (m,)
        Numbers of the components in the prior, the likeliest first.
    starts : list of StartingSites, length m
        Their sites at the labels that stay, in the order of the posterior.
    n_labels : int
        Labels of the last fit that compared all components.
    """

    numbers: Int[np.ndarray, " m"]
    starts: list[StartingSites]
    n_labels: int


class LikelyComponents(NamedTuple):
    """What is left of a mixture.

    Attributes
    ----------
    given : Components
        Those that are left, and all labels, in a random order.
    sites : list of LowRankSites, SharedSites, CoordinateSites or None
        Of each component, at all labels.
    log_weights : numpy.ndarray, shape (M,)
        Log of prior probability times evidence; −inf without a fixed point.
    order : numpy.ndarray of int, shape (J,)
        Places of these labels among those of the posterior.
    """

    given: Components
    sites: list[Any]
    log_weights: Float[np.ndarray, " M"]
    order: Int[np.ndarray, " J"]


def likely_components(posterior: Posterior, enough: int | None = None) -> LikelyComponents:
    """Return the components whose evidence is not far behind, fitted to all labels, or enough."""
    earlier: Earlier | None = vars(posterior).pop(EARLIER, None)
    if enough is not None or earlier is None:
        given, near = _near(posterior)
        found, n_compared = _compared(given, near.log_weights, enough), len(given.codes)
    else:
        vars(posterior).pop(KEPT, None)
        found, n_compared = _again(Components.of(posterior), earlier), earlier.n_labels
    if enough is None:
        order = np.argsort(-found.log_weights)
        sites = [found.sites[m] for m in order.tolist()]
        starts = [StartingSites(one.weights, one.shifts).in_order(found.order) for one in sites]
        vars(posterior)[EARLIER] = Earlier(found.given.numbers[order], starts, n_compared)
    return found


def keep_earlier(posterior: Posterior, before: Posterior, stays: Bool[np.ndarray, " j"]) -> None:
    """Let a posterior of other labels start from what is left of the same mixture.

    Parameters
    ----------
    posterior : Posterior
        Its first labels are those of ``before`` that stay.
    before : Posterior
        If it keeps nothing, has another mixture, or most of the labels are others, nothing happens.
    stays : numpy.ndarray of bool, shape (j,)
        Which labels of ``before`` stay.
    """
    own: Any = posterior.prior
    other: Any = before.prior
    known: Earlier | None = vars(before).get(EARLIER)
    if known is None or len(posterior.labels) > MAX_GROWTH * known.n_labels:
        return
    if stays.sum() < known.n_labels / MAX_GROWTH:
        return
    if own.components == other.components and own.blocks == other.blocks:
        starts = [StartingSites(one.weights[stays], one.shifts[stays]) for one in known.starts]
        vars(posterior)[EARLIER] = known._replace(starts=starts)


def _compared(
    given: Components, logs: Float[np.ndarray, " M"], enough: int | None
) -> LikelyComponents:
    """Compare all components, given their log weights by the first labels, in rounds."""
    if enough is not None:
        given, _ = some_of(given, enough)
    n_all, n_labels, n_classes = len(given.codes), min(N_FIRST, len(given.codes)), 0
    sites: list[Any] = []
    while True:
        tolerance = TOLERANCE if n_labels == n_all else ROUGH_TOLERANCE
        blocks, reach = given.blocks, float(np.sqrt(n_all - n_labels))
        few, order = some_of(given, n_labels)
        if few.n_classes != n_classes:  # the sites are of labels of fewer classes
            sites, n_classes = [None] * len(logs), few.n_classes
        sites, logs = _fitted(few, sites, np.argsort(-logs), tolerance, reach)
        require_any(logs)
        kept = likely_places(logs, blocks, BEHIND, reach)
        given, logs, sites = given.at(slice(None), kept), logs[kept], [sites[m] for m in kept]
        if n_labels == n_all:
            return LikelyComponents(few.at(slice(None), kept), sites, logs, order)
        n_labels = 2 * n_labels if 3 * n_labels < n_all else n_all


def _again(given: Components, earlier: Earlier) -> LikelyComponents:
    """Fit the components that are left of other labels to all labels."""
    starts = dict(zip(earlier.numbers.tolist(), earlier.starts, strict=True))
    given = given.at(slice(None), [m for m, n in enumerate(given.numbers) if n in starts])
    first = [starts[n] for n in given.numbers.tolist()]
    ranks = np.argsort([list(starts).index(n) for n in given.numbers.tolist()])
    sites, logs = _fitted(given, first, ranks, TOLERANCE, 0.0)
    require_any(logs)
    kept = likely_places(logs, given.blocks, BEHIND, 0.0)
    own = given.at(slice(None), kept)
    return LikelyComponents(own, [sites[m] for m in kept], logs[kept], np.arange(len(own.codes)))


def likeliest_component(posterior: Posterior) -> int:
    """Return the number of the component that 480 of the labels, or all, leave most probable.

    Of many classes 240 labels are enough.

    Components on a graph are many and each of them is improbable beforehand. So the sums of the
    probabilities of all components on a block are compared first.
    """
    many = are_many(len(posterior.labels), posterior.n_fields)
    found = likely_components(posterior, ENOUGH_OF_MANY if many else ENOUGH_LABELS)
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
    n_more : int
        Labels that are not looked at.
    """

    log_weights: Float[np.ndarray, " m"]
    numbers: Int[np.ndarray, " m"]
    fits: list[Component] | None
    n_more: int

    def near(self, blocks: Any) -> Int[np.ndarray, " k"]:
        """Return places of the components that these labels do not leave far behind."""
        return likely_places(self.log_weights, blocks, FAR_BEHIND, float(np.sqrt(self.n_more)))


def screened(posterior: Posterior) -> Screened:
    """Return the weight of each component given 30 of the labels, or all."""
    given, n_more = Components.of(posterior), max(0, len(posterior.labels) - N_CHECKED)
    if n_more:
        given, _ = some_of(given, N_CHECKED)
    fits = given.fit(ROUGH_TOLERANCE if n_more else EVIDENCE_TOLERANCE)
    logs = given.log_prior + [one.log_evidence for one in fits]
    known = logs if np.isfinite(logs).any() else given.log_prior
    return Screened(known, given.numbers, None if n_more else fits, n_more)


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
    vars(posterior)[KEPT] = Screened(found.log_weights[own], found.numbers[own], fits, found.n_more)


@contextmanager
def screened_for_two(posterior: Posterior) -> Iterator[None]:
    """Leave what `keep_screened` kept for another run after this one."""
    kept = vars(posterior).get(KEPT)
    yield
    if kept is not None:
        vars(posterior)[KEPT] = kept


def fits_of(posterior: Posterior) -> tuple[Components, list[Component]]:
    """Return components, and their fits to all labels; what `keep_screened` kept is used up.

    With more than 30 labels they are those that 30 of them do not leave far behind, and start from
    the sites of the likeliest, if it has a fixed point.
    """
    given, found = _near(posterior)
    if found.fits is not None:
        return given, found.fits
    [first] = given.at(slice(None), [found.log_weights.argmax()]).fit()
    return given, given.fit(start=first.sites if np.isfinite(first.log_evidence) else None)


def _near(posterior: Posterior) -> tuple[Components, Screened]:
    """Return `Screened.near` components, and their screening, which is used up if it was kept."""
    given = Components.of(posterior)
    kept: Screened | None = vars(posterior).pop(KEPT, None)
    found = screened(posterior) if kept is None else kept
    if found.fits is not None:
        return given, found
    given = given.at(slice(None), near := found.near(given.blocks))
    return given, Screened(found.log_weights[near], given.numbers, None, found.n_more)


def likely_places(
    logs: Float[np.ndarray, " M"], blocks: Any, behind: float, reach: float
) -> Int[np.ndarray, " m"]:
    """Return places of the components that are not far behind, and the best of blocks in reach."""
    least = logs.max() - behind
    kept = logs >= least
    for block in np.unique(blocks):
        own = blocks == block
        kept |= own & (logs >= _least_of_block(logs[own].max(), least, reach))
    return np.flatnonzero(kept)


def _least_of_block(largest: float, least: float, reach: float) -> float:
    """Return the least log weight of components of a block that are left; see `likely_places`."""
    return max(largest - max(OF_BLOCK, OF_BLOCK_SHARE * reach), least - reach)


def _fitted(
    some: Components,
    earlier: list[Any],
    order: Int[np.ndarray, " M"],
    tolerance: float,
    reach: float,
) -> tuple[list[Any], Float[np.ndarray, " M"]]:
    """Return the sites of the components, and log weights: −inf for those far behind.

    Each starts from its own given earlier labels, and at the other labels from the sites of the
    likeliest one of its block before it, or of another block. Sweeps end where those to come are
    not expected to bring the component into reach, as they add less and less to its evidence.
    """
    sites: list[Any] = [None] * len(order)
    logs, blocks = np.full(len(order), -np.inf), some.blocks
    for m in order.tolist():
        own = np.where(blocks == blocks[m], logs, -np.inf)
        start = earlier[m]
        if np.isfinite(own).any():
            other = sites[own.argmax()]
            start = other if start is None else StartingSites.before(start, other)
        elif start is None:
            start = sites[logs.argmax()]
        least = logs.max() - BEHIND
        bar = min(least, _least_of_block(own.max(), least, reach))
        found = _in_reach(some, m, tolerance, start, bar)
        if found is not None and found.converged:
            sites[m], logs[m] = found, float(some.log_prior[m]) + found.log_evidence
    return sites, logs


def _in_reach(some: Components, m: int, tolerance: float, start: Any, bar: float) -> Any:
    """Return the sites of a component, or None if its log weight is not expected to reach a bar."""
    from graphuq.inference.nested_answer import fit_quickest

    model = some.codes, some.n_classes, some.noise_std
    reach = _Reach(bar - float(some.log_prior[m]))
    try:
        found = fit_quickest(some.factor(m), *model, MAX_SWEEPS, tolerance, start, None, reach)
    except np.linalg.LinAlgError:
        return None
    return found


class _Reach:
    """Whether sweeps go on: the evidence is near a bar, or may come near."""

    def __init__(self, bar: float) -> None:
        self.bar, self._evidence = bar, list[float]()

    def __call__(self, log_evidence: float) -> bool:
        self._evidence.append(log_evidence)
        if len(self._evidence) < 2 * N_TRIED:
            return True
        gain = float(np.ptp(self._evidence[-1 - N_TRIED :]))  # it may swing
        return bool(log_evidence + 2 * gain + SLACK >= self.bar)


def some_of(given: Components, n: int) -> tuple[Components, Int[np.ndarray, " n"]]:
    """Return n labels, in a random order whose beginnings have the shares of all classes.

    They are of as many classes as have three on average, the commonest first, and of no others.

    Returns
    -------
    given : Components
    places : numpy.ndarray of int, shape (n,)
        Those of the labels.
    """
    codes, n_classes = given.codes, given.n_classes
    if n >= len(codes):
        places = stratified(codes)
        return given.at(places, slice(None)), places
    counts = np.bincount(codes, minlength=n_classes)
    commonest = np.random.default_rng(0).permutation(n_classes)
    commonest = commonest[np.argsort(-counts[commonest], kind="stable")]
    n_enough = 1 + int(np.searchsorted(np.cumsum(counts[commonest]), n))
    kept = np.sort(commonest[: max(2, n // A_CLASS, n_enough)])
    own = np.flatnonzero(np.isin(codes, kept))
    places = own[stratified(codes[own])[:n]]
    few = given.at(places, slice(None))
    return few._replace(codes=np.searchsorted(kept, few.codes), n_classes=len(kept)), places


def stratified(codes: Int[np.ndarray, " J"]) -> Int[np.ndarray, " J"]:
    """Return a random order of the labels, whose first ones have the shares of all classes."""
    rng, places = np.random.default_rng(0), np.empty(len(codes))
    for k in np.unique(codes):
        own = rng.permutation(np.flatnonzero(codes == k))
        places[own] = (np.arange(len(own)) + 0.5) / len(own)
    return np.argsort(places, kind="stable")
