"""Figures 13 to 20: multiclass problems."""

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from graphuq.distributions import DiscreteUniform, Uniform
from graphuq.experiments.base import Context, Outcome, Row
from graphuq.experiments.chen.setup import SYMBOLS, Pair, both, draw, learn, paper_chain
from graphuq.experiments.problems import Problem, digits, rhat, share
from graphuq.inference.draws import Draws
from graphuq.likelihoods import LevelSet
from graphuq.plots import class_colors
from graphuq.posterior.posterior import Posterior
from graphuq.priors import Matern, Prior
from graphuq.results.result import Result
from graphuq.results.summaries import Rows, summarize
from graphuq.scores import accuracy

TAU, ALPHA = Uniform(0.01, 20.0), Uniform(0.1, 60.0)
# The paper has U[1, 70]. The prior leaves q_0 out, so M = 1 would leave no eigenvector at all.
TRUNCATION = DiscreteUniform(2, 70)
N_MODES, BETA = 50, 0.1  # M where it is fixed, and the step size β of the paper's chain
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


def figure13(context: Context) -> Outcome:
    """Posterior of τ and α: MNIST [1, 4, 9], 10 % labelled, γ = 1e-7, M = 50."""
    claim = "paper: τ is accepted in about 9 % of the steps and increases with α"
    return _traces(context, Matern(tau=TAU, alpha=ALPHA, truncation=N_MODES), 1e-7, claim)


def figure14(context: Context) -> Outcome:
    """Posterior of τ and α: MNIST [1, 4, 9], 10 % labelled, γ = 0.9, M = 50."""
    claim = "paper: τ is small and increases with α; accuracy is about 0.97"
    return _traces(context, Matern(tau=TAU, alpha=ALPHA, truncation=N_MODES), 0.9, claim)


def figure15(context: Context) -> Outcome:
    """Posterior of τ and M: MNIST [1, 4, 9], α = 30, 10 % labelled, γ = 0.9."""
    claim = "paper: M decreases to about 10 when τ is large"
    return _traces(context, Matern(tau=TAU, alpha=30.0, truncation=TRUNCATION), 0.9, claim)


def figure16(context: Context) -> Outcome:
    """Posterior of τ and M: MNIST [1, 4, 9], α = 1, 10 % labelled, γ = 0.9."""
    claim = "paper: both have a small variance, and τ is close to 0"
    return _traces(context, Matern(tau=TAU, alpha=1.0, truncation=TRUNCATION), 0.9, claim)


def figure17(context: Context) -> Outcome:
    """Posterior of α and M: MNIST [1, 4, 9], τ = 0.7, 10 % labelled, γ = 0.9."""
    prior = Matern(tau=0.7, alpha=Uniform(0.1, 90.0), truncation=TRUNCATION)
    return _traces(context, prior, 0.9, "paper: if α is small, M must be small")


def _traces(context: Context, prior: Prior, gamma: float, claim: str) -> Outcome:
    problem = digits(context, (1, 4, 9), context.pick(150, 1000), 80)
    labelled = share(problem.truth, 0.1, context.seed)
    pair = both(context, _posterior(problem, prior, labelled, gamma), problem.truth, BETA)
    rows = pair.rows()
    first, second = pair.converged.hyperparameters
    a, b = (pair.converged.hyperparameters[name].ravel() for name in (first, second))
    rho = float(stats.spearmanr(a, b).statistic)
    rows.append({"quantity": f"rank correlation of {first} and {second}", "converged": rho})
    acceptance = _acceptance(pair)
    rows += [{"quantity": f"acceptance, {k}", "protocol": v} for k, v in acceptance.items()]
    found = {row["quantity"]: row for row in rows}
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
    blocks = pair.protocol.draws.block_acceptance
    assert blocks is not None
    posterior = pair.protocol.posterior
    means = blocks.mean(axis=(0, 1))[posterior.n_fields :]  # the first blocks are the classes
    return dict(zip(posterior.learnt, map(float, means), strict=True))


def _posterior(problem: Problem, prior: Prior, labelled: np.ndarray, gamma: float) -> Posterior:
    n_classes = len(np.unique(problem.truth))
    return problem.posterior(LevelSet(gamma, n_classes), labelled, prior)


def figure18(context: Context) -> Outcome:
    """Acceptance of each class with β = 0.1 for all: MNIST [1, 3, 4, 9], τ = 0, α = 1, γ = 1."""
    return _by_class(context, adapted=False)


def figure19(context: Context) -> Outcome:
    """Acceptance of each class with β adapted to an acceptance of one half during warm-up."""
    return _by_class(context, adapted=True)


def _by_class(context: Context, adapted: bool) -> Outcome:
    classes = (1, 3, 4, 9)
    problem = digits(context, classes, context.pick(300, 1000), 80)
    labelled = share(problem.truth, 0.1, context.seed)
    prior = Matern(tau=0.0, alpha=1.0, truncation=N_MODES)
    posterior = _posterior(problem, prior, labelled, 1.0)
    n_steps = context.pick(20_000, 100_000)
    warmup = 10_000 if adapted else 0
    result = paper_chain(posterior, n_steps, context.seed, BETA, warmup)
    blocks, steps = result.draws.block_acceptance, result.draws.block_step_sizes
    assert blocks is not None
    assert steps is not None
    running = np.cumsum(blocks[0], axis=0) / np.arange(1, len(blocks[0]) + 1)[:, None]
    figure = Figure(figsize=(6.5, 3.4), layout="constrained")
    axes = figure.subplots()
    colors = class_colors(len(classes))
    at = np.arange(1, len(running) + 1) * result.draws.thin
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


def figure20(context: Context) -> Outcome:
    """Median accuracy of five priors against steps: MNIST [3, 4, 5, 9], 1 % labelled."""
    problem = digits(context, (3, 4, 5, 9), context.pick(300, 1213), 81)
    n_steps = context.pick(10_000, 25_000)
    trials = range(context.pick(3, 20))
    rows: list[Row] = []
    figure = Figure(figsize=(6.5, 3.6), layout="constrained")
    axes = figure.subplots()
    colors = class_colors(len(CHOICES))
    for k, (name, prior) in enumerate(CHOICES.items()):
        running, ends, worst = [], [], []
        for trial in trials:
            labelled = share(problem.truth, 0.01, trial)
            posterior = _posterior(problem, prior, labelled, 1e-4)
            chain = paper_chain(posterior, n_steps, trial, BETA, 2_000)
            running.append(_running_accuracy(chain, problem, labelled))
            converged = learn(context, posterior, trial)
            ends.append(accuracy(converged.label_mean, problem.truth, labelled))
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
    rows = Rows(spectrum.eigenvectors[rest], spectrum.node_scale[rest], np.full(len(rest), -1))

    def of_draws(draws: Draws) -> float:
        mean = summarize(draws, chain.posterior.field, rows).label_mean
        return accuracy(mean, problem.truth[rest])

    n = chain.draws.n_samples
    return [of_draws(chain.draws.first(n * k // CHECKS)) for k in range(1, CHECKS + 1)]
