"""Figures 13 to 17: pairs of learnt hyperparameters, three classes."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import stats

from graphuq import DiscreteUniform, Uniform
from graphuq.priors import Matern, Prior
from graphuq.results import draws
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.chen.setup import BETA, N_MODES, SYMBOLS, Pair, both, draw, multiclass_posterior
from graphuq_papers.claims import Claim, Finding, Row, cell, finding
from graphuq_papers.problems import digits, share

TAU, ALPHA = Uniform(0.01, 20.0), Uniform(0.1, 60.0)
# The paper has U[1, 70]. The prior leaves q_0 out, so M = 1 would leave no eigenvector at all.
TRUNCATION = DiscreteUniform(2, 70)
QUANTITY = "quantity"  # columns
ACCEPTANCE = "acceptance, "  # beginnings of cells of column "quantity"
CORRELATION = "rank correlation of "
NEAR, FAR = "second where the first is in its lower fifth", "… in its upper fifth"  # its median


class _Posterior(NamedTuple):
    """What rows say of a pair of hyperparameters: the row of each, ρ, medians, and R-hat."""

    first: Row
    second: Row
    rho: float
    near: float
    far: float
    rhat: float


def _of(rows: Sequence[Row]) -> _Posterior:
    first, second = (r for r in rows if str(r.get(QUANTITY)).startswith("median of "))
    rho = next(r["converged"] for r in rows if r[QUANTITY].startswith(CORRELATION))
    near, far = (cell(rows, "converged", {QUANTITY: name}) for name in (NEAR, FAR))
    return _Posterior(first, second, rho, near, far, cell(rows, "R-hat", {QUANTITY: "seconds"}))


def _rarely_accepted(rows: Sequence[Row]) -> Finding:
    tau = cell(rows, "protocol", {QUANTITY: f"{ACCEPTANCE}tau"})
    return finding(0.05 < tau < 0.15, f"{tau:.0%}")


def _rise_together(rows: Sequence[Row]) -> Finding:
    found = _of(rows)
    tau = next(r for r in rows if r[QUANTITY] == "median of tau")
    return finding(
        found.rho > 0.3 and tau["95 %"] < 5,
        f"90 % of τ in {tau['5 %']:.1f} to {tau['95 %']:.1f} of 0 to 20; rank correlation "
        f"{found.rho:+.2f}",
        rhat=found.rhat,
    )


def _moves_better(rows: Sequence[Row]) -> Finding:
    small, large = (
        [cell(rows, column, {QUANTITY: quantity}) for column in ("γ = 1e-7", "protocol")]
        for quantity in (f"{ACCEPTANCE}tau", "accuracy")
    )
    words = (
        f"τ accepted in {small[1]:.0%} (γ = 1e-7: {small[0]:.0%}), accuracy {large[1]:.3f} "
        f"({large[0]:.3f})"
    )
    return finding(small[1] > small[0] and abs(large[1] - large[0]) < 0.03, words)


def _cut(rows: Sequence[Row]) -> Finding:
    found = _of(rows)
    words = f"median M {found.far:.0f} where τ is large, {found.near:.0f} where small; rank"
    return finding(
        found.far <= 15 and found.rho < -0.3,
        f"{words} correlation {found.rho:+.2f}",
        rhat=found.rhat,
    )


def _narrow(rows: Sequence[Row]) -> Finding:
    found = _of(rows)
    tau, m = found.first, found.second
    return finding(
        tau["95 %"] < 5 and m["95 %"] - m["5 %"] < 35,
        f"90 % of M in {m['5 %']:.0f} to {m['95 %']:.0f} of 2 to 70, 90 % of τ in "
        f"{tau['5 %']:.1f} to {tau['95 %']:.1f} of 0 to 20",
        rhat=found.rhat,
    )


def _small_together(rows: Sequence[Row]) -> Finding:
    found = _of(rows)
    words = f"median M {found.near:.0f} where α is small, {found.far:.0f} where large; rank"
    return finding(found.rho > 0.3, f"{words} correlation {found.rho:+.2f}", rhat=found.rhat)


@experiment(
    Claim("τ is accepted in about 9 % of the steps.", _rarely_accepted),
    Claim("τ is small and rises with α.", _rise_together),
)
def figure13(context: Context) -> Outcome:
    """Posterior of τ and α: MNIST [1, 4, 9], 10 % labelled, γ = 1e-7, M = 50."""
    words = "paper: τ is accepted in about 9 % of the steps and increases with α"
    return _traces(_tau_alpha(context, 1e-7), words)


@experiment(
    Claim("τ is small and rises with α.", _rise_together),
    Claim("τ moves more easily than with γ = 1e-7, at the same accuracy.", _moves_better),
)
def figure14(context: Context) -> Outcome:
    """Posterior of τ and α: MNIST [1, 4, 9], 10 % labelled, γ = 0.9, M = 50."""
    words = "paper: τ is small and increases with α; accuracy is about 0.97"
    found = _traces(_tau_alpha(context, 0.9), words)
    other = {row[QUANTITY]: row["protocol"] for row in _pair_rows(_tau_alpha(context, 1e-7))
             if "protocol" in row}  # fmt: skip
    rows = [{**row, "γ = 1e-7": other.get(row[QUANTITY])} for row in found.rows]
    return Outcome(rows, found.text, found.figure)


@experiment(Claim("Where τ is large, M falls to about 10.", _cut))
def figure15(context: Context) -> Outcome:
    """Posterior of τ and M: MNIST [1, 4, 9], α = 30, 10 % labelled, γ = 0.9."""
    words = "paper: M decreases to about 10 when τ is large"
    prior = Matern(tau=TAU, alpha=30.0, truncation=TRUNCATION)
    return _traces(_three_digits(context, prior, 0.9), words)


@experiment(Claim("τ and M vary little, and τ is close to 0.", _narrow))
def figure16(context: Context) -> Outcome:
    """Posterior of τ and M: MNIST [1, 4, 9], α = 1, 10 % labelled, γ = 0.9."""
    words = "paper: both have a small variance, and τ is close to 0"
    prior = Matern(tau=TAU, alpha=1.0, truncation=TRUNCATION)
    return _traces(_three_digits(context, prior, 0.9), words)


@experiment(Claim("Where α is small, M is small.", _small_together))
def figure17(context: Context) -> Outcome:
    """Posterior of α and M: MNIST [1, 4, 9], τ = 0.7, 10 % labelled, γ = 0.9."""
    prior = Matern(tau=0.7, alpha=Uniform(0.1, 90.0), truncation=TRUNCATION)
    words = "paper: if α is small, M must be small"
    return _traces(_three_digits(context, prior, 0.9), words)


@lru_cache(maxsize=2)
def _tau_alpha(context: Context, gamma: float) -> Pair:
    """Return the chains of figures 13 and 14."""
    return _three_digits(context, Matern(tau=TAU, alpha=ALPHA, truncation=N_MODES), gamma)


def _three_digits(context: Context, prior: Prior, gamma: float) -> Pair:
    problem = digits(context, (1, 4, 9), context.pick(150, 1000), 80)
    labelled = share(problem.truth, 0.1, context.seed)
    return both(context, multiclass_posterior(problem, prior, labelled, gamma), problem.truth, BETA)


def _pair_rows(pair: Pair) -> list[Row]:
    """Return the rows of a pair of hyperparameters, and of how they depend on each other."""
    rows = pair.rows()
    first, second = pair.converged.hyperparameters
    a, b = (pair.converged.hyperparameters[name].ravel() for name in (first, second))
    rho = float(stats.spearmanr(a, b).statistic)
    rows.append({QUANTITY: f"{CORRELATION}{first} and {second}", "converged": rho})
    low, high = np.quantile(a, (0.2, 0.8))
    rows.append({QUANTITY: NEAR, "converged": float(np.median(b[a <= low]))})
    rows.append({QUANTITY: FAR, "converged": float(np.median(b[a >= high]))})
    rows += [{QUANTITY: f"{ACCEPTANCE}{k}", "protocol": v} for k, v in _acceptance(pair).items()]
    return rows


def _traces(pair: Pair, claim: str) -> Outcome:
    rows, acceptance = _pair_rows(pair), _acceptance(pair)
    first, second = pair.converged.hyperparameters
    rho = _of(rows).rho
    found = {row[QUANTITY]: row for row in rows}
    posteriors = "; ".join(
        f"{SYMBOLS[name]}: median {row['converged']:.2f}, 90 % interval {row['5 %']:.2f} to "
        f"{row['95 %']:.2f}"
        for name in (first, second)
        for row in [found[f"median of {name}"]]
    )
    words = ", ".join(f"{SYMBOLS[name]} {value:.2f}" for name, value in acceptance.items())
    return Outcome(
        rows,
        f"Posterior of {posteriors}; rank correlation {rho:+.2f} ({claim}). Acceptance of the "
        f"paper's chain: {words}. Accuracy {found['accuracy']['converged']:.3f} (converged) and "
        f"{found['accuracy']['protocol']:.3f} (the paper's chain); {pair.state}.",
        draw(pair, "MNIST [1, 4, 9]"),
    )


def _acceptance(pair: Pair) -> dict[str, float]:
    """Return the acceptance of each hyperparameter in the paper's chain."""
    blocks = draws(pair.protocol).block_acceptance
    assert blocks is not None
    posterior = pair.protocol.posterior
    means = blocks.mean(axis=(0, 1))[posterior.n_fields :]  # the first blocks are the classes
    return dict(zip(posterior.learnt, map(float, means), strict=True))
