"""Figures 1 to 5: evidence and tuned accuracy against the parameters of the graph."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from graphuq.errors import DisconnectedGraphWarning, GraphuqError
from graphuq.graphs import TanhWeights
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.claims import Claim, Finding, Row, cells, finding, listed
from graphuq_papers.zhu.tasks import (
    MAX_NEIGHBORS,
    Task,
    accuracies,
    classifier,
    evidence_search,
    tasks,
)

COLUMNS = 3  # panels per row of a figure; two rows show the six tasks
Values = Sequence[float | int] | np.ndarray


EVIDENCE, TUNED, EDGES = "log evidence", "tuned accuracy", "edges"  # columns
MOST = 5  # tasks of six in which a general statement must hold
NEAR = 0.05  # tuned accuracy that counts as near the best
# The paper's optima; its digits have distances of another scale.
PAPERS_K = {"1/2": 2, "2/3": 2, "o/e": 3, "b/h": 2, "p/m": 5, "r/a": 4}
PAPERS_RADIUS = {"b/h": 0.91, "p/m": 0.91, "r/a": 0.90}
PAPERS_TANH = {"b/h": (0.88, 81.7), "p/m": (0.80, 53.3), "r/a": (0.82, 49.5)}
# The paper has exp(−d²/α²), the library exp(−d²/2s²).
PAPERS_SCALE = {"b/h": 0.57 / 2**0.5, "p/m": 0.59 / 2**0.5, "r/a": 0.86 / 2**0.5}
MARKS = "vertical lines: the largest evidence here (solid) and in the paper (dashed)"
MARKS_2 = "circle: the point that the search finds; cross: the paper's"
FOUND = "found by"  # column of figures 3 and 4: the grid, or the search


def _curves_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the points of each task where the model can be fitted."""
    names = dict.fromkeys(row["task"] for row in rows)
    return {n: [r for r in rows if r["task"] == n and np.isfinite(r[EVIDENCE])] for n in names}


def _best(rows: Sequence[Row]) -> dict[str, Row]:
    """Return the point of the largest evidence of each task."""
    return {n: max(points, key=lambda r: r[EVIDENCE]) for n, points in _curves_of(rows).items()}


def _in_most(found: Iterable[bool]) -> bool:
    return sum(found) >= MOST


def _small_k(rows: Sequence[Row]) -> Finding:
    found = [row["n_neighbors"] for row in _best(rows).values()]
    return finding(
        _in_most(k <= 10 for k in found), f"k of the largest evidence {listed(found, 'd')}"
    )


def _together(rows: Sequence[Row]) -> Finding:
    found = [
        _rank_correlation(np.array(cells(points, EVIDENCE)), np.array(cells(points, TUNED)))
        for points in _curves_of(rows).values()
    ]
    return finding(
        _in_most(rho > 0.5 for rho in found), f"rank correlations {listed(found, '+.2f')}"
    )


def _more_edges(rows: Sequence[Row]) -> Finding:
    found = {name: row[EDGES] / row["nodes"] for name, row in _best(rows).items()}
    words = ", ".join(f"{name} {value:.0f}" for name, value in found.items())
    more = _in_most(value > 10 for value in found.values())
    return finding(more, f"edges per node: {words}; the best k give 2 to 5")


def _near_best(rows: Sequence[Row]) -> Finding:
    """Compare accuracy at the largest evidence with the largest accuracy."""
    tops = {r["task"]: r for r in rows if r.get(FOUND) == "search"} or _best(rows)
    grid = [r for r in rows if r.get(FOUND) != "search"]
    loss = {
        name: max(cells(points, TUNED)) - tops[name][TUNED]
        for name, points in _curves_of(grid).items()
    }
    words = ", ".join(f"{name} {value:.2f}" for name, value in loss.items())
    near = _in_most(value < NEAR for value in loss.values())
    return finding(near, f"below the best of the figure by {words}")


def _finds_top(rows: Sequence[Row]) -> Finding:
    tops = {r["task"]: r[EVIDENCE] for r in rows if r[FOUND] == "search"}
    grid = _best([r for r in rows if r[FOUND] == "grid"])
    gains = {name: tops[name] - row[EVIDENCE] for name, row in grid.items()}
    words = ", ".join(f"{name} {value:+.2f}" for name, value in gains.items())
    return finding(min(gains.values()) > -0.1, f"found − best of the grid: {words}")


