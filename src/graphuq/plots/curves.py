"""Figures that consist of curves: spectrum, evidence, reliability and convergence."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from graphuq.errors import require
from graphuq.plots.panels import (
    GREY,
    AxesArray,
    ManyAxes,
    accents,
    add_colorbar,
    check_panels,
    class_colors,
    figure_names,
    functional_words,
    new_or_given,
    panels,
)
from graphuq.results import sampling
from graphuq.results.convergence import convergence_of
from graphuq.results.diagnostics import ESS_BOUND, RHAT_BOUND, worst_case
from graphuq.results.result import Result
from graphuq.scores import ReliabilityCurve
from graphuq.spectrum import SpectralBasis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_TICKS = 10  # values of a parameter that are all named on its axis


def plot_spectrum(spectrum: SpectralBasis, *, ax: "Axes | None" = None) -> "Axes":
    """Plot the eigenvalues of the Laplacian, and the value that stands for the other ones.

    Parameters
    ----------
    spectrum : Spectrum or Basis
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = new_or_given(ax)
    index = np.arange(spectrum.n_eigenpairs)
    values = spectrum.eigenvalues[: len(index)]
    ax.plot(index, values, ".", color=accents()[0], markersize=4, label="computed")
    if spectrum.tail_eigenvalue is not None:
        ax.plot(
            [spectrum.n_eigenpairs, spectrum.n_nodes],
            [spectrum.tail_eigenvalue] * 2,
            color=accents()[1],
            label="tail eigenvalue λ̄, for all others",
        )
        ax.legend(frameon=False)
    ax.set(xlabel="index j", ylabel="eigenvalue λ_j", title="Laplacian spectrum")
    return ax


def plot_evidence(
    grids: Mapping[str, ArrayLike],
    values: ArrayLike,
    best: Mapping[str, Any],
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot the log evidence against one or two parameters, and the best values.

    Parameters
    ----------
    grids : mapping of str to array_like
        Values of one or two parameters, by name.
    values : array_like
        Criterion at these values, from `EvidenceSearch.surface`; NaN where undefined.
    best : mapping
        Best parameters, ``search.best_params_``.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InvalidInput
        If there are three parameters or more.
    """
    require(len(grids) in (1, 2), "grids", f"{len(grids)} parameters", "draw one or two")
    ax = new_or_given(ax)
    ax.set_title("Evidence of the labels")
    names, axis = list(grids), [np.asarray(grid, dtype=float) for grid in grids.values()]
    if len(names) == 1:
        ax.plot(axis[0], np.asarray(values), "o-", color=accents()[0], markersize=3)
        ax.axvline(best[names[0]], color=accents()[1], linewidth=1, label="best value")
        ax.legend(frameon=False)
        ax.set(xlabel=names[0], ylabel="log evidence (nats)", xscale="log")
        if len(axis[0]) <= MAX_TICKS:
            ax.set_xticks(axis[0], labels=[f"{value:g}" for value in axis[0]])
            ax.set_xticks([], minor=True)
        return ax
    mesh = ax.pcolormesh(*axis, np.asarray(values).T, cmap="viridis", shading="nearest")
    point = tuple(best[name] for name in names)
    ax.plot(*point, "o", color="white", markeredgecolor=accents()[1], label="best values")
    ax.legend(loc="upper right", fontsize=8)
    ax.set(xlabel=names[0], ylabel=names[1], xscale="log", yscale="log")
    add_colorbar(mesh, ax, "log evidence (nats)")
    return ax


def plot_reliability(curve: ReliabilityCurve, *, ax: "Axes | None" = None) -> "Axes":
    """Plot accuracy against confidence, with two binomial standard errors.

    Points of well calibrated probabilities lie on the diagonal. The number beside a point is its
    number of nodes.

    Parameters
    ----------
    curve : ReliabilityCurve
        Curve that `graphuq.scores.reliability_curve` returned.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = new_or_given(ax)
    lowest = min(0.5, float(curve.confidence.min()))
    ax.plot([lowest, 1], [lowest, 1], "--", color=GREY, linewidth=1, label="perfect calibration")
    # Half a node is added to either side: a few nodes that are all right would have no error bar.
    share = (curve.accuracy * curve.count + 0.5) / (curve.count + 1)
    error = 2 * np.sqrt(share * (1 - share) / curve.count)
    ax.errorbar(
        curve.confidence,
        curve.accuracy,
        yerr=[np.minimum(error, curve.accuracy), np.minimum(error, 1 - curve.accuracy)],
        fmt="o",
        color=accents()[0],
        capsize=2,
        markersize=4,
        linewidth=1,
        label="accuracy ± 2 standard errors (number of nodes)",
    )
    for x, y, n in zip(curve.confidence, curve.accuracy, curve.count, strict=True):
        ax.annotate(f"{n}", (x, y), xytext=(4, -9), textcoords="offset points", fontsize=8)
    ax.set(
        xlabel="probability of the inferred class",
        ylabel="accuracy",
        xlim=(lowest - 0.02, 1.02),
        ylim=(max(0.0, float(curve.accuracy.min()) - 0.15), 1.03),
        title=f"Reliability (expected calibration error {curve.expected_calibration_error:.3f})",
    )
    ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=8, ncols=2)
    return ax


