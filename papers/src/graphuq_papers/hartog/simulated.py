"""Figures 1 to 4: simulated soft labels on a path and on a small-world graph."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from scipy.special import ndtr

from graphuq import Result, Spectrum, laplacian_spectrum
from graphuq.graphs import Graph, path_graph, small_world_graph
from graphuq.results import draws, soft_label_interval, soft_label_mean
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.claims import Claim, Finding, Row, cell, finding, listed
from graphuq_papers.hartog.setup import PROPER, converged, improper, protocol, series
from graphuq_papers.problems import rhat

RATES = (0.0, 0.1, 1.0)  # ρ, the rate of the prior of k
PAPER_NODES = 848  # nodes of the small-world graph of the paper
MISSING = 0.2  # share of nodes without a label
BLUE, ORANGE, GREY, DARK = "#3b6fb6", "#c2410c", "#8a8f98", "#4b5563"
SHOWN_DRAWS = 250  # of a trace, at most about twice as many


class Simulated(NamedTuple):
    """A graph with known soft labels, and labels drawn from them at 80 % of the nodes.

    Attributes
    ----------
    graph : Graph
    spectrum : Spectrum
        All eigenpairs of the unnormalised Laplacian.
    soft : numpy.ndarray, shape (N,)
        True soft label of each node: the probability of label 1.
    labels : numpy.ndarray, shape (N,)
        A label −1 or +1 drawn at each node.
    labelled : numpy.ndarray of int, shape (J,)
        Nodes whose label is observed.
    """

    graph: Graph
    spectrum: Spectrum
    soft: Float[np.ndarray, " N"]
    labels: Float[np.ndarray, " N"]
    labelled: Int[np.ndarray, " J"]


def simulate(graph: Graph, seed: int) -> Simulated:
    """Draw labels from ``f_0 = Σ √N (k−1)^{−1.5} sin(k−1) u^{(k)}``; a fifth is removed (§5.1)."""
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
    """Return the labels simulated on a path of 500 nodes."""
    return simulate(path_graph(500), context.seed)


@lru_cache(maxsize=1)
def world(context: Context) -> Simulated:
    """Return the labels simulated on a small-world graph.

    The graph is the largest component of a ring of 1,000 nodes in which each end of an edge is
    rewired with probability 0.25.
    """
    graph = small_world_graph(1000, rewiring=0.25, both_ends=True, rng=context.seed)
    return simulate(graph, context.seed)


FLIPPED = "share of labels flipped by noise"  # columns
K, ERROR, RHAT = "median k", "mean |soft label − ℓ₀|", "R-hat"  # cells of column "quantity"


def _noisy(rows: Sequence[Row]) -> Finding:
    row = rows[0]
    return finding(
        row["labels"] == 0.8 * row["nodes"] and row[FLIPPED] > 0.05,
        f"{row['labels']} of {row['nodes']} observed, {row[FLIPPED]:.0%} flipped by noise",
    )


def _size(rows: Sequence[Row]) -> Finding:
    return finding(abs(rows[0]["nodes"] - PAPER_NODES) < 30, f"{rows[0]['nodes']} nodes")


def _by_rate(rows: Sequence[Row], quantity: str) -> dict[str, list[float]]:
    """Return a quantity for ρ = 0, 0.1 and 1 by the paper's chain and by converged chains."""
    return {
        way: [cell(rows, way, {"ρ": rate, "quantity": quantity}) for rate in RATES]
        for way in ("protocol", "converged")
    }


def _fewer(rows: Sequence[Row]) -> Finding:
    k = _by_rate(rows, K)
    fall = {way: values[0] > values[1] > values[2] for way, values in k.items()}
    words = "; ".join(f"{way} {listed(values, '.0f')}" for way, values in k.items())
    return finding(
        fall["converged"], words, fall["protocol"], max(_by_rate(rows, RHAT)["converged"])
    )


def _as_good(rows: Sequence[Row]) -> Finding:
    error = _by_rate(rows, ERROR)
    near = {way: abs(values[0] - values[1]) < 0.02 for way, values in error.items()}
    words = "; ".join(f"{way} {listed(values[:2])}" for way, values in error.items())
    worst = max(_by_rate(rows, RHAT)["converged"])
    return finding(near["converged"], f"mean error {words}", near["protocol"], worst)


POSTERIORS = (
    Claim("A larger ρ leads to fewer eigenvectors, k.", _fewer),
    Claim("The estimates with ρ = 0 and ρ = 0.1 are about equally good.", _as_good),
)


@experiment(Claim("Noisy labels of a smooth soft label; a fifth is missing.", _noisy))
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
    rows = [{"nodes": 500, "labels": len(data.labelled), FLIPPED: share}]
    text = (
        f"{len(data.labelled)} of 500 labels are observed. Noise flips {share:.0%} of all labels: "
        "they differ from the more probable class."
    )
    return Outcome(rows, text, figure)


@experiment(*POSTERIORS)
def figure2(context: Context) -> Outcome:
    """Posterior of the soft label and of k on the path, for ρ = 0, 0.1, 1."""
    return _posteriors(context, path(context), "path")


