"""Figures 6 to 10: a ball tracked through nine frames, 90,000 nodes."""

import resource
import sys
import time
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from graphuq import Result
from graphuq.errors import NotConvergedWarning
from graphuq.graphs import grid_graph
from graphuq.results import soft_label_interval, soft_label_mean
from graphuq_papers.base import Context, Outcome, experiment
from graphuq_papers.claims import Claim, Finding, Row, cell, cells, finding
from graphuq_papers.films.figures import frame_panels, plot_frames
from graphuq_papers.films.frames import Frames, moving_ball
from graphuq_papers.films.tracking import track
from graphuq_papers.problems import rhat

N_PAIRS, QUICK_PAIRS = 300, 110  # eigenpairs; with 1,000 the posterior fits the second ball too
SECOND = "share of the second ball taken for the object"  # a column of figure 9
WRONG, WIDTH = "share in error", "mean width"  # columns of figures 9 and 10
ON_BALL, ON_SECOND = "mean probability on the ball", "mean probability on the second ball"
PIXELS, MISSING = "pixels labelled object", "pixels missing"  # columns of figure 6


def _disturbed(rows: Sequence[Row]) -> Finding:
    objects, missing = cells(rows, PIXELS), sum(cells(rows, MISSING))
    share = missing / sum(row["pixels"] for row in rows)
    return finding(
        int(np.argmax(objects)) == 4 and 0.09 < share < 0.11,
        f"{share:.0%} missing; {objects[4]} pixels labelled object in frame 5, "
        f"{int(np.median(objects))} in the median frame",
    )


def _edges(rows: Sequence[Row]) -> Finding:
    frames, height, width = rows[0]["frames"], rows[0]["height"], rows[0]["width"]
    within = height * (width - 1) + width * (height - 1)
    edges = frames * within + (frames - 1) * height * width
    return finding(rows[0]["edges"] == edges, f"{rows[0]['edges']:,} edges, {edges:,} by counting")


def _faint(rows: Sequence[Row]) -> Finding:
    ball, second = rows[0][ON_BALL], rows[0][ON_SECOND]
    return finding(
        0.01 < second < 0.5 < ball,
        f"mean probability {ball:.2f} on the ball and {second:.2f} on the second ball",
        rhat=rows[0]["R-hat"],
    )


def _located(rows: Sequence[Row]) -> Finding:
    second = max(share for share in cells(rows, SECOND) if share is not None)
    worst = max(cells(rows, WRONG))
    return finding(
        worst < 0.02 and second == 0,
        f"at most {worst:.2%} of a frame's pixels wrong, {second:.0%} of the second ball's",
    )


def _wide_edge(rows: Sequence[Row]) -> Finding:
    edge, inside, outside = (
        cell(rows, WIDTH, {"where": where})
        for where in ("outline of the ball", "inside the ball", "outside the ball")
    )
    second = cell(rows, WIDTH, {"where": "place of the second ball, all frames"})
    words = f"mean width {edge:.3f} on the outline, {inside:.3f} inside, {outside:.3f} outside"
    return finding(
        edge > 3 * max(inside, outside),
        f"{words} ({second:.3f} where the second ball is)",
    )


class Tracked(NamedTuple):
    """The frames, their posterior and its cost.

    Attributes
    ----------
    frames : Frames
    result : Result
    soft : numpy.ndarray, shape (T, H, W)
        Posterior mean of the soft label of each pixel.
    seconds : float
        Running time.
    peak_gb : float
        Peak memory of the process in GB.
    """

    frames: Frames
    result: Result
    soft: Float[np.ndarray, "T H W"]
    seconds: float
    peak_gb: float


def ball(context: Context) -> Frames:
    """Return the frames; a quick run has 40 × 40 pixels in each."""
    return moving_ball(shape=context.pick((40, 40), (100, 100)), seed=context.seed)


@lru_cache(maxsize=1)
def tracked(context: Context) -> Tracked:
    """Track the ball with the paper's prior (ρ = 20/N, q = 1) and k up to 300, or 110 if quick."""
    n_pairs = context.pick(QUICK_PAIRS, N_PAIRS)
    frames = ball(context)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)  # the table has R-hat
        result = track(
            frames,
            n_eigenpairs=n_pairs,
            n_samples=context.pick(2000, 6000),
            n_warmup=context.pick(500, 1000),
            seed=context.seed,
        )
    soft = frames.maps(soft_label_mean(result))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak_gb = peak / (1e9 if sys.platform == "darwin" else 1e6)
    return Tracked(frames, result, soft, time.perf_counter() - began, peak_gb)


def _frames(
    maps: np.ndarray, label: str, limits: tuple[float, float] = (0.0, 1.0), cmap: str = "Greys"
) -> Figure:
    """Return a figure of all frames that pyplot does not manage."""
    axes = plot_frames(maps, label, limits, cmap, axes=frame_panels(*maps.shape))
    return axes[0].figure


