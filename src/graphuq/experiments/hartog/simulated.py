"""Soft labels that are known, on a path and on a small world: figures 1 to 4."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from scipy.special import ndtr

from graphuq.experiments.base import Context, Outcome
from graphuq.experiments.hartog.setup import PROPER, converged, improper, protocol, series
from graphuq.experiments.problems import rhat
from graphuq.graphs import Graph, path_graph, small_world_graph
from graphuq.results.result import Result
from graphuq.spectrum import Spectrum, laplacian_spectrum

RATES = (0.0, 0.1, 1.0)
MISSING = 0.2
BLUE, ORANGE, GREY = "#3b6fb6", "#c2410c", "#8a8f98"


class Simulated(NamedTuple):
    """A graph whose soft labels are known, and labels drawn from them at most nodes."""

    graph: Graph
    spectrum: Spectrum
    soft: Float[np.ndarray, " N"]
    labels: Float[np.ndarray, " N"]
    labelled: Int[np.ndarray, " J"]


def simulate(graph: Graph, seed: int) -> Simulated:
    """``f_0 = Σ √N (k−1)^{−1.5} sin(k−1) u^{(k)}``; a fifth of the labels are removed (§5.1)."""
    spectrum = laplacian_spectrum(graph, "unnormalized", graph.n_nodes)
    k = np.arange(1, graph.n_nodes)
    weights = np.append(0.0, np.sqrt(graph.n_nodes) * k**-1.5 * np.sin(k))
    soft = ndtr(spectrum.eigenvectors @ weights)
    rng = np.random.default_rng(seed)
    labels = np.where(rng.uniform(size=len(soft)) < soft, 1.0, -1.0)
    labelled = np.flatnonzero(rng.permutation(len(soft)) >= MISSING * len(soft))
    return Simulated(graph, spectrum, soft, labels, labelled)


@lru_cache(maxsize=1)
def path(context: Context) -> Simulated:
    """500 nodes."""
    return simulate(path_graph(500), context.seed)


@lru_cache(maxsize=1)
def world(context: Context) -> Simulated:
    """A ring of 1,000, ends of edges rewired with probability 0.25; its largest component."""
    graph = small_world_graph(1000, rewiring=0.25, both_ends=True, seed=context.seed)
    return simulate(graph, context.seed)


def figure1(context: Context) -> Outcome:
    """Soft labels and noisy labels on a path of 500 nodes."""
    data = path(context)
    figure = Figure(figsize=(7.0, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.plot(data.soft, color=BLUE, label="soft label ℓ₀")
    shown = (data.labels[data.labelled] + 1) / 2
    axes.plot(data.labelled, shown, "|", color=ORANGE, markersize=5, label="noisy label")
    axes.set(xlabel="node", ylabel="probability of label 1")
    axes.legend(frameon=False, loc="center right")
    axes.spines[["top", "right"]].set_visible(False)
    share = float((data.labels != np.where(data.soft >= 0.5, 1, -1)).mean())
    rows = [{"nodes": 500, "labels": len(data.labelled), "share that noise turned": share}]
    text = f"{len(data.labelled)} of 500 labels are kept; noise turned {share:.0%} of all."
    return Outcome(rows, text, figure)


def figure2(context: Context) -> Outcome:
    """Posterior of the soft label on the path, and of k, for ρ = 0, 0.1, 1."""
    return _posteriors(context, path(context), "path")


def figure3(context: Context) -> Outcome:
    """The small world and its labels."""
    data = world(context)
    spectrum, n = data.spectrum, data.graph.n_nodes
    figure = Figure(figsize=(5.6, 5.0), layout="constrained")
    axes = figure.subplots()
    x, y = spectrum.eigenvectors[:, 1], spectrum.eigenvectors[:, 2]
    # Extreme entries sit on the ends of long branches: ranks spread the nodes.
    x, y = x.argsort().argsort() / n, y.argsort().argsort() / n
    rows, columns = data.graph.weights.nonzero()
    kept = rows < columns
    axes.plot(
        np.stack([x[rows[kept]], x[columns[kept]]]),
        np.stack([y[rows[kept]], y[columns[kept]]]),
        color="#d4d7dc",
        linewidth=0.4,
        zorder=0,
    )
    unlabelled = np.setdiff1d(np.arange(n), data.labelled)
    style: dict[str, Any] = {"s": 12, "edgecolors": GREY, "linewidths": 0.4}
    axes.scatter(x[unlabelled], y[unlabelled], c="white", label="no label", **style)
    for sign, color in ((1, BLUE), (-1, ORANGE)):
        nodes = data.labelled[data.labels[data.labelled] == sign]
        axes.scatter(x[nodes], y[nodes], c=color, label=f"label {(sign + 1) // 2}", **style)
    axes.set(xlabel="rank in eigenvector 2", ylabel="rank in eigenvector 3")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    axes.spines[["top", "right"]].set_visible(False)
    found = [{"nodes": n, "edges": data.graph.n_edges, "nodes in the paper": 848}]
    return Outcome(found, f"The largest component has {n} nodes; the paper's had 848.", figure)


def figure4(context: Context) -> Outcome:
    """Posterior of the soft label on the small world, and of k, for ρ = 0, 0.1, 1."""
    return _posteriors(context, world(context), "small world")


def _posteriors(context: Context, data: Simulated, name: str) -> Outcome:
    figure = Figure(figsize=(10.5, 5.4), layout="constrained")
    grid = figure.subplots(2, len(RATES), height_ratios=(2, 1))
    order = np.arange(len(data.soft)) if name == "path" else np.argsort(data.soft)
    rows: list[dict[str, Any]] = []
    for (above, below), rate in zip(grid.T, RATES, strict=True):
        parts = data.spectrum, data.labelled, data.labels[data.labelled], rate
        chain = protocol(context, series(*parts, improper()))
        result = converged(context, series(*parts, PROPER))
        rows += _rows(rate, data, chain, result)
        interval = result.soft_label_interval(0.95)[order]
        above.fill_between(
            np.arange(len(order)), *interval.T, color="#d4d7dc", linewidth=0, label="95 % interval"
        )
        above.plot(data.soft[order], color=ORANGE, linewidth=1, label="ℓ₀")
        above.plot(result.soft_label_mean[order], color=BLUE, linewidth=1, label="posterior mean")
        xlabel = "node" if name == "path" else "node, by its soft label"
        above.set(title=f"ρ = {rate:g}", xlabel=xlabel, ylabel="soft label", ylim=(0, 1))
        draws = chain.hyperparameters["truncation"][0]
        below.plot(draws, color=GREY, linewidth=0.6, label="the paper's chain")
        many = result.hyperparameters["truncation"]
        below.plot(many[0], color=BLUE, linewidth=0.6, label="default, one of 16")
        below.set(xlabel="kept draw", ylabel="k")
        for axes in (above, below):
            axes.spines[["top", "right"]].set_visible(False)
    grid[0, 0].legend(frameon=False, fontsize=8)
    grid[1, 0].legend(framealpha=0.9, edgecolor="none", fontsize=8)

    def listed(quantity: str, which: str, form: str) -> str:
        return ", ".join(f"{r[which]:{form}}" for r in rows if r["quantity"] == quantity)

    worst = max(row["converged"] for row in rows if row["quantity"] == "R-hat")
    text = (
        f"{name}, ρ = 0, 0.1, 1: median k {listed('median k', 'converged', '.0f')} (largest R-hat "
        f"{worst:.3f}), of the paper's chain {listed('median k', 'protocol', '.0f')}; 95 % "
        "intervals hold the true soft label at "
        f"{listed('coverage of 95 % intervals', 'converged', '.0%')} of the nodes."
    )
    return Outcome(rows, text, figure)


def _rows(rate: float, data: Simulated, chain: Result, result: Result) -> list[dict[str, Any]]:
    def measured(found: Result) -> dict[str, float]:
        low, high = found.soft_label_interval(0.95).T
        return {
            "coverage of 95 % intervals": float(((low <= data.soft) & (data.soft <= high)).mean()),
            "mean |soft label − ℓ₀|": float(np.abs(found.soft_label_mean - data.soft).mean()),
            "median k": float(np.median(found.hyperparameters["truncation"])),
            "median c": float(np.median(found.hyperparameters["scale"])),
            "R-hat": rhat(found),
            "seconds": found.draws.seconds,
        }

    ours = measured(result)
    return [
        {"ρ": rate, "quantity": name, "protocol": value, "converged": ours[name]}
        for name, value in measured(chain).items()
    ]