NEAR_BEST = Claim(
    "At the largest evidence tuned accuracy is near its best (0.05; five of six).", _near_best
)


@experiment(
    Claim("Small k have the largest evidence (10 or less; five tasks of six).", _small_k),
    Claim("Evidence and tuned accuracy correlate well (above 0.5; five of six).", _together),
)
def figure1(context: Context) -> Outcome:
    """Evidence and tuned accuracy against k: unweighted graphs of k nearest neighbours."""
    values = np.unique(np.geomspace(1, MAX_NEIGHBORS, context.pick(8, 20)).round()).astype(int)
    choose = lambda task: [int(k) for k in values]  # noqa: E731
    return _curves(context, "knn", "n_neighbors", "k", choose, PAPERS_K)


@experiment(
    Claim(
        "The best ε gives far more edges than the best k (ten per node; five of six).", _more_edges
    ),
    NEAR_BEST,
)
def figure2(context: Context) -> Outcome:
    """Evidence and tuned accuracy against ε: unweighted graphs of all pairs nearer than ε."""
    return _curves(
        context,
        "epsilon",
        "graph__radius",
        "ε",
        lambda task: _lengths(context, task),
        PAPERS_RADIUS,
    )


@experiment(NEAR_BEST)
def figure5(context: Context) -> Outcome:
    """Evidence and tuned accuracy against the length scale of exponential weights."""

    def lengths(task: Task) -> list[float]:
        # Up to where nearly all weights are 1: the evidence has its optimum before, or none.
        low, high = _range(task)
        return np.geomspace(low / np.sqrt(18), 2 * high, 24).tolist()

    return _curves(context, "exp", "weights__scale", "length scale", lengths, PAPERS_SCALE)


def _lengths(context: Context, task: Task) -> list[float]:
    """Return lengths from the 0.02 % to the 60 % quantile of all distances."""
    return np.geomspace(*_range(task), context.pick(6, 16)).tolist()


def _range(task: Task) -> tuple[float, float]:
    """Return the 0.02 % and the 60 % quantile of all distances."""
    low, high = np.quantile(task.distances[task.distances > 0], [2e-4, 0.6])
    return float(low), float(high)


def _curves(
    context: Context,
    graph: str,
    name: str,
    symbol: str,
    values: Callable[[Task], Sequence[float]],
    papers: Mapping[str, Any],
) -> Outcome:
    """Draw evidence and tuned accuracy of each task along a parameter, with the paper's optimum."""
    rows: list[Row] = []
    found = []
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    for task, axes in zip(tasks(context), figure.subplots(2, COLUMNS).ravel(), strict=True):
        labelled = task.draw(1000 * context.seed)
        at = values(task)
        points = [_point(graph, task, labelled, {name: x}) for x in at]
        n_nodes = len(task.truth)
        rows += [
            {"task": task.name, "nodes": n_nodes, name: x, **p}
            for x, p in zip(at, points, strict=True)
        ]
        evidence, tuned = (np.array([p[key] for p in points]) for key in (EVIDENCE, TUNED))
        kept = np.isfinite(evidence)
        best = int(np.nanargmax(np.where(kept, evidence, -np.inf)))
        ranks = _rank_correlation(evidence[kept], tuned[kept])
        end = ", the end of the curve" if best in (0, len(at) - 1) else ""
        found.append(
            f"{task.name}: {symbol} = {at[best]:.3g}{end}, tuned accuracy {tuned[best]:.3f} "
            f"(largest on the curve {np.nanmax(tuned):.3f}), rank correlation {ranks:.2f}"
        )
        marks = float(at[best]), papers.get(task.name)
        _draw_curve(axes, at, evidence, tuned, marks, task.name, symbol)
    figure.suptitle(MARKS, fontsize=9)
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
            return {EVIDENCE: np.nan, "accuracy": np.nan, TUNED: np.nan, EDGES: np.nan}
    plain, tuned = accuracies(fitted.result_, task, labelled)
    evidence = float(fitted.result_.log_evidence or np.nan)
    n_edges = fitted.graph_.n_edges
    return {EVIDENCE: evidence, "accuracy": plain, TUNED: tuned, EDGES: n_edges}


