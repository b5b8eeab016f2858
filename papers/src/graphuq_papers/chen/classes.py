"""Figures 18 to 20: step sizes by class, and whether a hierarchy is worth it."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from graphuq import DiscreteUniform, Result, Uniform
from graphuq.plots import class_colors
from graphuq.priors import Matern
from graphuq.results import at_rows, draws, label_mean
from graphuq.scores import accuracy
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.chen.setup import BETA, N_MODES, learn, multiclass_posterior, paper_chain
from graphuq_papers.claims import Claim, Finding, Row, finding, listed
from graphuq_papers.problems import Problem, digits, rhat, share

CHECKS = 5  # points per curve of figure 20: one after every fifth of the steps
CHOICES = {  # learnt hyperparameters of figure 20, and the prior that learns them
    "nonhierarchical": Matern(tau=0.0, alpha=1.0, truncation=N_MODES),
    "τ, α": Matern(tau=Uniform(-6.0, 6.0), alpha=Uniform(1.0, 110.0), truncation=N_MODES),
    "τ, M": Matern(tau=Uniform(-6.0, 6.0), alpha=60.0, truncation=DiscreteUniform(2, 80)),
    "α, M": Matern(tau=1.0, alpha=Uniform(1.0, 110.0), truncation=DiscreteUniform(2, 80)),
    "τ, α, M": Matern(
        tau=Uniform(-6.0, 6.0), alpha=Uniform(1.0, 110.0), truncation=DiscreteUniform(2, 80)
    ),
}


def _two_and_two(rows: Sequence[Row]) -> Finding:
    rates = sorted(row["acceptance"] for row in rows)
    gaps = np.diff(rates)
    words = f"{listed(rates[::-1], '.2f')} (paper: 0.7 twice, 0.4 twice)"
    return finding(bool(gaps.argmax() == 1 and gaps[1] > 0.1), words)


def _near_half(rows: Sequence[Row]) -> Finding:
    rates = [row["acceptance"] for row in rows]
    return finding(max(abs(rate - 0.5) for rate in rates) < 0.05, listed(rates, ".2f"))


def _worth_it(rows: Sequence[Row]) -> Finding:
    fixed, *learnt = rows
    last = [name for name in fixed if name.startswith("protocol")][-1]
    better = {way: min(r[way] for r in learnt) > fixed[way] for way in (last, "converged")}
    low, high = (of(r["converged"] for r in learnt) for of in (min, max))
    words = f"accuracy {low:.3f} to {high:.3f} with, {fixed['converged']:.3f} without"
    worst = max(row["largest R-hat"] for row in rows)
    return finding(better["converged"], words, better[last], worst)


@experiment(Claim("With one β acceptance differs by class, two and two.", _two_and_two))
def figure18(context: Context) -> Outcome:
    """Acceptance of each class with β = 0.1 for all: MNIST [1, 3, 4, 9], τ = 0, α = 1, γ = 1."""
    return _by_class(context, adapted=False)


@experiment(Claim("With a β for each class all are accepted near one half.", _near_half))
def figure19(context: Context) -> Outcome:
    """Acceptance of each class with β adapted to an acceptance of one half during warm-up."""
    return _by_class(context, adapted=True)


def _by_class(context: Context, adapted: bool) -> Outcome:
    classes = (1, 3, 4, 9)
    problem = digits(context, classes, context.pick(300, 1000), 80)
    labelled = share(problem.truth, 0.1, context.seed)
    prior = Matern(tau=0.0, alpha=1.0, truncation=N_MODES)
    posterior = multiclass_posterior(problem, prior, labelled, 1.0)
    n_steps = context.pick(20_000, 100_000)
    warmup = 10_000 if adapted else 0
    result = paper_chain(posterior, n_steps, context.seed, BETA, warmup)
    blocks, steps = draws(result).block_acceptance, draws(result).block_step_sizes
    assert blocks is not None
    assert steps is not None
    running = np.cumsum(blocks[0], axis=0) / np.arange(1, len(blocks[0]) + 1)[:, None]
    figure = Figure(figsize=(6.5, 3.4), layout="constrained")
    axes = figure.subplots()
    colors = class_colors(len(classes))
    at = np.arange(1, len(running) + 1) * draws(result).thin
    rows = []
    for k, digit in enumerate(classes):
        axes.plot(at, running[:, k], color=colors(k), label=f"digit {digit}")
        rows.append(
            {"digit": digit, "β": float(steps[k]), "acceptance": float(blocks[0, :, k].mean())}
        )
    axes.set(xlabel="step", ylabel="running acceptance of ξ", ylim=(0, 1))
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    found = [row["acceptance"] for row in rows]
    words = ", ".join(f"{value:.2f}" for value in found)
    betas = ", ".join(f"{value:.3f}" for value in steps)
    claim = "paper: all similar, about 0.5" if adapted else "paper: two near 0.7 and two near 0.4"
    return Outcome(
        rows,
        f"Acceptance by class: {words} ({claim}), with β = {betas}. The largest and the smallest "
        f"differ by {max(found) - min(found):.2f}.",
        figure,
    )


@experiment(Claim("Learning hyperparameters raises the median accuracy.", _worth_it))
def figure20(context: Context) -> Outcome:
    """Median accuracy of five priors against steps: MNIST [3, 4, 5, 9], 1 % labelled."""
    problem = digits(context, (3, 4, 5, 9), context.pick(300, 1213), 81)
    n_steps = context.pick(10_000, 25_000)
    trials = context.trials(3, 20)
    rows: list[Row] = []
    figure = Figure(figsize=(6.5, 3.6), layout="constrained")
    axes = figure.subplots()
    colors = class_colors(len(CHOICES))
    for k, (name, prior) in enumerate(CHOICES.items()):
        running, ends, worst = [], [], []
        for trial in trials:
            labelled = share(problem.truth, 0.01, trial)
            posterior = multiclass_posterior(problem, prior, labelled, 1e-4)
            chain = paper_chain(posterior, n_steps, trial, BETA, 2_000)
            running.append(_running_accuracy(chain, problem, labelled))
            converged = learn(context, posterior, trial)
            ends.append(accuracy(label_mean(converged), problem.truth, labelled))
            worst.append(rhat(converged))
        medians = np.median(running, axis=0)
        at = np.arange(1, CHECKS + 1) * n_steps // CHECKS
        axes.plot(at, medians, "o-", color=colors(k), label=name)
        axes.axhline(float(np.median(ends)), color=colors(k), linewidth=0.8, linestyle=":")
        rows.append(
            {
                "learnt": name,
                **{f"protocol, {n} steps": float(m) for n, m in zip(at, medians, strict=True)},
                "converged": float(np.median(ends)),
                "converged, 25 %": float(np.quantile(ends, 0.25)),
                "converged, 75 %": float(np.quantile(ends, 0.75)),
                "largest R-hat": float(np.max(worst)),
            }
        )
    axes.set(xlabel="step of the paper's chain", ylabel="median accuracy")
    title = "learnt hyperparameters\n(dotted: converged)"
    figure.legend(loc="outside right upper", frameon=False, fontsize=8, title=title)
    axes.spines[["top", "right"]].set_visible(False)
    ranked = sorted(rows, key=lambda row: -row["converged"])
    words = ", ".join(
        f"{row['learnt']} {row[f'protocol, {n_steps} steps']:.3f} / {row['converged']:.3f}"
        for row in ranked
    )
    return Outcome(
        rows,
        f"Median accuracy over {len(trials)} trials, of the paper's chain after {n_steps} steps / "
        f"of converged chains: {words}. Largest R-hat "
        f"{max(row['largest R-hat'] for row in rows):.3f}.",
        figure,
    )


def _running_accuracy(chain: Result, problem: Problem, labelled: np.ndarray) -> list[float]:
    """Return the accuracy of the running mean after each fifth of the draws."""
    spectrum = problem.spectrum
    rest = np.setdiff1d(np.arange(spectrum.n_nodes), labelled)
    rows = spectrum.eigenvectors[rest], spectrum.node_scale[rest]

    def of_first(n_draws: int) -> float:
        first = dataclasses.replace(chain, answer=draws(chain).first(n_draws))
        return accuracy(at_rows(first, *rows).label_mean, problem.truth[rest])

    n = draws(chain).n_samples
    return [of_first(n * k // CHECKS) for k in range(1, CHECKS + 1)]
