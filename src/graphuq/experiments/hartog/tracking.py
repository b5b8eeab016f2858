"""A ball tracked through nine frames, 90,000 nodes: figures 6 to 10."""

import resource
import sys
import time
import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from graphuq.datasets import Frames, moving_ball
from graphuq.errors import NotConvergedWarning
from graphuq.experiments.base import Context, Outcome
from graphuq.experiments.problems import rhat
from graphuq.graphs import grid_graph
from graphuq.plots import plot_frames
from graphuq.results.result import Result
from graphuq.run.tracking import track

N_PAIRS, QUICK_PAIRS = 300, 110  # eigenpairs; with 1,000 the second ball is fitted as well


class Tracked(NamedTuple):
    """The frames, their posterior, and what it cost."""

    frames: Frames
    result: Result
    soft: Float[np.ndarray, "T H W"]
    seconds: float
    peak_gb: float


@lru_cache(maxsize=1)
def tracked(context: Context) -> Tracked:
    """The paper's prior (ρ = 20/N, q = 1), k up to 300; quick: frames of 60 × 60, k up to 110."""
    shape = context.pick((60, 60), (100, 100))
    n_pairs = context.pick(QUICK_PAIRS, N_PAIRS)
    frames = moving_ball(shape=shape, seed=context.seed)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)  # the table says it
        result = track(
            frames,
            n_eigenpairs=n_pairs,
            n_samples=context.pick(2000, 6000),
            seed=context.seed,
        )
    soft = frames.maps(result.soft_label_mean)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak_gb = peak / (1e9 if sys.platform == "darwin" else 1e6)
    return Tracked(frames, result, soft, time.perf_counter() - began, peak_gb)


def figure6(context: Context) -> Outcome:
    """The frames: a tenth of the pixels missing, a second ball in frame 5."""
    frames = tracked(context).frames
    labels = frames.labels
    rows = [
        {"frame": t + 1, "object": int((f > 0).sum()), "missing": int((f == 0).sum())}
        for t, f in enumerate(labels)
    ]
    text = f"{labels.size} pixels in {len(labels)} frames, {(labels == 0).mean():.1%} missing."
    return Outcome(rows, text, plot_frames(labels, "label (0: missing)", (-1.0, 1.0), "coolwarm_r"))


def figure7(context: Context) -> Outcome:
    """The graph: each pixel, its neighbours in the frame, and itself in the next."""
    graph = grid_graph((3, 10, 10))
    corner = np.arange(graph.n_nodes).reshape(3, 10, 10)[:, :4, :4].ravel()
    figure = Figure(figsize=(5.0, 3.4), layout="constrained")
    axes = figure.subplots()
    t, i, j = np.unravel_index(corner, (3, 10, 10))
    x, y = j + 5.0 * t, -i + 0.6 * t
    weights = graph.weights[corner][:, corner]
    rows, columns = weights.nonzero()
    for a, b in zip(rows, columns, strict=True):
        color = "#3b6fb6" if t[a] == t[b] else "#d4d7dc"
        axes.plot([x[a], x[b]], [y[a], y[b]], zorder=0, color=color, linewidth=0.8)
    axes.plot(x, y, "o", color="#1f2328", markersize=3)
    axes.set_axis_off()
    full = tracked(context).frames.graph()
    found = [{"nodes": full.n_nodes, "edges": full.n_edges}]
    return Outcome(found, f"Grid of {full.n_nodes} nodes, {full.n_edges} edges.", figure)


def figure8(context: Context) -> Outcome:
    """Probability that a pixel is of the object."""
    found = tracked(context)
    worst = rhat(found.result)
    k = found.result.hyperparameters["truncation"]
    rows = [
        {
            "nodes": found.soft.size,
            "eigenpairs": context.pick(QUICK_PAIRS, N_PAIRS),
            "median k": float(np.median(k)),
            "R-hat": worst,
            "seconds": found.seconds,
            "peak memory of the process, GB": found.peak_gb,
        }
    ]
    state = "converged" if worst < 1.01 else "NOT converged"
    text = (
        f"{found.soft.size} nodes in {found.seconds:.0f} s, the process never above "
        f"{found.peak_gb:.1f} GB; "
        f"{state} (R-hat {worst:.2f}); k from {int(k.min())} to {int(k.max())} of at most "
        f"{rows[0]['eigenpairs']}."
    )
    return Outcome(rows, text, plot_frames(found.soft, "probability"))


def figure9(context: Context) -> Outcome:
    """Estimated location: probability above one half."""
    found = tracked(context)
    located, truth, false = found.soft > 0.5, found.frames.truth, found.frames.false
    assert truth is not None
    assert false is not None
    rows: list[dict[str, Any]] = [
        {
            "frame": t + 1,
            "object, pixels": int(truth[t].sum()),
            "in error": int((located[t] != truth[t]).sum()),
            "share in error": float((located[t] != truth[t]).mean()),
            "of the second ball": float(located[t][false[t]].mean()) if false[t].any() else None,
        }
        for t in range(len(truth))
    ]
    taken = next(r["of the second ball"] for r in rows if r["of the second ball"] is not None)
    text = (
        f"{sum(r['in error'] for r in rows)} of {truth.size} pixels in error "
        f"({np.mean([r['share in error'] for r in rows]):.2%}); of the second ball in frame 5 "
        f"{taken:.0%} are taken for the object."
    )
    return Outcome(rows, text, plot_frames(located.astype(int), "estimated location"))


def figure10(context: Context) -> Outcome:
    """Width of the 95 % interval of each probability."""
    found = tracked(context)
    low, high = found.result.soft_label_interval(0.95).T
    width = found.frames.maps(high - low)
    truth = found.frames.truth
    assert truth is not None
    edge = np.zeros_like(truth)
    for axis in (1, 2):
        change = np.diff(truth, axis=axis)
        edge |= np.pad(change, [(0, 0) if a != axis else (0, 1) for a in range(3)])
        edge |= np.pad(change, [(0, 0) if a != axis else (1, 0) for a in range(3)])
    rows = [
        {"where": "outline of the ball", "mean width": float(width[edge].mean())},
        {"where": "inside", "mean width": float(width[truth & ~edge].mean())},
        {"where": "outside", "mean width": float(width[~truth & ~edge].mean())},
    ]
    text = (
        "Mean width of the intervals: "
        + ", ".join(f"{row['mean width']:.3f} {row['where']}" for row in rows)
        + "."
    )
    top = float(np.quantile(width, 0.999))
    return Outcome(rows, text, plot_frames(width, "width of the 95 % interval", (0.0, top), "hot"))
