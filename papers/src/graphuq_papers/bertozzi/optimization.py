"""Figures 13 and 14: the maximum a posteriori estimate as a classifier."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphuq import fiedler_signs, infer
from graphuq.errors import InvalidInput
from graphuq.inference import MAP
from graphuq.likelihoods import GinzburgLandau, Probit
from graphuq.results import label_mean
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.claims import Claim, Finding, Row, cells, finding
from graphuq_papers.problems import Problem, mnist, moons, share

SHARES = (0.005, 0.01, 0.03)  # shares of labelled nodes, as in the paper
METHODS = ("GL, random start", "GL, probit start", "probit", "Fiedler vector")
COLORS = dict(zip(METHODS, ("#c2410c", "#d97706", "#3b6fb6", "#8a8f98"), strict=True))


def _accuracies(problem: Problem, fraction: float, trial: int) -> dict[str, float]:
    """Return the accuracy of each method at the unlabelled nodes; NaN if it did not converge."""
    labelled = share(problem.truth, fraction, trial)
    rest = np.setdiff1d(np.arange(len(problem.truth)), labelled)

    def right(signs: np.ndarray) -> float:
        return float((signs == problem.truth)[rest].mean())

    wells = problem.posterior(GinzburgLandau(epsilon=1.0, noise_std=1.0), labelled)
    found = {}
    for name, posterior, method in (
        (
            "GL, random start",
            wells,
            MAP("flow", "random", max_iterations=20_000, tolerance=1e-5, rng=trial),
        ),
        (
            "GL, probit start",
            wells,
            MAP("flow", Probit(0.1), max_iterations=20_000, tolerance=1e-5),
        ),
        ("probit", problem.posterior(Probit(0.1), labelled), MAP(tolerance=1e-7)),
    ):
        try:
            found[name] = right(label_mean(infer(posterior, method)))
        except InvalidInput:
            found[name] = np.nan
    baseline = right(fiedler_signs(problem.spectrum))
    return found | {"Fiedler vector": max(baseline, 1 - baseline)}


def _slightly_better(rows: Sequence[Row]) -> Finding:
    wells, probit = (
        float(np.mean(cells(rows, "median", {"method": method})))
        for method in ("GL, probit start", "probit")
    )
    return finding(wells >= probit, f"mean of median accuracies {wells:.3f}, probit {probit:.3f}")


def _varies(rows: Sequence[Row]) -> Finding:
    chosen = {method: [r for r in rows if r["method"] == method] for method in METHODS}
    widths = {m: float(np.mean([r["75 %"] - r["25 %"] for r in found]))
              for m, found in chosen.items()}  # fmt: skip
    medians = {m: float(np.mean([r["median"] for r in found])) for m, found in chosen.items()}
    wells = METHODS[0]
    return finding(
        medians[wells] < medians["probit"] and widths[wells] >= max(widths.values()),
        f"accuracy {medians[wells]:.3f}, probit {medians['probit']:.3f}; mean interquartile range "
        f"{widths[wells]:.3f}, probit {widths['probit']:.3f}",
    )


CLAIMS = (
    Claim(
        "Ginzburg-Landau from probit's optimum is slightly better than probit.", _slightly_better
    ),
    Claim("From a random start it is worse than probit, and varies most.", _varies),
)


@experiment(*CLAIMS)
def figure13(context: Context) -> Outcome:
    """Accuracy on two moons against the noise σ of the features; 0.5, 1 and 3 % labelled."""
    sigmas = context.pick((0.06, 0.12), (0.02, 0.04, 0.06, 0.08, 0.1, 0.12))
    rows: list[Row] = []
    for sigma in sigmas:
        found: dict[tuple[float, str], list[float]] = {}
        for trial in context.trials(3, 50):
            problem = moons(context, sigma, trial)
            for fraction in SHARES:
                for method, value in _accuracies(problem, fraction, trial).items():
                    found.setdefault((fraction, method), []).append(value)
        rows += [_row(sigma, *key, values) for key, values in found.items()]
    return _outcome(rows, "standard deviation σ of the feature noise", "two moons")


@experiment(*CLAIMS)
def figure14(context: Context) -> Outcome:
    """Accuracy on MNIST (4, 9) with 0.5, 1 and 3 % labelled."""
    problem = mnist(context, (4, 9))
    rows: list[Row] = []
    for fraction in SHARES:
        trials = [_accuracies(problem, fraction, trial) for trial in context.trials(5, 50)]
        rows += [
            _row(fraction, fraction, method, [trial[method] for trial in trials])
            for method in METHODS
        ]
    return _outcome(rows, "share of labelled nodes", "MNIST (4, 9)")


def _row(x: float, fraction: float, method: str, values: list[float]) -> Row:
    low, median, high = np.nanquantile(values, [0.25, 0.5, 0.75])
    return {
        "horizontal axis": x,
        "share labelled": fraction,
        "method": method,
        "25 %": float(low),
        "median": float(median),
        "75 %": float(high),
        "trials": len(values),
        "trials without convergence": int(np.isnan(values).sum()),
    }


def _outcome(rows: list[Row], axis: str, data: str) -> Outcome:
    """Summarize the accuracy of each method, and draw them."""
    medians = {
        method: float(np.mean([r["median"] for r in rows if r["method"] == method]))
        for method in METHODS
    }
    widths = {
        method: float(np.mean([r["75 %"] - r["25 %"] for r in rows if r["method"] == method]))
        for method in METHODS
    }
    return Outcome(
        rows,
        f"{data}: median accuracy, averaged over all settings, and in brackets the interquartile "
        "range: "
        + ", ".join(f"{m} {medians[m]:.3f} ({widths[m]:.3f})" for m in METHODS)
        + ". GL stands for Ginzburg-Landau.",
        _draw(rows, axis, data),
    )


def _draw(rows: list[Row], axis: str, data: str) -> Figure:
    """Draw accuracy against the axis, in one panel for each share if the axis is not the share."""
    panels = SHARES if axis.startswith("standard") else (None,)
    figure = Figure(figsize=(4.2 * len(panels) + 1.5, 3.4), layout="constrained")
    grid = np.atleast_1d(figure.subplots(1, len(panels), sharey=True))
    for axes, fraction in zip(grid, panels, strict=True):
        for method in METHODS:
            _draw_method(axes, rows, method, fraction)
        axes.set_xlabel(axis)
        axes.set_title(data if fraction is None else f"{100 * fraction:g} % labelled")
        axes.spines[["top", "right"]].set_visible(False)
    grid[0].set_ylabel("accuracy (median and quartiles)")
    handles = grid[-1].get_legend_handles_labels()
    figure.legend(*handles, loc="outside right upper", frameon=False, fontsize=8)
    return figure


def _draw_method(axes: Axes, rows: list[Row], method: str, fraction: float | None) -> None:
    """Draw the median and quartiles of one method, for one share of labelled nodes or for all."""
    chosen = [r for r in rows if r["method"] == method and fraction in (None, r["share labelled"])]
    middle = np.array([r["median"] for r in chosen])
    spread = [
        middle - [r["25 %"] for r in chosen],
        np.array([r["75 %"] for r in chosen]) - middle,
    ]
    axes.errorbar(
        [r["horizontal axis"] for r in chosen],
        middle,
        spread,
        fmt="o-",
        capsize=2,
        label=method,
        color=COLORS[method],
        markersize=4,
        linewidth=1,
    )
