"""Figures 8 to 12: one learnt hyperparameter at a time."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from matplotlib.figure import Figure

from graphuq import DiscreteUniform, Uniform
from graphuq.likelihoods import LevelSet
from graphuq.priors import Matern, Prior
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.chen.setup import SYMBOLS, Pair, both, draw, learn, voting
from graphuq_papers.claims import Claim, Finding, Row, cell, cells, finding, listed, rises
from graphuq_papers.problems import Problem, moons, rhat, share

# The paper has U[1, 70]. The prior leaves q_0 out, so M = 1 would leave no eigenvector at all.
TRUNCATIONS = DiscreteUniform(2, 70)

FEW = {"n_chains": 8, "n_warmup": 300}  # chains of figure 12 in a quick run
QUANTITY = "quantity"  # a column
OTHER = "mean of M, σ = 0.15"  # cell of this column in figure 11


def _interval(rows: Sequence[Row], name: str) -> tuple[Row, float, str]:
    """Return the row of a hyperparameter, the largest R-hat, and the posterior in words."""
    row = next(r for r in rows if r.get(QUANTITY) == f"median of {name}")
    words = (
        f"median {row['converged']:.1f}, 90 % in {row['5 %']:.1f} to {row['95 %']:.1f}; the "
        f"paper's chain has median {row['protocol']:.1f}"
    )
    return row, cell(rows, "R-hat", {QUANTITY: "seconds"}), words


def _below(name: str, limit: float) -> Callable[[Sequence[Row]], Finding]:
    """Return the judge of whether the median is below the middle of the prior."""

    def judge(rows: Sequence[Row]) -> Finding:
        row, rhat, words = _interval(rows, name)
        return finding(row["converged"] < limit, words, row["protocol"] < limit, rhat)

    return judge


def _least(rows: Sequence[Row]) -> Finding:
    row, rhat, words = _interval(rows, "truncation")
    lowest = 2 * TRUNCATIONS.frozen.ppf(0.05)  # twice where the prior has its 5 % quantile
    return finding(row["5 %"] > lowest, words, rhat=rhat)


def _larger(rows: Sequence[Row]) -> Finding:
    row, rhat, _ = _interval(rows, "truncation")
    other = cell(rows, "converged", {QUANTITY: OTHER})
    words = f"mean {row['mean']:.1f}, and {other:.1f} with σ = 0.15"
    return finding(row["mean"] > 1.1 * other, words, rhat=rhat)


def _rising(rows: Sequence[Row]) -> Finding:
    curves = {
        name: cells(rows, "converged", {QUANTITY: f"{name} of M"})
        for name in ("mean", "median", "1 % quantile")
    }
    words = "; ".join(f"{name} {listed(values, '.1f')}" for name, values in curves.items())
    worst = max(cells(rows, "converged", {QUANTITY: "largest R-hat"}))
    return finding(all(map(rises, curves.values())), words, rhat=worst)


@experiment(
    Claim("τ concentrates on a small value (below the prior's middle).", _below("tau", 20.0))
)
def figure8(context: Context) -> Outcome:
    """Posterior of τ: voting records, α = 30, M = 435, 3 % labelled, γ = 0.0001."""
    prior = Matern(tau=Uniform(0.0, 40.0), alpha=30.0)
    pair = _run(context, voting(context), prior, 0.03, 1e-4)
    return _trace(
        pair, "tau", "in the paper the trace stays low, which damps the higher eigenvectors"
    )


@experiment(Claim("α walks down (below the prior's middle).", _below("alpha", 30.0)))
def figure9(context: Context) -> Outcome:
    """Posterior of α: two moons, σ = 0.15, τ = 0, M = 50, 1 % labelled, γ = 0.15."""
    prior = Matern(tau=0.0, alpha=Uniform(0.1, 60.0), truncation=50)
    pair = _run(context, moons(context, 0.15, context.seed), prior, 0.01, 0.15)
    return _trace(pair, "alpha", "in the paper the trace drifts down from its start")


MINIMUM = "in the paper M has a pronounced minimum, and is larger for larger σ"


@experiment(Claim("M has a pronounced minimum.", _least))
def figure10(context: Context) -> Outcome:
    """Posterior of M: two moons, σ = 0.15, τ = 0, α = 1, 1 % labelled, γ = 0.15."""
    return _trace(_truncation(context, 0.15), "truncation", MINIMUM)


@experiment(Claim("M is larger on average than with σ = 0.15 (by a tenth).", _larger))
def figure11(context: Context) -> Outcome:
    """Posterior of M: two moons, σ = 0.20, τ = 0, α = 1, 1 % labelled, γ = 0.20."""
    found = _trace(_truncation(context, 0.2), "truncation", MINIMUM)
    other = float(_truncation(context, 0.15).converged.hyperparameters["truncation"].mean())
    return dataclasses.replace(found, rows=[*found.rows, {QUANTITY: OTHER, "converged": other}])


@lru_cache(maxsize=2)
def _truncation(context: Context, sigma: float) -> Pair:
    prior = Matern(tau=0.0, alpha=1.0, truncation=TRUNCATIONS)
    return _run(context, moons(context, sigma, context.seed), prior, 0.01, sigma)


def _run(context: Context, problem: Problem, prior: Prior, fraction: float, gamma: float) -> Pair:
    labelled = share(problem.truth, fraction, context.seed)
    posterior = problem.posterior(LevelSet(gamma), labelled, prior)
    return both(context, posterior, problem.truth, 0.3)


def _trace(pair: Pair, name: str, claim: str) -> Outcome:
    rows = pair.rows()
    found = {row["quantity"]: row for row in rows}
    posterior = found[f"median of {name}"]
    return Outcome(
        rows,
        f"Posterior of {SYMBOLS[name]}: median {posterior['converged']:.2f}, 90 % interval "
        f"{posterior['5 %']:.2f} to {posterior['95 %']:.2f} ({claim}). The paper's chain has "
        f"median {posterior['protocol']:.2f}. Accuracy {found['accuracy']['converged']:.3f}; "
        f"{pair.state}.",
        draw(pair, f"learning {SYMBOLS[name]}"),
    )


@experiment(Claim("Mean, median and minimum of M rise with σ.", _rising))
def figure12(context: Context) -> Outcome:
    """Posterior mean, median and minimum of M against σ: two moons."""
    sigmas = context.pick((0.06, 0.12, 0.2), (0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2))
    rows = [row for sigma in sigmas for row in _truncation_rows(context, sigma)]
    means = [row["converged"] for row in rows if row[QUANTITY] == "mean of M"]
    verdict = (
        "increases with σ, as in the paper" if rises(means) else "does not increase at every σ"
    )
    values = ", ".join(f"{value:.1f}" for value in means)
    return Outcome(
        rows,
        f"The posterior mean of M {verdict} ({values}). The paper also plots the minimum of M over "
        "a chain. The minimum depends on the length of the chain; the figure shows the 1 % "
        "quantile instead.",
        _draw_truncation(rows, sigmas),
    )


def _truncation_rows(context: Context, sigma: float) -> list[Row]:
    """Return quartiles over trials of the mean, median and 1 % quantile of M for one σ."""
    found = []
    for trial in context.trials(3, 50):
        problem = moons(context, sigma, trial)
        prior = Matern(tau=0.0, alpha=1.0, truncation=TRUNCATIONS)
        labelled = share(problem.truth, 0.01, trial)
        posterior = problem.posterior(LevelSet(sigma), labelled, prior)
        result = learn(context, posterior, trial, **context.pick(FEW, {}))
        m = result.hyperparameters["truncation"]
        found.append((m.mean(), np.median(m), np.quantile(m, 0.01), rhat(result)))
    mean, median, quantile, worst = np.array(found).T
    rows: list[Row] = []
    for name, values in (("mean", mean), ("median", median), ("1 % quantile", quantile)):
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
        row = {"σ": sigma, QUANTITY: f"{name} of M"}
        rows.append(row | {"converged": middle, "25 %": low, "75 %": high})
    return [*rows, {"σ": sigma, QUANTITY: "largest R-hat", "converged": worst.max()}]


def _draw_truncation(rows: list[Row], sigmas: Sequence[float]) -> Figure:
    """Draw the mean, median and 1 % quantile of M against σ, with quartiles over trials."""
    figure = Figure(figsize=(6.5, 3.4), layout="constrained")
    axes = figure.subplots()
    for name, color in (("mean", "#3b6fb6"), ("median", "#c2410c"), ("1 % quantile", "#8a8f98")):
        chosen = [row for row in rows if row[QUANTITY] == f"{name} of M"]
        middle = np.array([row["converged"] for row in chosen])
        bars = np.abs([[row[end] for row in chosen] for end in ("25 %", "75 %")] - middle)
        axes.errorbar(sigmas, middle, bars, color=color, marker="o", capsize=3, label=name)
    axes.set(xlabel="standard deviation σ of the feature noise", ylabel="M")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure
