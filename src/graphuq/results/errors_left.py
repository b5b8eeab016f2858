"""How many labels are wrong, by the posterior."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from graphuq.errors import IncompatibleParts, require
from graphuq.inference import Point
from graphuq.results.joint_draws import joint_draws
from graphuq.results.summaries.random_label import class_shares

if TYPE_CHECKING:
    from graphuq.results.result import Result

N_DRAWS = 500  # joint draws of the field, for the interval
MAX_NODES = 2_000  # unlabelled nodes in each draw; of more, a random sample
BLOCK_NODES = 200


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

    The expectation is ``Σ (1 − max p)``. The interval comes from joint draws of the field:
    labels of similar nodes are wrong together, so it is much wider than if nodes were
    independent. Both trust the model; `graphuq.acquisition.audited_errors` does not.

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
    if isinstance(result.answer, Point):
        raise IncompatibleParts(
            f"{result.answer.description} gives a point without uncertainty; use "
            'inference="expectation-propagation"'
        )
    p = result.probabilities
    free = np.flatnonzero(~np.isin(np.arange(len(p)), result.posterior.labelled))
    if len(free) == 0:
        return ErrorCount(0.0, 0.0, 0.0)
    expected = float((1 - p[free].max(axis=1)).sum())
    counts = _error_draws(result, free, p[free].argmax(axis=1))
    counts += expected - counts.mean()
    tails = [(1 - probability) / 2, (1 + probability) / 2]
    ends = np.quantile(counts, tails)
    lower, upper = np.clip([np.floor(ends[0]), np.ceil(ends[1])], 0, len(free))  # whole numbers
    return ErrorCount(expected, min(float(lower), expected), max(float(upper), expected))


def _error_draws(result: "Result", nodes: np.ndarray, codes: np.ndarray) -> Float[np.ndarray, " S"]:
    """Return the number of nodes whose class is not that of ``codes``, in joint draws."""
    rng, n_nodes = np.random.default_rng(0), len(nodes)
    if n_nodes > MAX_NODES:
        kept = rng.choice(n_nodes, MAX_NODES, replace=False)
        nodes, codes = nodes[kept], codes[kept]
    u = joint_draws(result.answer, result.posterior, nodes, N_DRAWS, rng)
    if u.shape[2] == 1:
        u = np.concatenate([-u, u], axis=2) / np.sqrt(2)
    shares = np.concatenate(
        [
            np.take_along_axis(
                class_shares(u[k : k + BLOCK_NODES], result.posterior.likelihood.link),
                codes[k : k + BLOCK_NODES, None, None],
                axis=2,
            )[:, :, 0]
            for k in range(0, len(nodes), BLOCK_NODES)
        ]
    )
    wrong = (rng.random(shares.shape) > shares).sum(axis=0)
    return np.asarray(wrong * (n_nodes / len(nodes)), dtype=np.float64)
