"""Table 1 and figures 6, 7 and 8: posterior variance of the labels."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from graphuq.likelihoods import LevelSet, Likelihood, Probit
from graphuq.results import mean_label_variance
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.bertozzi.setup import converged, protocol, truncated
from graphuq_papers.claims import Claim, Finding, Row, cells, falls, finding, listed, rises
from graphuq_papers.problems import MNIST_PAIRS, Problem, mnist, moons, rhat, share

PAIRS = ((4, 9), (3, 8), (0, 6), (5, 7))
PAPER = {  # mean label variance of each pair, printed in table 1
    "probit": (0.1485, 0.1005, 0.0429, 0.0084),
    "level set": (0.1280, 0.1018, 0.0489, 0.0121),
}
MODELS: dict[str, Callable[[float], Likelihood]] = {"probit": Probit, "level set": LevelSet}
STEPS, STEP_SIZE = 10_000, 0.3  # the paper's number of pCN steps, and its β for table 1
COLORS = {"probit": "#3b6fb6", "level set": "#d97706"}


SHORT = "protocol, 50 pairs"  # a column of table 1
CONVERGED = "converged, 50 pairs"  # another one


def _falling(rows: Sequence[Row]) -> Finding:
    fall = {
        column: all(falls(cells(rows, column, {"model": model})) for model in MODELS)
        for column in ("converged", CONVERGED, "protocol", SHORT)
    }
    words = "; ".join(
        f"{column} {listed(cells(rows, column, {'model': 'probit'}))}"
        for column in ("protocol", "converged")
    )
    worst = max(row["largest R-hat"] for row in rows)
    return finding(fall["converged"] and fall[CONVERGED], words, fall["protocol"], worst)


def _printed(rows: Sequence[Row]) -> Finding:
    def off(column: str) -> float:
        return float(np.max([abs(np.log(row[column] / row["paper"])) for row in rows]))

    words = "; ".join(
        f"{column} off by at most a factor {np.exp(off(column)):.1f}"
        for column in ("converged", "protocol", SHORT)
    )
    limit = np.log(1.25)
    return finding(off("converged") < limit, words, protocol=off("protocol") < limit)


@experiment(
    Claim("Label variance falls in the order (4, 9), (3, 8), (0, 6), (5, 7).", _falling),
    Claim("Mean label variances are those printed (within a quarter).", _printed),
)
def table1(context: Context) -> Outcome:
    """Mean label variance of four pairs of digits; 4 % labelled, γ = 0.1."""
    rows: list[Row] = []
    trials = context.trials(1, 10)
    for k, pair in enumerate(PAIRS):
        problem = mnist(context, pair)
        for model, likelihood in MODELS.items():
            found: dict[str, list[float]] = {}
            for trial in trials:
                labelled = share(problem.truth, 0.04, trial)
                posterior = problem.posterior(likelihood(0.1), labelled)
                chain = protocol(posterior, STEPS, STEP_SIZE, trial)
                result = converged(posterior, trial)
                smoother = truncated(problem, 50).posterior(likelihood(0.1), labelled)
                short = protocol(smoother, STEPS, STEP_SIZE, trial)
                for name, value in (
                    ("protocol", chain.mean_label_variance),
                    ("converged", mean_label_variance(result)),
                    (CONVERGED, mean_label_variance(converged(smoother, trial))),
                    (SHORT, short.mean_label_variance),
                    ("protocol acceptance", chain.acceptance),
                    ("R-hat", rhat(result)),
                ):
                    found.setdefault(name, []).append(float(value))
            worst = max(found.pop("R-hat"))
            means = {name: float(np.mean(values)) for name, values in found.items()}
            row = {"digits": f"({pair[0]}, {pair[1]})", "model": model, "paper": PAPER[model][k]}
            rows.append(row | means | {"largest R-hat": worst, "trials": len(trials)})
    columns = ("protocol", "converged", SHORT, CONVERGED)
    n_falling = sum(
        falls(cells(rows, column, {"model": model})) for column in columns for model in MODELS
    )
    first = rows[0]
    return Outcome(
        rows,
        "The paper says that the variance decreases in the order (4, 9), (3, 8), (0, 6), (5, 7). "
        f"This holds in {n_falling} of {len(columns) * len(MODELS)} combinations of column and "
        "model. The printed values are not reproduced. For (4, 9) and probit the paper prints "
        f"{first['paper']}. With {MNIST_PAIRS} eigenpairs, its protocol gives "
        f"{first['protocol']:.3f} (acceptance {100 * first['protocol acceptance']:.1f} %) and "
        f"converged chains give {first['converged']:.3f}; with 50 eigenpairs these are "
        f"{first[SHORT]:.3f} and {first[CONVERGED]:.3f}.",
        _bars(rows),
    )


def _bars(rows: list[Row]) -> Figure:
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    columns = ("paper", SHORT, "protocol", CONVERGED, "converged")
    shades = ("#1f2328", "#f2c48d", "#d97706", "#9db8dc", "#3b6fb6")
    for axes, model in zip(figure.subplots(1, 2, sharey=True), MODELS, strict=True):
        chosen = [r for r in rows if r["model"] == model]
        for k, (column, shade) in enumerate(zip(columns, shades, strict=True)):
            at = np.arange(len(chosen)) + 0.17 * (k - 2)
            axes.bar(at, [r[column] for r in chosen], 0.17, color=shade, label=column)
        axes.set_xticks(np.arange(len(chosen)), [r["digits"] for r in chosen])
        axes.set(title=model, xlabel="digits")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("mean label variance, Var(l)")
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


class FigurePoint(NamedTuple):
    """One point of a figure.

    Attributes
    ----------
    data : str
        Name of the data set.
    position : float
        Position on the horizontal axis.
    fraction : float
        Share of nodes that are labelled.
    noise : float
        γ of the likelihood.
    problem : callable
        Function that returns the problem of a trial, given the trial's number.
    """

    data: str
    position: float
    fraction: float
    noise: float
    problem: Callable[[int], Problem]


def _digits(context: Context, trial: int) -> Problem:
    """Return MNIST (4, 9): every trial has the same images and other labelled nodes."""
    return mnist(context, (4, 9))


def _monotone(up: bool) -> Callable[[Sequence[Row]], Finding]:
    """Return the judge of curves of the label variance, which rise or fall within errors."""
    follows = rises if up else falls

    def judge(rows: Sequence[Row]) -> Finding:
        curves = _curves(list(rows)).values()
        errors = [cells(curve, "standard error") for curve in curves]
        found = {
            column: [
                follows(cells(curve, column), error)
                for curve, error in zip(curves, errors, strict=True)
            ]
            for column in ("converged", "protocol")
        }
        ends = "; ".join(
            f"{data} {curve[0]['converged']:.2f} to {curve[-1]['converged']:.2f}"
            for (data, model), curve in _curves(list(rows)).items()
            if model == "probit"
        )
        worst = max(row["largest R-hat"] for row in rows)
        words = f"probit {ends}; the paper's chains in {sum(found['protocol'])} of {len(errors)}"
        return finding(all(found["converged"]), words, all(found["protocol"]), worst)

    return judge


def _alike(rows: Sequence[Row]) -> Finding:
    """Compare the two models at γ = 0.1."""
    gaps = []
    for column in ("converged", "protocol"):
        values = np.log(cells(rows, column, {"label noise γ": 0.1}))
        gaps.append(float(abs(values[::2] - values[1::2]).max()))  # the models take turns
    differ, chains = np.expm1(gaps)
    words = f"they differ by at most {differ:.0%} (the paper's chains {chains:.0%})"
    return finding(gaps[0] < 0.1, words, gaps[1] < 0.1)


@experiment(Claim("Label variance rises with the noise of the features.", _monotone(True)))
def figure6(context: Context) -> Outcome:
    """Label variance on two moons against the noise σ of the features; 3 % labelled, γ = 0.1."""
    sigmas = context.pick((0.02, 0.07, 0.12), tuple(np.arange(2, 13) / 100))
    cases = [
        FigurePoint("two moons", float(s), 0.03, 0.1, partial(moons, context, float(s)))
        for s in sigmas
    ]
    return _study(context, cases, "standard deviation σ of the feature noise", 0.3, True)


@experiment(Claim("Label variance falls as more nodes are labelled.", _monotone(False)))
def figure7(context: Context) -> Outcome:
    """Label variance against the share of labelled nodes; γ = 0.1."""
    shares = context.pick((0.01, 0.03, 0.1), (0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1))
    cases = [
        FigurePoint("two moons", part, part, 0.1, partial(moons, context, 0.06)) for part in shares
    ]
    cases += [
        FigurePoint("MNIST (4, 9)", part, part, 0.1, partial(_digits, context)) for part in shares
    ]
    return _study(context, cases, "share of labelled nodes", 0.1, False)


@experiment(
    Claim("Label variance rises with the noise γ of the labels.", _monotone(True)),
    Claim("At γ = 0.1 probit and level set have nearly the same variance.", _alike),
)
def figure8(context: Context) -> Outcome:
    """Label variance against the label noise γ; 3 % (two moons) and 4 % (MNIST) labelled."""
    noises = context.pick((0.1, 0.3, 1.0), (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0))
    cases = [
        FigurePoint("two moons", noise, 0.03, noise, partial(moons, context, 0.06))
        for noise in noises
    ]
    cases += [
        FigurePoint("MNIST (4, 9)", noise, 0.04, noise, partial(_digits, context))
        for noise in noises
    ]
    return _study(context, cases, "label noise γ", 0.3, True)


def _study(
    context: Context, cases: list[FigurePoint], axis: str, step_size: float, up: bool
) -> Outcome:
    """Compute the mean label variance of each case, by the paper's protocol and converged."""
    rows: list[Row] = []
    trials = context.trials(2, 20)
    for case in cases:
        for model in MODELS:
            means = _case_means(case, model, step_size, trials)
            rows.append({"data": case.data, axis: case.position, "model": model} | means)
    text = "; ".join(_trend_sentences(rows, up))
    return Outcome(
        rows,
        f"Mean label variance of converged chains along the axis. {text}.",
        _draw_study(rows, axis),
    )


