"""The rows to label next."""

from typing import Any

import numpy as np
from jaxtyping import Int

from graphuq.acquisition.base import Rule
from graphuq.acquisition.entropy import Entropy
from graphuq.acquisition.expected_error_reduction import ExpectedErrorReduction
from graphuq.acquisition.margin import Margin
from graphuq.acquisition.model_change import ModelChange
from graphuq.acquisition.mutual_information import MutualInformation
from graphuq.acquisition.pool import Pool, is_unlabelled
from graphuq.acquisition.random import Random
from graphuq.acquisition.sigma_optimality import SigmaOptimality
from graphuq.acquisition.stochastic_margin import StochasticMargin
from graphuq.acquisition.v_optimality import VOptimality
from graphuq.acquisition.variance_reduction import VarianceReduction
from graphuq.errors import InvalidInput, require
from graphuq.results.result import Result
from graphuq.utils.checks import array_of, describe
from graphuq.utils.expressions import built, classes_by_name, is_expression

RULES: dict[str, type] = {
    "auto": StochasticMargin,
    "stochastic-margin": StochasticMargin,
    "margin": Margin,
    "entropy": Entropy,
    "mutual-information": MutualInformation,
    "variance-reduction": VarianceReduction,
    "v-optimality": VOptimality,
    "sigma-optimality": SigmaOptimality,
    "expected-error-reduction": ExpectedErrorReduction,
    "model-change": ModelChange,
    "random": Random,
}


def query(
    result: Result,
    n: int = 10,
    rule: str | Rule = "auto",
    candidates: Any = None,
    rng: int | np.random.Generator = 0,
) -> Int[np.ndarray, " n"]:
    """Return rows to label next, the most useful first.

    Parameters
    ----------
    result : Result
    n : int, default 10
        Number of rows. There are fewer if fewer candidates are unlabelled.
    rule : str or Rule, default "auto"
        A name in `graphuq.acquisition.RULES`: "stochastic-margin", which is "auto", "margin",
        "entropy", "mutual-information", "variance-reduction", "v-optimality", "sigma-optimality",
        "expected-error-reduction", "model-change" or "random"; or any object with a method
        ``scores``, see `Rule`. A class derived from `Rule` may also be named in text, as in
        ``"MyRule(weight=2)"``.
    candidates : array_like of int, optional
        Rows to choose from; labelled rows among them are left out. By default all rows.
    rng : int or numpy.random.Generator, default 0
        Breaks ties, and chooses the rows that stand for all in large data.

    Returns
    -------
    numpy.ndarray of int, shape (n,)
        After each row, the posterior is conditioned as if that row were labelled, so that the
        rows of a batch do not repeat each other.

    Raises
    ------
    InvalidInput
        If ``n`` is not positive, the rule is unknown, or a candidate does not exist.
    IncompatibleParts
        If the result is a point, which has no uncertainty.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(moons.features), n_eigenpairs=20)
    >>> posterior = gq.Posterior(spectrum, gq.priors.Matern(), gq.likelihoods.Probit(),
    ...                          labelled=[0, 199], labels=[-1, 1])
    >>> result = gq.infer(posterior, "expectation-propagation")
    >>> len(gq.acquisition.query(result, n=5))
    5
    """
    require(n >= 1, "n", f"{n!r}", "ask for 1 row or more")
    chosen, rng = rule_of(rule), np.random.default_rng(rng)
    rows = unlabelled(result, candidates)
    picks: list[int] = []
    if len(rows) == 0:
        return rows
    pool = Pool.of(result, rows, rng)
    while len(picks) < n and len(pool.rows):
        best = best_candidate(chosen, pool)
        picks.append(int(pool.rows[best]))
        if len(picks) < n:
            pool = pool.given(best)
    return np.array(picks, dtype=np.int64)


def best_candidate(rule: Rule, pool: Pool) -> int:
    """Return the position of the candidate with the largest score; ties are broken at random.

    Raises
    ------
    InvalidInput
        If the rule does not return one number for each candidate.
    """
    scores = np.asarray(rule.scores(pool), dtype=np.float64)
    require(
        scores.shape == pool.rows.shape and not np.isnan(scores).any(),
        "rule",
        f"{rule!r} returned scores of shape {scores.shape} for {len(pool.rows)} candidates",
        "return one number, not NaN, for each of pool.rows",
    )
    return int(pool.rng.choice(np.flatnonzero(scores == scores.max())))


def rule_of(rule: str | Rule) -> Rule:
    """Return the rule of a name or of text as in Python, or the given one."""
    if is_expression(rule):
        kinds = classes_by_name((*RULES.values(), *Rule.__subclasses__()), "rule")
        rule = built(str(rule), kinds, "rule")
    if isinstance(rule, str):
        require(rule in RULES, "rule", f"{rule!r} is unknown", f"use one of {', '.join(RULES)}")
        made: Rule = RULES[rule]()
        return made
    if not isinstance(rule, Rule):
        raise InvalidInput("rule", f"a {type(rule).__name__}", "give an object with scores(pool)")
    return rule


def unlabelled(result: Result, candidates: Any = None) -> Int[np.ndarray, " M"]:
    """Return the candidates that have no label, in ascending order.

    Raises
    ------
    InvalidInput
        If a candidate does not exist.
    """
    rows = np.arange(len(result.has_evidence))
    if candidates is not None:
        given = array_of(candidates, "candidates", "give row numbers")
        whole = given.ndim == 1 and (given.dtype.kind in "iu" or given.size == 0)
        require(whole, "candidates", describe(given), "give row numbers")
        rows = np.unique(given.astype(np.int64))
        outside = rows[(rows < 0) | (rows >= len(result.has_evidence))]
        require(
            len(outside) == 0,
            "candidates",
            f"row {outside[:1].tolist()} does not exist",
            f"use rows from 0 to {len(result.has_evidence) - 1}",
        )
    return rows[is_unlabelled(result)[rows]]
