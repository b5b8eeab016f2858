"""Figures 5, 6 and 7: models C and E on MNIST (4, 9)."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from graphuq import Result, Uniform
from graphuq.likelihoods import LevelSet
from graphuq.priors import EigenScales, Matern
from graphuq.results import draws, label_mean
from graphuq.scores import accuracy
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.chen.algorithm import ALPHA, TAU, Walk, walk
from graphuq_papers.chen.setup import both, learn
from graphuq_papers.claims import Claim, Finding, Row, finding
from graphuq_papers.problems import Problem, mnist, rhat, share

N_MODES, NOISE, BETA = 50, 1e-4, 0.1  # M, γ of the level set, and β of the paper's chain
SHARE = 0.01  # share of labelled nodes; the paper gives it for figure 20 only
# Chains of model E in a quick run. The field is a thin cone, where trajectories are slow: the
# default of 32 chains takes ten minutes, and has no smaller R-hat.
FEW = {"n_samples": 400, "n_chains": 8, "n_warmup": 300}
START = (20.0, 30.0)  # τ as in the paper, and α in the middle of its prior
PAPER_TAU, PAPER_ACCURACY = 0.7, 0.96
SMALL = 2.0  # τ below which the chain counts as having found a small value
QUANTITY, MODEL_C = "quantity", "accuracy of model C"


def _finds_tau(rows: Sequence[Row]) -> Finding:
    row = _row(rows, "median of tau")
    near = row["5 %"] <= PAPER_TAU <= row["95 %"]
    chain = row["5 %"] <= row["protocol"] <= row["95 %"]
    fall = _row(rows, "step at which τ falls below 2")["protocol"]
    words = f"90 % in {row['5 %']:.2f} to {row['95 %']:.2f}; the paper's chain has a median of "
    words += f"{row['protocol']:.2f}" + (f", and falls at step {fall:,}" if fall else "")
    return finding(near, words, chain, _row(rows, "seconds")["R-hat"])


def _row(rows: Sequence[Row], quantity: str) -> Row:
    return next(row for row in rows if row[QUANTITY] == quantity)


def _reaches(rows: Sequence[Row]) -> Finding:
    row = _row(rows, "accuracy")
    found = {way: row[way] >= PAPER_ACCURACY - 0.02 for way in ("protocol", "converged")}
    words = f"{row['converged']:.3f}, the paper's chain {row['protocol']:.3f}; 1 % labelled"
    return finding(found["converged"], words, found["protocol"])


def _as_model_c(rows: Sequence[Row]) -> Finding:
    row, other = _row(rows, "accuracy"), _row(rows, MODEL_C)
    gap = {way: abs(row[way] - other["converged"]) for way in ("protocol", "converged")}
    words = f"{row['converged']:.3f}, model C {other['converged']:.3f}"
    return finding(
        gap["converged"] < 0.02, words, gap["protocol"] < 0.02, _row(rows, "seconds")["R-hat"]
    )


def _slow(rows: Sequence[Row]) -> Finding:
    row = _row(rows, "accuracy")
    words = f"the chain ends at {row['protocol']:.3f}, converged chains at {row['converged']:.3f}"
    return finding(
        row["protocol"] < row["converged"] - 0.02, words, rhat=_row(rows, "seconds")["R-hat"]
    )


@lru_cache(maxsize=1)
def _model_c(context: Context) -> Result:
    problem, labelled = _labels(context)
    prior = Matern(
        tau=Uniform(*TAU), alpha=Uniform(*ALPHA), truncation=N_MODES, include_constant=True
    )
    return learn(context, problem.posterior(LevelSet(NOISE), labelled, prior), context.seed)


def _labels(context: Context) -> tuple[Problem, np.ndarray]:
    problem = mnist(context, (4, 9))
    return problem, share(problem.truth, SHARE, context.seed)


@experiment(
    Claim("τ falls from 20 to about 0.7.", _finds_tau),
    Claim("Accuracy is about 0.96.", _reaches),
)
def figure5(context: Context) -> Outcome:
    """Posterior of τ and α in model C: MNIST (4, 9), M = 50, started at τ = 20."""
    problem, labelled = _labels(context)
    result = _model_c(context)
    n_steps = context.pick(40_000, 100_000)
    chain = walk(
        problem, labelled, NOISE, N_MODES, n_steps, beta=BETA, start=START, seed=context.seed
    )
    half = slice(n_steps // 2, None)
    rows: list[Row] = []
    for name, trace in (("tau", chain.tau), ("alpha", chain.alpha)):
        values = result.hyperparameters[name]
        low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
        rows.append({"model": "C", QUANTITY: f"median of {name}",
                     "protocol": float(np.median(trace[half])), "converged": float(middle),
                     "5 %": float(low), "95 %": float(high)})  # fmt: skip
    rows[0]["paper"] = PAPER_TAU
    small = np.flatnonzero(chain.tau < SMALL)
    fall = int(small[0]) if len(small) else None
    rows.append({"model": "C", QUANTITY: "step at which τ falls below 2", "paper": 20_000,
                 "protocol": fall})  # fmt: skip
    right = {
        "protocol": accuracy(chain.label_mean, problem.truth, labelled),
        "converged": accuracy(label_mean(result), problem.truth, labelled),
    }
    rows.append({"model": "C", QUANTITY: "accuracy", "paper": PAPER_ACCURACY, **right})
    seconds = {"converged": draws(result).seconds, "R-hat": rhat(result)}
    rows.append({"model": "C", QUANTITY: "seconds", **seconds})
    tau = rows[0]
    reached = "never falls below 2" if fall is None else f"falls below 2 at step {fall:,}"
    return Outcome(
        rows,
        f"The posterior of τ has median {tau['converged']:.2f}, 90 % interval {tau['5 %']:.2f} to "
        f"{tau['95 %']:.2f} (paper: about 0.7). Median of α: {rows[1]['converged']:.1f}. Accuracy "
        f"{right['converged']:.3f} (paper: about 0.96); R-hat {rhat(result):.3f}. The paper's "
        f"chain, started at τ = 20 with random-walk steps of 0.1, {reached} (paper: about 20,000); "
        f"its second half has median τ = {tau['protocol']:.2f}, and its accuracy is "
        f"{right['protocol']:.3f}.",
        _draw(problem, labelled, chain, result, right["converged"]),
    )


def _draw(
    problem: Problem, labelled: np.ndarray, chain: Walk, result: Result, right: float
) -> Figure:
    """Draw the paper's six quantities, with converged values and the paper's numbers in three."""
    figure = Figure(figsize=(12, 6), layout="constrained")
    (final, accepted, average), (tau, alpha, running) = figure.subplots(2, 3)
    order = np.argsort(-problem.truth, kind="stable")
    final.plot(np.sign(chain.mean_field[order]), ".", markersize=1.5, color="#3b6fb6")
    final.set(title="final classification (4, then 9)", xlabel="node", yticks=(-1, 1))
    steps = np.arange(1, len(chain.tau) + 1)
    accepted.plot(steps, np.cumsum(chain.accepted) / steps, color="#8a8f98")
    accepted.set(title="running acceptance of ξ", xlabel="step", ylim=(0, 1))
    average.plot(chain.mean_field[order], ".", markersize=1.5, color="#3b6fb6")
    average.set(title="average of u_j", xlabel="node")
    lines: tuple[Any, ...] = ((tau, chain.tau, "tau", "τ"), (alpha, chain.alpha, "alpha", "α"))
    for axes, trace, name, symbol in lines:
        axes.plot(steps, trace, color="#8a8f98", linewidth=0.7, label="the paper's chain")
        band = np.quantile(result.hyperparameters[name], (0.05, 0.95))
        axes.axhspan(*band, color="#3b6fb6", alpha=0.3, label="converged, 90 %")
        axes.set(title=f"trace of {symbol}", xlabel="step")
    tau.axhline(PAPER_TAU, color="#c2410c", linestyle="--", linewidth=1, label="paper")
    rest = np.setdiff1d(np.arange(len(problem.truth)), labelled)
    share_right = [accuracy(mean[rest], problem.truth[rest]) for mean in chain.running]
    running.plot(chain.steps, share_right, "o-", markersize=3, color="#8a8f98")
    running.axhline(right, color="#3b6fb6")
    running.axhline(PAPER_ACCURACY, color="#c2410c", linestyle="--", linewidth=1)
    running.set(title="running accuracy", xlabel="step", ylim=(0.4, 1))
    tau.legend(frameon=False, fontsize=8)
    for axes in (final, accepted, average, tau, alpha, running):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


@experiment(Claim("With the τ of model C, model E is as accurate as model C.", _as_model_c))
def figure6(context: Context) -> Outcome:
    """Scales of model E around τ = 0.7, α = 35, a = 0.8: MNIST (4, 9), M = 50."""
    return _scales(context, 0.7)


@experiment(Claim("About τ = 0.3 the chain is slow: accuracy still climbs at its end.", _slow))
def figure7(context: Context) -> Outcome:
    """Scales of model E around τ = 0.3, α = 35, a = 0.8: MNIST (4, 9), M = 50."""
    return _scales(context, 0.3)


def _scales(context: Context, tau: float) -> Outcome:
    prior = EigenScales(
        tau=tau, alpha=35.0, scales=Uniform(0.2, 1.8), truncation=N_MODES, include_constant=True
    )
    problem, labelled = _labels(context)
    posterior = problem.posterior(LevelSet(NOISE), labelled, prior)
    pair = both(context, posterior, problem.truth, BETA, **context.pick(FEW, {}))
    rows = pair.rows(model="E")
    right = _row(rows, "accuracy")
    scales = pair.converged.hyperparameters["scales"]
    change = abs(scales.mean(axis=(0, 1)) - 1.0)
    for j in range(scales.shape[2]):
        mean = float(scales[:, :, j].mean())
        rows.append({"model": "E", QUANTITY: f"mean of a_{j}", "converged": mean})
    if tau == PAPER_TAU:
        other = accuracy(label_mean(_model_c(context)), problem.truth, labelled)
        rows.append({"model": "C", QUANTITY: MODEL_C, "converged": other})
    return Outcome(
        rows,
        f"Accuracy with scales around τ = {tau}: {right['converged']:.3f} (default sampler) and "
        f"{right['protocol']:.3f} (the paper's chain); {pair.state}. The prior mean of each scale "
        f"a_j is 1, and the posterior means differ from it by at most {change.max():.2f}: the "
        "labels carry little information about single modes.",
    )
