"""Figures 1 to 5: evidence and tuned accuracy against the parameters of the graph."""

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from graphuq.errors import DisconnectedGraphWarning, GraphuqError
from graphuq.experiments.base import Context, Outcome, Row
from graphuq.experiments.zhu.tasks import (
    MAX_NEIGHBORS,
    Task,
    accuracies,
    classifier,
    evidence_search,
    tasks,
)
from graphuq.graphs import TanhWeights

COLUMNS = 3  # panels per row of a figure; two rows show the six tasks
Values = Sequence[float | int] | np.ndarray


EVIDENCE, TUNED = "log evidence", "tuned accuracy"  # columns


def figure1(context: Context) -> Outcome:
    """Evidence and tuned accuracy against k: unweighted graphs of k nearest neighbours."""
    values = np.unique(np.geomspace(1, MAX_NEIGHBORS, context.pick(8, 20)).round()).astype(int)
    return _curves(context, "knn", "n_neighbors", "k", lambda task: [int(k) for k in values])


def figure2(context: Context) -> Outcome:
    """Evidence and tuned accuracy against ε: unweighted graphs of all pairs nearer than ε."""
    return _curves(context, "epsilon", "radius", "ε", lambda task: _lengths(context, task))


def figure5(context: Context) -> Outcome:
    """Evidence and tuned accuracy against the length scale of exponential weights."""

    def lengths(task: Task) -> list[float]:
        return [x / np.sqrt(2) / 3 for x in _lengths(context, task)]

    return _curves(context, "exp", "scale", "length scale", lengths)


def _lengths(context: Context, task: Task) -> list[float]:
    """Return lengths from the 0.02 % to the 60 % quantile of all distances."""
    positive = task.distances[task.distances > 0]
    low, high = np.quantile(positive, [2e-4, 0.6])
    return [float(x) for x in np.geomspace(low, high, context.pick(6, 16))]


def _curves(
    context: Context,
    graph: str,
    name: str,
    symbol: str,
    values: Callable[[Task], Sequence[float]],
) -> Outcome:
    rows, found = [], []
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    for task, axes in zip(tasks(context), figure.subplots(2, COLUMNS).ravel(), strict=True):
        labelled = task.draw(1000 * context.seed)
        at = values(task)
        points = [_point(graph, task, labelled, {name: x}) for x in at]
        rows += [{"task": task.name, name: x, **p} for x, p in zip(at, points, strict=True)]
        evidence, tuned = (np.array([p[key] for p in points]) for key in (EVIDENCE, TUNED))
        kept = np.isfinite(evidence)
        best = int(np.nanargmax(np.where(kept, evidence, -np.inf)))
        ranks = _rank_correlation(evidence[kept], tuned[kept])
        found.append(
            f"{task.name}: {symbol} = {at[best]:.3g}, tuned accuracy {tuned[best]:.3f} (largest on "
            f"the curve {np.nanmax(tuned):.3f}), rank correlation {ranks:.2f}"
        )
        _draw_curve(axes, at, evidence, tuned, float(at[best]), task.name, symbol)
    return Outcome(
        rows,
        f"At the {symbol} of the largest evidence, and rank correlation of evidence and tuned "
        f"accuracy along the curve. {'; '.join(found)}.",
        figure,
    )


