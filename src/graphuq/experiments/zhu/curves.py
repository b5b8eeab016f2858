"""Evidence and tuned accuracy against the graphs' parameters: figures 1 to 5."""

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from graphuq.errors import DisconnectedGraphWarning, GraphuqError
from graphuq.experiments.base import Context, Outcome
from graphuq.experiments.zhu.tasks import MAX_NEIGHBORS, Task, classifier, judged, searched, tasks
from graphuq.graphs import TanhWeights

COLUMNS = 3


def figure1(context: Context) -> Outcome:
    """Evidence and tuned accuracy against k of unweighted nearest-neighbour graphs."""
    values = np.unique(np.geomspace(1, MAX_NEIGHBORS, context.pick(8, 20)).round()).astype(int)
    return _curves(context, "knn", "n_neighbors", "k", lambda task: [int(k) for k in values])


def figure2(context: Context) -> Outcome:
    """Evidence and tuned accuracy against ε of unweighted graphs of radii."""
    return _curves(context, "epsilon", "radius", "ε", lambda task: _lengths(context, task))


def figure5(context: Context) -> Outcome:
    """Evidence and tuned accuracy against the length of exponential weights."""

    def lengths(task: Task) -> list[float]:
        return [x / np.sqrt(2) / 3 for x in _lengths(context, task)]

    outcome = _curves(context, "exp", "scale", "scale", lengths)
    return outcome


def _lengths(context: Context, task: Task) -> list[float]:
    """From the distances of the nearest to those of most."""
    positive = task.distances[task.distances > 0]
    low, high = np.quantile(positive, [2e-4, 0.6])
    return [float(x) for x in np.geomspace(low, high, context.pick(6, 16))]


def _curves(context: Context, graph: str, name: str, symbol: str, values: Any) -> Outcome:
    rows, found = [], []
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    for task, axes in zip(tasks(context), figure.subplots(2, COLUMNS).ravel(), strict=True):
        labelled = task.draw(1000 * context.seed)
        at = values(task)
        own = [{"task": task.name, name: x, **_point(graph, task, labelled, {name: x})} for x in at]
        rows += own
        evidence, tuned = (np.array([r[k] for r in own]) for k in ("log evidence", "tuned"))
        kept = np.isfinite(evidence)
        best = int(np.nanargmax(np.where(kept, evidence, -np.inf)))
        ranks = _rank_correlation(evidence[kept], tuned[kept])
        found.append(f"{task.name} {symbol} {at[best]:.3g}, tuned {tuned[best]:.3f} of at most "
                     f"{np.nanmax(tuned):.3f}, correlation {ranks:.2f}")  # fmt: skip
        _draw_curve(axes, at, evidence, tuned, float(at[best]), task.name, symbol)
    return Outcome(rows, "At the largest evidence: " + "; ".join(found) + ".", figure)


def _point(graph: str, task: Task, labelled: Any, changes: dict[str, Any]) -> dict[str, float]:
    """Evidence and accuracies of one graph; NaN where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedGraphWarning)
        try:
            fitted = classifier(graph, task).set_params(**changes)
            fitted.fit(task.distances, task.given(labelled))
        except GraphuqError:
            return {"log evidence": np.nan, "accuracy": np.nan, "tuned": np.nan}
    plain, tuned = judged(fitted.result_, task, labelled)
    evidence = float(fitted.result_.log_evidence or np.nan)
    return {"log evidence": evidence, "accuracy": plain, "tuned": tuned}


def _rank_correlation(x: np.ndarray, y: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(x, y).statistic)


def _draw_curve(
    axes: Any, at: Any, evidence: Any, tuned: Any, best: float, title: str, symbol: str
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
    for own in (axes, beside):
        own.spines["top"].set_visible(False)


def _plain_ticks(axis: Any, values: Any) -> None:
    """Four numbers on a logarithmic axis, as numbers."""
    places = np.geomspace(min(values), max(values), 4)
    axis.set_minor_locator(NullLocator())
    axis.set_ticks(places, [f"{x:.3g}" for x in places])


def figure3(context: Context) -> Outcome:
    """The evidence surface of tanh-weighted graphs, and where climbing ends."""
    return _surfaces(context, "log evidence")


def figure4(context: Context) -> Outcome:
    """The surface of tuned accuracy of tanh-weighted graphs, and where climbing ends."""
    return _surfaces(context, "tuned")


@lru_cache(maxsize=2)
def _grid(context: Context) -> list[dict[str, Any]]:
    n = context.pick(4, 8)
    rows = []
    for task in tasks(context):
        labelled = task.draw(1000 * context.seed)
        low, high = np.quantile(task.distances[task.distances > 0], [1e-3, 0.5])
        for cutoff in np.geomspace(low, high, n):
            for slope in np.geomspace(1.0, 300.0, n):  # steepness times the median distance
                weights = TanhWeights(float(slope / high), float(cutoff))
                point = _point("tanh", task, labelled, {"weights": weights})
                rows.append(
                    {"task": task.name, "cutoff": cutoff, "steepness": weights.steepness, **point}
                )
    return rows


@lru_cache(maxsize=2)
def _climbed(context: Context) -> dict[str, dict[str, float]]:
    found = {}
    for task in tasks(context):
        labelled = task.draw(1000 * context.seed)
        search = searched("tanh", task, labelled, context.seed)
        tuned = judged(search.best_estimator_.result_, task, labelled)[1]
        found[task.name] = search.best_params_ | {"score": search.best_score_, "tuned": tuned}
    return found


def _surfaces(context: Context, quantity: str) -> Outcome:
    rows, climbed = _grid(context), _climbed(context)
    figure = Figure(figsize=(10, 5.6), layout="constrained")
    names = list(climbed)
    for name, axes in zip(names, figure.subplots(2, COLUMNS).ravel(), strict=True):
        own = [r for r in rows if r["task"] == name]
        x, y = (np.unique([r[k] for r in own]) for k in ("cutoff", "steepness"))
        values = np.array([r[quantity] for r in own]).reshape(len(x), len(y))
        mesh = axes.pcolormesh(x, y, values.T, cmap="viridis", shading="nearest")
        top = climbed[name]
        inside = x[0] <= top["weights__cutoff"] <= x[-1] and (
            y[0] <= top["weights__steepness"] <= y[-1]
        )
        if inside:
            axes.plot(top["weights__cutoff"], top["weights__steepness"], "o", color="#ffffff",
                      markeredgecolor="#c2410c", markeredgewidth=2)  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="cutoff", ylabel="steepness")
        _plain_ticks(axes.xaxis, x)
        _plain_ticks(axes.yaxis, y)
        axes.set_title(name + ("" if inside else " (top outside)"), fontsize=10)
        figure.colorbar(mesh, ax=axes)
    best = {n: max((r for r in rows if r["task"] == n), key=lambda r: r["log evidence"])
            for n in names}  # fmt: skip
    text = "; ".join(
        f"{n}: climbed to {climbed[n]['score']:.2f} (grid's best {best[n]['log evidence']:.2f}), "
        f"tuned {climbed[n]['tuned']:.3f}"
        for n in names
    )
    return Outcome(rows, f"Evidence where climbing ends: {text}.", figure)
