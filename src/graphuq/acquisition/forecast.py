"""How many labels will be wrong after more labels: "label 30 more and expect …"."""

from typing import Any

import numpy as np

from graphuq.acquisition.base import Rule
from graphuq.acquisition.pool import Pool
from graphuq.acquisition.query import best_candidate, rule_of, unlabelled
from graphuq.errors import require
from graphuq.results.errors_left import ErrorCount
from graphuq.results.result import Result

N_SIMULATIONS = 20


def forecast_errors(
    result: Result,
    n: int = 30,
    rule: str | Rule = "auto",
    candidates: Any = None,
    probability: float = 0.9,
    n_simulations: int = N_SIMULATIONS,
    seed: int | np.random.Generator = 0,
) -> ErrorCount:
    """Return how many labels will probably be wrong after n more labels.

    Labels of the rows that the rule picks are simulated from the posterior, one by one, and the
    Gaussian is conditioned on each. The count is ``Σ (1 − max p)`` of the rows without a label.

    Parameters
    ----------
    result : Result
    n : int, default 30
        Number of further labels.
    rule : str or Rule, default "auto"
        See `query`.
    candidates : array_like of int, optional
        See `query`.
    probability : float, default 0.9
        Of the interval over simulations, in (0, 1).
    n_simulations : int, default 20
    seed : int or numpy.random.Generator, default 0

    Returns
    -------
    ErrorCount
        ``expected``, ``lower`` and ``upper``.

    Raises
    ------
    InvalidInput
        If an argument is out of range.
    IncompatibleParts
        If the result is a point, which has no uncertainty.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> y = np.full(200, -1)
    >>> y[:4] = moons.classes[:4]
    >>> classifier = gq.GraphClassifier(inference="expectation-propagation")
    >>> result = classifier.fit(moons.features, y).result_
    >>> later = gq.acquisition.forecast_errors(result, n=10)
    >>> later.expected < result.expected_errors().expected
    True
    """
    require(n >= 1, "n", f"{n!r}", "forecast 1 label or more")
    require(n_simulations >= 1, "n_simulations", f"{n_simulations!r}", "simulate once or more")
    require(0 < probability < 1, "probability", f"{probability!r}", "use a number in (0, 1)")
    chosen, rng = rule_of(rule), np.random.default_rng(seed)
    rows = unlabelled(result, candidates)
    n_free = result.n_nodes - len(result.posterior.labelled)
    if len(rows) == 0:
        return result.expected_errors(probability)
    first = Pool.of(result, rows, rng)
    counts = np.empty(n_simulations)
    for k in range(n_simulations):
        pool, n_left = first, n_free
        while n_left > n_free - n and len(pool.rows):
            at = best_candidate(chosen, pool)
            pool = pool.given(at, int(rng.choice(first.n_classes, p=pool.probabilities[at])))
            n_left -= 1
        errors = 1 - pool.target_probabilities.max(axis=1)
        counts[k] = n_free * errors.mean() if n_left > 0 else 0.0
    tails = [(1 - probability) / 2, (1 + probability) / 2]
    return ErrorCount(float(counts.mean()), *map(float, np.quantile(counts, tails)))