def plot_trace(
    result: Result,
    class_names: Sequence[Any] | None = None,
    *,
    axes: ManyAxes | None = None,
) -> AxesArray:
    """Plot traces, by chain, of the functional that mixes worst and of the log likelihood.

    Parameters
    ----------
    result : Result
        A result with draws.
    class_names : sequence, optional
        Names of the classes in the order of their codes; by default those of the result.
    axes : Axes, sequence or array of Axes, optional
        Two axes to draw into; by default those of a new figure.

    Returns
    -------
    numpy.ndarray of matplotlib.axes.Axes
        One panel, if the log likelihood itself mixes worst, or two.
    """
    functionals, classes = sampling.functionals(result), figure_names(result, class_names)
    table = convergence_of(functionals)
    slowest = min(table, key=lambda name: table[name]["ess_bulk"]) if table else "log_likelihood"
    names = [slowest] + [n for n in ("log_likelihood",) if n != slowest]
    if axes is None:
        axes = panels(len(names), 1, (8.0, 2.3), pyplot=True)[1]
    grid = check_panels(axes, len(names))
    for ax, name in zip(grid, names, strict=True):
        values = functionals[name]
        stride = max(1, values.shape[1] // 1000)
        colors = class_colors(len(values))
        style: dict[str, Any] = {"linewidth": 0.6, "alpha": 0.7, "rasterized": True}
        for k, chain in enumerate(values[:, ::stride]):
            ax.plot(np.arange(len(chain)) * stride, chain, color=colors(k), **style)
        row = table.get(name)
        note = "" if row is None else f" (R-hat {row['rhat']:.3f}, ESS {row['ess_bulk']:.0f})"
        slow = "Slowest functional: " if name == slowest else ""
        ax.set_title(f"{slow}{functional_words(name, classes)}{note}", fontsize=10)
        ax.set_ylabel("nats" if name == "log_likelihood" else name.split("[")[0])
    grid[-1].set_xlabel("kept draw, one line for each chain")
    return grid


def plot_ess(result: Result, *, axes: ManyAxes | None = None) -> AxesArray:
    """Plot the smallest effective sample size and the largest R-hat against the number of draws.

    Parameters
    ----------
    result : Result
        A result with draws.
    axes : Axes, sequence or array of Axes, optional
        Two axes to draw into; by default those of a new figure.

    Returns
    -------
    numpy.ndarray of matplotlib.axes.Axes
    """
    if axes is None:
        axes = panels(2, 2, (4.0, 2.8), pyplot=True)[1]
    left, right = grid = check_panels(axes, 2)
    functionals = sampling.functionals(result)
    n_samples = sampling.draws(result).n_samples
    counts = np.unique(np.linspace(max(4, n_samples // 8), n_samples, 8).astype(int))
    rhat, bulk, tail = np.array(
        [
            worst_case(convergence_of({k: v[:, :count] for k, v in functionals.items()}))
            for count in counts
        ]
    ).T
    left.plot(counts, bulk, "o-", color=accents()[0], label="bulk", markersize=4)
    left.plot(counts, tail, "o-", color=accents()[1], label="tail", markersize=4)
    left.axhline(ESS_BOUND, color=GREY, linestyle="--", linewidth=1, label="required")
    left.set(title="Smallest effective sample size", ylabel="effective draws", ylim=(0, None))
    right.plot(counts, rhat, "o-", color=accents()[0], markersize=4)
    right.axhline(RHAT_BOUND, color=GREY, linestyle="--", linewidth=1, label="upper limit")
    right.set(title="Largest R-hat", ylabel="R-hat")
    for ax in grid:
        ax.set_xlabel("kept draws of each chain")
        ax.legend(frameon=False)
    return grid
