"""The rows to label next where each row has several labels: tags that it has or not."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.acquisition.margin import Margin
from graphuq.acquisition.pool import MAX_ROWS, Pool
from graphuq.acquisition.query import best_candidate, rule_of, unlabelled
from graphuq.acquisition.stochastic_margin import StochasticMargin
from graphuq.errors import require
from graphuq.results.label_numbers import margin
from graphuq.results.result import Result


def query_tags(
    results: Sequence[Result],
    n: int = 10,
    rule: Any = "auto",
    candidates: Any = None,
    rng: int | np.random.Generator = 0,
) -> Int[np.ndarray, " n"]:
    """Return rows whose tags are most useful to know, the most useful first.

    Somebody who labels a row says of each tag whether the row has it. So a row has the sum of the
    scores of all tags, or for `StochasticMargin` the mean of their doubts ``1 − (p₁ − p₂)``.

    Parameters
    ----------
    results : sequence of Result, length T
        One for each tag, on the same nodes.
    n : int, default 10
    rule : str or Rule, default "auto"
        As for `graphuq.acquisition.query`.
    candidates : array_like of int, optional
        Rows to choose from. Rows in which all tags are known are left out, and rows in which some
        are as long as there are others.
    rng : int or numpy.random.Generator, default 0

    Returns
    -------
    numpy.ndarray of int, shape (n,)

    Raises
    ------
    InvalidInput, IncompatibleParts
        As `graphuq.acquisition.query`.
    """
    require(n >= 1, "n", f"{n!r}", "ask for 1 row or more")
    chosen, rng = rule_of(rule), np.random.default_rng(rng)
    free = [unlabelled(result, candidates) for result in results]
    rows = free[0]
    for more in free[1:]:
        rows = np.intersect1d(rows, more)
    if len(rows) == 0:
        rows = np.unique(np.concatenate(free))
    if len(rows) == 0:
        return rows
    kept, stands_for = _screened(results, rows, rng)
    pools = [Pool.of(result, kept, rng) for result in results]
    picks: list[int] = []
    while len(picks) < n and len(pools[0].rows):
        best = best_candidate(_Together(chosen, pools, stands_for), pools[0])
        picks.append(int(pools[0].rows[best]))
        if len(picks) < n:
            stands_for = np.delete(stands_for, best)
            pools = [pool.given(best) for pool in pools]
    return np.array(picks, dtype=np.int64)


class _Together:
    """A rule for the pools of all tags, which are those of the same rows."""

    def __init__(self, rule: Any, pools: list[Pool], stands_for: Float[np.ndarray, " M"]) -> None:
        self.rule, self.pools, self.stands_for = rule, pools, stands_for

    def scores(self, pool: Pool) -> Any:
        """Return the score of each candidate."""
        if not isinstance(self.rule, StochasticMargin):
            return sum(np.asarray(self.rule.scores(pool), dtype=np.float64) for pool in self.pools)
        doubt = np.mean([Margin().scores(pool) for pool in self.pools], axis=0)
        chances = self.rule.power * np.log(doubt) + np.log(self.stands_for)
        return chances + pool.rng.gumbel(size=len(chances))

    def __repr__(self) -> str:
        return repr(self.rule)


def _screened(
    results: Sequence[Result], rows: Int[np.ndarray, " M"], rng: np.random.Generator
) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Return at most `MAX_ROWS` rows, the same for all tags, and for how many each stands."""
    if len(rows) <= MAX_ROWS:
        return rows, np.ones(len(rows))
    half, order = MAX_ROWS // 2, rng.permutation(rows)
    sure = sum(margin(result)[order] for result in results)
    order = order[np.argsort(sure, kind="stable")]
    rest = rng.choice(order[half:], MAX_ROWS - half, replace=False)
    stands_for = np.repeat([1.0, (len(rows) - half) / len(rest)], [half, len(rest)])
    return np.append(order[:half], rest), stands_for