def _rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(x, y).statistic)


def _draw_curve(
    axes: Axes,
    at: Values,
    evidence: np.ndarray,
    tuned: np.ndarray,
    marks: tuple[float, Any],
    title: str,
    symbol: str,
) -> None:
    """Draw evidence and tuned accuracy of one task, and both optima: ours and the paper's."""
    beside = axes.twinx()
    axes.semilogx(at, evidence, "o-", color="#1f5f8b", markersize=3)
    beside.semilogx(at, tuned, "s--", color="#c2410c", markersize=3)
    for mark, style in zip(marks, (("-", "#8a8f98"), ("--", "#1f2328")), strict=True):
        if mark is not None:
            axes.axvline(mark, linewidth=1, linestyle=style[0], color=style[1])
    _plain_ticks(axes.xaxis, at)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(symbol)
    axes.set_ylabel("log evidence", color="#1f5f8b")
    beside.set_ylabel("tuned accuracy", color="#c2410c")
    for part in (axes, beside):
        part.spines["top"].set_visible(False)


def _plain_ticks(axis: Axis, values: Values) -> None:
    """Label a logarithmic axis with numbers instead of powers of ten, whole ones if they are k."""
    places = np.geomspace(min(values), max(values), 3)
    if all(isinstance(value, int) for value in values):
        places = np.array([k for k in (1, 2, 5, 10, 20, 50, MAX_NEIGHBORS) if k <= max(values)])
    axis.set_minor_locator(NullLocator())
    axis.set_ticks(places, [f"{x:.2g}" if x < 1 else f"{x:.3g}" for x in places])


@experiment(Claim("Ascent finds the maximum of the evidence (within 0.1).", _finds_top))
def figure3(context: Context) -> Outcome:
    """Evidence of graphs with tanh weights as a surface, and the maximum that the search finds."""
    return _surfaces(context, EVIDENCE)


@experiment(NEAR_BEST)
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
    figure.suptitle(MARKS_2, fontsize=9)
    text = "; ".join(found)
    rows = [{**row, FOUND: "grid"} for row in rows]
    rows += [
        {"task": name, "cutoff": top["weights__cutoff"], "steepness": top["weights__steepness"],
         EVIDENCE: top[EVIDENCE], TUNED: top[TUNED], FOUND: "search"}
        for name, top in searches.items()
    ]  # fmt: skip
    return Outcome(rows, f"Log evidence of the maximum that the search finds. {text}.", figure)


def _draw_surface(
    axes: Axes, rows: list[Row], top: dict[str, float], title: str, quantity: str
) -> None:
    """Draw a quantity on the grid of one task, and the point `top` that the search finds."""
    x, y = (np.unique([r[k] for r in rows]) for k in ("cutoff", "steepness"))
    values = np.array([r[quantity] for r in rows]).reshape(len(x), len(y))
    mesh = axes.pcolormesh(x, y, values.T, cmap="viridis", shading="nearest")
    cutoff, steepness = top["weights__cutoff"], top["weights__steepness"]
    inside = _within(x, y, cutoff, steepness)
    if inside:
        axes.plot(cutoff, steepness, "o", color="#ffffff", markeredgecolor="#c2410c",
                  markeredgewidth=2)  # fmt: skip
    if title in PAPERS_TANH and _within(x, y, *PAPERS_TANH[title]):
        axes.plot(*PAPERS_TANH[title], "X", color="#c2410c", markeredgecolor="#ffffff")
    axes.set(xscale="log", yscale="log", xlabel="cutoff", ylabel="steepness")
    _plain_ticks(axes.xaxis, x)
    _plain_ticks(axes.yaxis, y)
    axes.set_title(title + ("" if inside else " (maximum off the grid)"), fontsize=10)
    axes.figure.colorbar(mesh, ax=axes, label=quantity)


def _within(x: np.ndarray, y: np.ndarray, cutoff: float, steepness: float) -> bool:
    """Return whether a point is on the grid."""
    return bool(x[0] <= cutoff <= x[-1] and y[0] <= steepness <= y[-1])