@experiment(Claim("The largest component of the graph has 848 nodes (within 30).", _size))
def figure3(context: Context) -> Outcome:
    """The small-world graph and its labels."""
    data = world(context)
    spectrum, n = data.spectrum, data.graph.n_nodes
    figure = Figure(figsize=(5.6, 5.0), layout="constrained")
    axes = figure.subplots()
    x, y = spectrum.eigenvectors[:, 1], spectrum.eigenvectors[:, 2]
    # Ranks spread the nodes out; the entries themselves are extreme at the ends of long branches.
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
    found = [{"nodes": n, "edges": data.graph.n_edges, "nodes in the paper": PAPER_NODES}]
    text = f"The largest component has {n} nodes; in the paper it has {PAPER_NODES}."
    return Outcome(found, text, figure)


@experiment(*POSTERIORS)
def figure4(context: Context) -> Outcome:
    """Posterior of the soft label and of k on the small-world graph, for ρ = 0, 0.1, 1."""
    return _posteriors(context, world(context), "small world")


def _posteriors(context: Context, data: Simulated, name: str) -> Outcome:
    figure = Figure(figsize=(10.5, 6.6), layout="constrained")
    grid = figure.subplots(3, len(RATES), height_ratios=(2, 1, 1))
    order = np.arange(len(data.soft)) if name == "path" else np.argsort(data.soft)
    rows: list[Row] = []
    for (above, *traces), rate in zip(grid.T, RATES, strict=True):
        parts = data.spectrum, data.labelled, data.labels[data.labelled], rate
        chain = protocol(context, series(*parts, improper()))
        result = converged(context, series(*parts, PROPER))
        rows += _rows(rate, data, chain, result)
        interval = soft_label_interval(result, 0.95)[order]
        above.fill_between(
            np.arange(len(order)), *interval.T, color="#d4d7dc", linewidth=0, label="95 % interval"
        )
        above.plot(data.soft[order], color=ORANGE, linewidth=1, label="ℓ₀", zorder=3)
        line, dashed = ("-", "--") if name == "path" else (".", ".")  # the other is jagged
        for mean, style, color, label in (
            (soft_label_mean(result), line, BLUE, "posterior mean"),
            (soft_label_mean(chain), dashed, DARK, "mean of the paper's chain"),
        ):
            above.plot(mean[order], style, color=color, linewidth=1, markersize=1.5, label=label)
        xlabel = "node" if name == "path" else "node, in order of the true soft label"
        above.set(title=f"ρ = {rate:g}", xlabel=xlabel, ylim=(0, 1))
        found = [one.hyperparameters["truncation"][0] for one in (chain, result)]
        for axes, draws_of_k, color in zip(traces, found, (DARK, BLUE), strict=True):
            kept = np.arange(0, len(draws_of_k), max(1, len(draws_of_k) // SHOWN_DRAWS))
            axes.plot(kept, draws_of_k[kept], color=color, linewidth=0.8, drawstyle="steps-mid")
            axes.set(xlabel="stored draw", ylim=(0, 1.05 * max(map(np.max, found))))
            axes.yaxis.get_major_locator().set_params(integer=True)
        for axes in (above, *traces):
            axes.spines[["top", "right"]].set_visible(False)
    for axes, name_of_row in zip(
        grid[:, 0], ("soft label", "k, paper's chain", "k, default's chain"), strict=True
    ):
        axes.set_ylabel(name_of_row)
    grid[0, -1].legend(frameon=False, fontsize=8)

    def values(quantity: str, which: str, form: str) -> str:
        return ", ".join(f"{r[which]:{form}}" for r in rows if r["quantity"] == quantity)

    worst = max(row["converged"] for row in rows if row["quantity"] == RHAT)
    text = (
        f"{name}, ρ = 0, 0.1, 1. Median of k: {values(K, 'converged', '.0f')} (default "
        f"sampler, largest R-hat {worst:.3f}) and {values(K, 'protocol', '.0f')} (the "
        "paper's chain). The 95 % intervals contain the true soft label at "
        f"{values('coverage of 95 % intervals', 'converged', '.0%')} of the nodes."
    )
    return Outcome(rows, text, figure)


def _rows(rate: float, data: Simulated, chain: Result, result: Result) -> list[Row]:
    def measures(found: Result) -> dict[str, float]:
        low, high = soft_label_interval(found, 0.95).T
        return {
            "coverage of 95 % intervals": float(((low <= data.soft) & (data.soft <= high)).mean()),
            ERROR: float(np.abs(soft_label_mean(found) - data.soft).mean()),
            K: float(np.median(found.hyperparameters["truncation"])),
            "median c": float(np.median(found.hyperparameters["scale"])),
            RHAT: rhat(found),
            "seconds": draws(found).seconds,
        }

    converged_values = measures(result)
    return [
        {"ρ": rate, "quantity": name, "protocol": value, "converged": converged_values[name]}
        for name, value in measures(chain).items()
    ]
