"""Figure 12: the maximum a posteriori estimate on the simulated gas plume."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from matplotlib.figure import Figure

from graphuq import Result, infer
from graphuq.inference import MAP, Point
from graphuq.likelihoods import GinzburgLandau, Likelihood, Probit
from graphuq.results import label_mean
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.bertozzi.hyperspectral import (
    ACCURACY,
    Clock,
    Plume,
    constant_name,
    plume,
    posterior_of,
    stage_summary,
)
from graphuq_papers.claims import Claim, Finding, Row, finding

RECALL = "share of the plume found"  # a column


def _good_classifier(rows: Sequence[Row]) -> Finding:
    first, probit = (
        next(r for r in rows if r.get("q_0") and word in r["model"])
        for word in ("γ = 2.2, probit start", "probit")
    )
    return finding(
        first[RECALL] > 0.9 and first[ACCURACY] > 0.95,
        f"finds {first[RECALL]:.0%} of the plume (probit {probit[RECALL]:.0%})",
    )


@experiment(Claim("Ginzburg-Landau's optimum is a good classifier of the plume.", _good_classifier))
def figure12(context: Context) -> Outcome:
    """Gas plume: maximum a posteriori of Ginzburg-Landau, ε = 1, γ = 2.2, and of probit."""
    data, clock = plume(context), Clock()
    rows: list[Row] = []
    shown: dict[str, np.ndarray] = {}
    for constant in (False, True):
        for model, likelihood, method in _estimators():
            result = infer(posterior_of(context, likelihood, None, constant), method)
            clock.lap(f"{model}, {constant_name(constant)}")
            rows.append(_estimate_row(data, result, model, constant))
            if constant:
                shown[model] = label_mean(result)
    stages = [*data.stages, *clock.laps]
    first = next(r for r in rows if r["q_0"] and "γ = 2.2, probit start" in r["model"])
    return Outcome(
        [*rows, *stages],
        _estimate_sentences(rows, first) + stage_summary(stages),
        _draw_points(data, {name: shown[name] for name in (first["model"], "probit")}),
    )


def _estimators() -> list[tuple[str, Likelihood, MAP]]:
    """Return the name, likelihood and method of each maximum a posteriori estimate."""
    wells = (("γ = 2.2", GinzburgLandau(1.0, 2.2)), ("γ = 0.1", GinzburgLandau(1.0, 0.1)))
    found: list[tuple[str, Likelihood, MAP]] = [("probit", Probit(0.1), MAP(tolerance=1e-6))]
    for noise, likelihood in wells:
        for word, start in (("probit", Probit(0.1)), ("random", "random")):
            method = MAP(solver="flow", start=start, tolerance=1e-4)
            found.append((f"Ginzburg-Landau, {noise}, {word} start", likelihood, method))
    return found


def _estimate_row(data: Plume, result: Result, model: str, constant: bool) -> Row:
    """Return the objective, iterations, accuracy and recall of one estimate."""
    point = cast(Point, result.answer)
    return {
        "model": model,
        "q_0": constant,
        "objective": point.objective,
        "iterations": point.n_iterations,
        ACCURACY: float((label_mean(result) == data.signs).mean()),
        RECALL: float((label_mean(result) == 1)[data.signs > 0].mean()),
    }


def _estimate_sentences(rows: list[Row], first: Row) -> str:
    """Compare the paper's Ginzburg-Landau estimate, the best variant and probit."""
    best = max((r for r in rows if "Ginzburg" in r["model"]), key=lambda r: r[ACCURACY])
    probit = next(r for r in rows if r["q_0"] and r["model"] == "probit")
    return (
        "Maximum a posteriori estimates by Algorithm 4, with q_0. Ginzburg-Landau with the γ of "
        f"the paper, started at the estimate of probit, has accuracy {first[ACCURACY]:.4f} and "
        f"finds a share of {first[RECALL]:.2f} of the plume. With kept eigenvalues near 1, the "
        "prior couples pixels too weakly to move the field from one well to the other. Best "
        f"Ginzburg-Landau variant: {best['model']}, {constant_name(best['q_0'])}, "
        f"{best[ACCURACY]:.4f} ({best[RECALL]:.2f}). Probit: {probit[ACCURACY]:.4f} "
        f"({probit[RECALL]:.2f}). "
    )


def _draw_points(data: Plume, shown: dict[str, np.ndarray]) -> Figure:
    figure = Figure(figsize=(10.5, 2.4 * len(shown)), layout="constrained")
    grid = np.atleast_2d(figure.subplots(len(shown), 3))
    for line, (name, signs) in zip(grid, shown.items(), strict=True):
        for axes, k in zip(line, (2, 4, 6), strict=True):
            axes.imshow(signs.reshape(data.shape)[k], cmap="gray", vmin=-1, vmax=1)
            axes.set_title(f"{name}: frame {k + 1}", fontsize=8)
            axes.set_xticks([])
            axes.set_yticks([])
    return figure