def _point(
    graph: str, task: Task, labelled: Int[np.ndarray, " J"], changes: dict[str, Any]
) -> dict[str, float]:
    """Return evidence and accuracies of one graph; NaN if the model cannot be fitted on it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedGraphWarning)
        try:
            fitted = classifier(graph, task).set_params(**changes)
            fitted.fit(task.distances, task.given(labelled))
        except GraphuqError:
            return {EVIDENCE: np.nan, "accuracy": np.nan, TUNED: np.nan}
    plain, tuned = accuracies(fitted.result_, task, labelled)
    evidence = float(fitted.result_.log_evidence or np.nan)
    return {EVIDENCE: evidence, "accuracy": plain, TUNED: tuned}


def _rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(x, y).statistic)


def _draw_curve(
    axes: Axes,
    at: Values,
    evidence: np.ndarray,
    tuned: np.ndarray,
    best: float,
    title: str,
    symbol: str,
) -> None:
    beside = axes.twinx()
    axes.semilogx(at, evidence, "o-", color="#1f5f8b", markersize=3)
    beside.semilogx(at, tuned, "s--", color="#c2410c", markersize=3)
    axes.axvline(best, color="#8a8f98", linewidth=0.8)
    _plain_ticks(axes.xaxis, at)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(symbol)
    axes.set_ylabel("log evidence", color="#1f5f8b")
    beside.set_ylabel("tuned accuracy", color="#c2410c")
    for part in (axes, beside):
        part.spines["top"].set_visible(False)


def _plain_ticks(axis: Axis, values: Values) -> None:
    """Label a logarithmic axis at four places, with numbers instead of powers of ten."""
    places = np.geomspace(min(values), max(values), 4)
    axis.set_minor_locator(NullLocator())
    axis.set_ticks(places, [f"{x:.3g}" for x in places])


def figure3(context: Context) -> Outcome:
    """Evidence of graphs with tanh weights as a surface, and the maximum that the search finds."""
    return _surfaces(context, EVIDENCE)


def figure4(context: Context) -> Outcome:
    """Tuned accuracy of graphs with tanh weights as a surface, and the point the search finds."""
    return _surfaces(context, TUNED)


@lru_cache(maxsize=2)
def _grid(context: Context) -> list[Row]:
    """Return evidence and accuracies on a grid of cutoffs and steepnesses for each task."""
    n = context.pick(4, 8)
    rows = []
    for task in tasks(context):
        labelled = task.draw(1000 * context.seed)
        low, high = np.quantile(task.distances[task.distances > 0], [1e-3, 0.5])
        for cutoff in np.geomspace(low, high, n):
            for slope in np.geomspace(1.0, 300.0, n):  # steepness, in units of 1 / median distance
                weights = TanhWeights(float(slope / high), float(cutoff))
                point = _point("tanh", task, labelled, {"weights": weights})
                rows.append(
                    {"task": task.name, "cutoff": cutoff, "steepness": weights.steepness, **point}
                )
    return rows


@lru_cache(maxsize=2)
def _search_results(context: Context) -> dict[str, dict[str, float]]:
    """Return parameters, evidence and tuned accuracy that the search finds for each task."""
    found = {}
    for task in tasks(context):
        labelled = task.draw(1000 * context.seed)
        search = evidence_search("tanh", task, labelled, context.seed)
        tuned = accuracies(search.best_estimator_.result_, task, labelled)[1]
        found[task.name] = search.best_params_ | {EVIDENCE: search.best_score_, TUNED: tuned}
    return found


def _surfaces(context: Context, quantity: str) -> Outcome:
    """Draw a quantity on the grid of each task, and compare the search with the grid."""
    rows, searches = _grid(context), _search_results(context)
    figure = Figure(figsize=(10, 5.6), layout="constrained")
    found = []
    for name, axes in zip(searches, figure.subplots(2, COLUMNS).ravel(), strict=True):
        chosen = [r for r in rows if r["task"] == name]
        top = searches[name]
        _draw_surface(axes, chosen, top, name, quantity)
        best = max(chosen, key=lambda r: r[EVIDENCE])
        found.append(
            f"{name}: {top[EVIDENCE]:.2f} (largest on the grid {best[EVIDENCE]:.2f}), tuned "
            f"accuracy {top[TUNED]:.3f}"
        )
    text = "; ".join(found)
    return Outcome(rows, f"Log evidence of the maximum that the search finds. {text}.", figure)


def _draw_surface(
    axes: Axes, rows: list[Row], top: dict[str, float], title: str, quantity: str
) -> None:
    """Draw a quantity on the grid of one task, and the point `top` that the search finds."""
    x, y = (np.unique([r[k] for r in rows]) for k in ("cutoff", "steepness"))
    values = np.array([r[quantity] for r in rows]).reshape(len(x), len(y))
    mesh = axes.pcolormesh(x, y, values.T, cmap="viridis", shading="nearest")
    cutoff, steepness = top["weights__cutoff"], top["weights__steepness"]
    inside = x[0] <= cutoff <= x[-1] and y[0] <= steepness <= y[-1]
    if inside:
        axes.plot(cutoff, steepness, "o", color="#ffffff", markeredgecolor="#c2410c",
                  markeredgewidth=2)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="cutoff", ylabel="steepness")
    _plain_ticks(axes.xaxis, x)
    _plain_ticks(axes.yaxis, y)
    axes.set_title(title + ("" if inside else " (maximum off the grid)"), fontsize=10)
    axes.figure.colorbar(mesh, ax=axes, label=quantity)