def _case_means(case: FigurePoint, model: str, step_size: float, trials: range) -> Row:
    """Return means over trials of the label variance of one case and model."""
    values = []
    for trial in trials:
        problem = case.problem(trial)
        labelled = share(problem.truth, case.fraction, trial)
        posterior = problem.posterior(MODELS[model](case.noise), labelled)
        result = converged(posterior, trial)
        values.append(
            (
                protocol(posterior, STEPS, step_size, trial).mean_label_variance,
                mean_label_variance(result),
                rhat(result),
            )
        )
    chain, converged_mean, _ = np.mean(values, axis=0)
    return {
        "protocol": float(chain),
        "converged": float(converged_mean),
        "standard error": float(np.std([v[1] for v in values], ddof=1) / np.sqrt(len(trials))),
        "largest R-hat": max(v[2] for v in values),
        "trials": len(trials),
    }


def _curves(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of each data set and model, in the order of the figure."""
    names = dict.fromkeys(row["data"] for row in rows)
    return {
        (data, model): [r for r in rows if r["data"] == data and r["model"] == model]
        for data in names
        for model in MODELS
    }


def _trend_sentences(rows: list[Row], up: bool) -> list[str]:
    """State for each data set and model whether the label variance is monotone along the axis."""
    sentences = []
    for (data, model), chosen in _curves(rows).items():
        y = [r["converged"] for r in chosen]
        follows = rises(y) if up else falls(y)
        sentences.append(
            f"{data}, {model}: {'rises' if up else 'falls'} from {y[0]:.3f} to {y[-1]:.3f}"
            if follows
            else f"{data}, {model}: not monotone ({', '.join(f'{v:.3f}' for v in y)})"
        )
    return sentences


def _draw_study(rows: list[Row], axis: str) -> Figure:
    """Draw the label variance against the axis, in one panel for each data set."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure = Figure(figsize=(5 * len(names), 3.6), layout="constrained")
    panels = dict(zip(names, np.atleast_1d(figure.subplots(1, len(names))), strict=True))
    for (data, model), chosen in _curves(rows).items():
        axes, color = panels[data], COLORS[model]
        x = [r[axis] for r in chosen]
        y = [r["converged"] for r in chosen]
        error = [r["standard error"] for r in chosen]
        axes.errorbar(x, y, error, fmt="o-", color=color, label=model, capsize=2)
        chain_means = [r["protocol"] for r in chosen]
        axes.plot(x, chain_means, "x:", color=color, label=f"{model}, the paper's chain")
    for data, axes in panels.items():
        axes.set(title=data, xlabel=axis, ylabel="mean label variance, Var(l)", ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    return figure
