"""How many labels will be wrong after more labels: "label 30 more and expect …"."""

from typing import Any

import numpy as np

from graphuq.acquisition.base import Rule
from graphuq.acquisition.pool import Pool
from graphuq.acquisition.query import best_candidate, rule_of, unlabelled
from graphuq.errors import require
from graphuq.results.errors_left import ErrorCount, ends_around, expected_errors
from graphuq.results.joint_labels import joint_labels
from graphuq.results.result import Result

N_SIMULATIONS = 20


def forecast_errors(
    result: Result,
    n: int = 30,
    rule: str | Rule = "auto",
    candidates: Any = None,
    probability: float = 0.9,
    n_simulations: int = N_SIMULATIONS,
    rng: int | np.random.Generator = 0,
) -> ErrorCount:
    """Return how many labels will probably be wrong after n more labels.

    In each simulation the labels of all rows are drawn from the posterior together. The rule picks
    rows one by one, the Gaussian is conditioned on each label, and wrong predictions are counted
    at the end. The expectation is that of ``Σ (1 − max p)`` of the rows without a label. Both
    trust the model, see `graphuq.acquisition.audited_errors`.

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
        Of the interval, in (0, 1).
    n_simulations : int, default 20
    rng : int or numpy.random.Generator, default 0

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
    >>> later.expected < gq.expected_errors(result).expected
    True
    """
    require(n >= 1, "n", f"{n!r}", "forecast 1 label or more")
    require(n_simulations >= 1, "n_simulations", f"{n_simulations!r}", "simulate once or more")
    require(0 < probability < 1, "probability", f"{probability!r}", "use a number in (0, 1)")
    chosen, rng = rule_of(rule), np.random.default_rng(rng)
    rows = unlabelled(result, candidates)
    n_free = len(result.has_evidence) - len(result.posterior.labelled)
    if len(rows) == 0:
        return expected_errors(result, probability)
    first = Pool.of(result, rows, rng)
    nodes, place = np.unique(np.append(first.rows, first.target_rows), return_inverse=True)
    labels = joint_labels(result, nodes, n_simulations, rng)[place]
    of_row = dict(zip(first.rows.tolist(), labels[: len(first.rows)], strict=True))
    truth = labels[len(first.rows) :]
    expected, counts = np.empty((2, n_simulations))
    for k in range(n_simulations):
        pool, n_left = first, n_free
        while n_left > n_free - n and len(pool.rows):
            at = best_candidate(chosen, pool)
            pool, n_left = pool.given(at, int(of_row[int(pool.rows[at])][k])), n_left - 1
        p = pool.target_probabilities
        expected[k] = n_free * (1 - p.max(axis=1)).mean() if n_left > 0 else 0.0
        counts[k] = n_free * (p.argmax(axis=1) != truth[:, k]).mean()
    mean = float(expected.mean())
    return ErrorCount(mean, *ends_around(mean, counts, probability))
