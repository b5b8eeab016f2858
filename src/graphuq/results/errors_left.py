"""How many labels are wrong, by the posterior."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import IncompatibleParts, require
from graphuq.inference import Point
from graphuq.results.joint_labels import (
    BLOCK_NODES,
    draws_that_lead,
    field_draws,
    in_order,
    with_noise,
)
from graphuq.results.summaries.base import slices
from graphuq.results.summaries.ordered import cuts

if TYPE_CHECKING:
    from graphuq.results.result import Result

N_DRAWS = 500  # joint draws of the field, for the interval
MAX_NODES = 2_000  # unlabelled nodes in each draw; of more, a random sample


class ErrorCount(NamedTuple):
    """Number of wrong labels.

    Attributes
    ----------
    expected : float
    lower, upper : float
        Ends of an interval that holds the number with the given probability.
    """

    expected: float
    lower: float
    upper: float


def expected_errors(result: "Result", probability: float = 0.9) -> ErrorCount:
    """Return how many unlabelled nodes probably have another class than their most probable.

    The expectation is ``Σ (1 − max p)``. The interval comes from joint draws of the field: labels
    of similar nodes are wrong together, so it is much wider than if nodes were independent. Where
    a few draws have so many errors that the mean is beyond the end of all others, the end is the
    mean of the draws beyond it. Both trust the model; `graphuq.acquisition.audited_errors` does
    not. The default model of `GraphClassifier` is about right, a single model is too cautious; see
    "When to stop" in docs/labelling.md.

    Parameters
    ----------
    result : Result
    probability : float, default 0.9
        Of the interval, in (0, 1).

    Returns
    -------
    ErrorCount
        ``expected``, ``lower`` and ``upper``.

    Raises
    ------
    InvalidInput
        If ``probability`` is not in (0, 1).
    IncompatibleParts
        If the result is a point, whose probabilities are all 0 or 1.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> y = np.full(200, -1)
    >>> y[:10] = moons.classes[:10]
    >>> classifier = gq.GraphClassifier(inference="expectation-propagation")
    >>> errors = gq.expected_errors(classifier.fit(moons.features, y).result_)
    >>> errors.lower <= errors.expected <= errors.upper
    True
    """
    require(0 < probability < 1, "probability", f"{probability!r}", "use a number in (0, 1)")
    refuse_point(result)
    p = result.probabilities
    free = np.flatnonzero(~np.isin(np.arange(len(p)), result.posterior.labelled))
    if len(free) == 0:
        return ErrorCount(0.0, 0.0, 0.0)
    expected = float((1 - p[free].max(axis=1)).sum())
    return ErrorCount(expected, *ends_around(expected, _error_draws(result, free), probability))


def expected_wrong_tags(
    results: Sequence["Result"], nodes: Int[np.ndarray, " n"], probability: float = 0.9
) -> ErrorCount:
    """Return how many tags of some nodes are probably wrong, all tags together.

    A tag is predicted if its probability is above 1/2. The expectation is the sum of
    ``min(p, 1 − p)``, and the interval comes from the joint draws of `expected_errors`: those of
    one tag are independent of those of another, as their posteriors are.

    Parameters
    ----------
    results : sequence of Result, length T
        One for each tag, of two classes and the same nodes.
    nodes : numpy.ndarray of int, shape (n,)
    probability : float, default 0.9
        Of the interval, in (0, 1).

    Raises
    ------
    IncompatibleParts
        If a result is a point.
    """
    rng, expected, counts = np.random.default_rng(0), 0.0, np.zeros(N_DRAWS)
    for result in results:
        refuse_point(result)
        if len(nodes):
            expected += float((1 - result.probabilities[nodes].max(axis=1)).sum())
            counts += rng.permutation(_error_draws(result, nodes))
    return ErrorCount(expected, *ends_around(expected, counts, probability))


def ends_around(
    mean: float, counts: Float[np.ndarray, " S"], probability: float
) -> tuple[float, float]:
    """Return the ends of an interval with equal tails, between which the mean lies.

    A few draws with very many errors can bring the mean beyond the end of all others. The end is
    then the mean of the draws beyond it.

    Parameters
    ----------
    mean : float
    counts : numpy.ndarray, shape (S,)
        Draws of a whole number, of this mean.
    probability : float
        Of the interval, in (0, 1).
    """
    ordered = np.sort(counts)
    n_beyond = max(1, round((1 - probability) / 2 * len(ordered)))  # draws of a tail
    lower, upper = np.quantile(ordered, [(1 - probability) / 2, (1 + probability) / 2])
    if lower > mean:
        lower = ordered[:n_beyond].mean()
    if upper < mean:
        upper = ordered[-n_beyond:].mean()
    return min(float(np.floor(lower)), mean), max(float(np.ceil(upper)), mean)


def refuse_point(result: "Result") -> None:
    """Raise `IncompatibleParts` if a result is a point."""
    if isinstance(result.answer, Point):
        raise IncompatibleParts(
            f"{result.answer.description} gives a point without uncertainty; use "
            'inference="expectation-propagation"'
        )


def _error_draws(result: "Result", nodes: Int[np.ndarray, " n"]) -> Float[np.ndarray, " S"]:
    """Return the number of nodes whose class is not the most probable one, in joint draws.

    They are those of `joint_labels`, without a choice between the other classes.
    """
    rng, p, n_nodes = np.random.default_rng(0), result.probabilities, len(nodes)
    expected = float((1 - p[nodes].max(axis=1)).sum())
    if len(nodes) > MAX_NODES:
        nodes = rng.choice(nodes, MAX_NODES, replace=False)
    wrong, counts = 1 - p[nodes].max(axis=1), np.zeros(N_DRAWS)
    if wrong.sum() == 0:
        return counts
    u, link = field_draws(result, nodes, N_DRAWS, rng)
    for part in slices(len(nodes), BLOCK_NODES):
        own, every = p[nodes[part]], np.ones(u[part].shape[:2], dtype=bool)
        noisy = with_noise(u[part], link, rng)
        if cuts(link):
            right = in_order(noisy, own, rng) == own.argmax(axis=1)[:, None]
        else:
            right = draws_that_lead(noisy, own.argmax(axis=1), own.max(axis=1), every, rng)
        counts += (~right).sum(axis=0)
    return np.minimum(counts * (expected / wrong.sum()), n_nodes)