@experiment(Claim("A tenth of the pixels is missing, and frame 5 has a second ball.", _disturbed))
def figure6(context: Context) -> Outcome:
    """The frames: a tenth of the pixels is missing, and frame 5 has a second ball."""
    labels = ball(context).labels
    rows = [
        {
            "frame": t + 1,
            "pixels": f.size,
            PIXELS: int((f > 0).sum()),
            MISSING: int((f == 0).sum()),
        }
        for t, f in enumerate(labels)
    ]
    text = f"{labels.size} pixels in {len(labels)} frames; {(labels == 0).mean():.1%} are missing."
    return Outcome(rows, text, _frames(labels, "label (0: missing)", (-1.0, 1.0), "coolwarm_r"))


@experiment(Claim("A pixel is joined to its neighbours, and to itself in the next frame.", _edges))
def figure7(context: Context) -> Outcome:
    """The graph: each pixel has edges to its neighbours in the frame and to itself in the next."""
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
    frames = ball(context)
    full = frames.graph()
    sizes = dict(zip(("frames", "height", "width"), frames.labels.shape, strict=True))
    found = [{"nodes": full.n_nodes, "edges": full.n_edges, **sizes}]
    text = (
        f"The graph is a grid with {full.n_nodes} nodes and {full.n_edges} edges. The figure shows "
        "a corner of three frames: blue edges within a frame, grey edges between frames."
    )
    return Outcome(found, text, figure)


@experiment(Claim("The ball is clear, and the second ball shows faintly in frame 5.", _faint))
def figure8(context: Context) -> Outcome:
    """Posterior probability that a pixel belongs to the object."""
    found = tracked(context)
    worst = rhat(found.result)
    k = found.result.hyperparameters["truncation"]
    truth, false = found.frames.truth, found.frames.false
    assert truth is not None
    assert false is not None
    rows = [
        {
            ON_BALL: float(found.soft[truth].mean()),
            ON_SECOND: float(found.soft[false].mean()),
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
        f"{found.soft.size} nodes took {found.seconds:.0f} s; peak memory of the process "
        f"{found.peak_gb:.1f} GB. The chains have {state} (R-hat {worst:.2f}). The draws of k "
        f"range from {int(k.min())} to {int(k.max())}; the maximum is {rows[0]['eigenpairs']}."
    )
    return Outcome(rows, text, _frames(found.soft, "probability"))


@experiment(Claim("The ball is located in all frames, the second one ignored.", _located))
def figure9(context: Context) -> Outcome:
    """Estimated location of the object: pixels with a probability above one half."""
    found = tracked(context)
    located, truth, false = found.soft > 0.5, found.frames.truth, found.frames.false
    assert truth is not None
    assert false is not None
    rows: list[Row] = [
        {
            "frame": t + 1,
            "pixels of the object": int(truth[t].sum()),
            "pixels in error": int((located[t] != truth[t]).sum()),
            WRONG: float((located[t] != truth[t]).mean()),
            SECOND: float(located[t][false[t]].mean()) if false[t].any() else None,
        }
        for t in range(len(truth))
    ]
    share = next(r[SECOND] for r in rows if r[SECOND] is not None)
    text = (
        f"{sum(r['pixels in error'] for r in rows)} of {truth.size} pixels are wrong "
        f"({np.mean([r[WRONG] for r in rows]):.2%}). In frame 5, {share:.0%} of the "
        "pixels of the second ball are classified as the object."
    )
    return Outcome(rows, text, _frames(located.astype(int), "estimated location"))


@experiment(Claim("Intervals are wide on the ball's outline, narrow on both sides.", _wide_edge))
def figure10(context: Context) -> Outcome:
    """Width of the 95 % credible interval of each probability."""
    found = tracked(context)
    low, high = soft_label_interval(found.result, 0.95).T
    width = found.frames.maps(high - low)
    truth, false = found.frames.truth, found.frames.false
    assert truth is not None
    assert false is not None
    edge = np.zeros_like(truth)
    for axis in (1, 2):
        change = np.diff(truth, axis=axis)
        edge |= np.pad(change, [(0, 0) if a != axis else (0, 1) for a in range(3)])
        edge |= np.pad(change, [(0, 0) if a != axis else (1, 0) for a in range(3)])
    rows = [
        {"where": "outline of the ball", WIDTH: float(width[edge].mean())},
        {"where": "inside the ball", WIDTH: float(width[truth & ~edge].mean())},
        {"where": "outside the ball", WIDTH: float(width[~truth & ~edge].mean())},
        {
            "where": "place of the second ball, all frames",
            WIDTH: float(width[:, false.any(axis=0)].mean()),
        },
    ]
    text = (
        "Mean width of the 95 % intervals: "
        + ", ".join(f"{row['where']} {row[WIDTH]:.3f}" for row in rows)
        + "."
    )
    top = float(np.quantile(width, 0.999))
    return Outcome(rows, text, _frames(width, "width of the 95 % interval", (0.0, top), "hot"))
