"""Figures of the nodes: how certain their labels are, and their marginals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from graphuq.plots.panels import (
    GREY,
    AxesArray,
    ManyAxes,
    accents,
    check_panels,
    class_colors,
    figure_names,
    label_colors,
    new_or_given,
    panels,
    show_label_mean_ticks,
)
from graphuq.results import label_numbers
from graphuq.results.label_numbers import (
    class_codes,
    label_mean,
    label_variance,
    mean_label_variance,
    rank_by_uncertainty,
)
from graphuq.results.latent_numbers import latent_draws
from graphuq.results.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARGINAL_SIZE = (2.6, 1.8)  # inches, of one panel


def plot_certainty(
    result: Result, class_names: Sequence[Any] | None = None, *, ax: "Axes | None" = None
) -> "Axes":
    """Plot a histogram that shows how certain the labels of unlabelled nodes are.

    For binary results it shows label means: certain at both ends, uncertain in the middle. For
    multiclass results it shows the probability of the most probable class, by class.

    Parameters
    ----------
    result : Result
    class_names : sequence, optional
        Names of the classes in the order of their codes; by default those of the result.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = new_or_given(ax)
    names = figure_names(result, class_names)
    nodes = np.setdiff1d(np.arange(len(result.has_evidence)), result.posterior.labelled)
    nodes = nodes if len(nodes) else np.arange(len(result.has_evidence))
    if label_mean(result).ndim == 2:
        _certainty_by_class(ax, result, nodes, names)
    else:
        colors = label_colors()
        bins: Any = np.linspace(-1, 1, 41)
        bars: Any
        _, edges, bars = ax.hist(label_mean(result)[nodes], bins=bins)
        for left, bar in zip(edges, bars, strict=False):
            bar.set_facecolor(colors((left + 0.025 + 1) / 2))
            bar.set_edgecolor(ax.get_facecolor())
        ax.set_xlabel("label mean")
        show_label_mean_ticks(ax, names)
    ax.set(ylabel="number of unlabelled nodes", title="Certainty of the inferred labels")
    return ax


def _certainty_by_class(
    ax: "Axes", result: Result, nodes: Int[np.ndarray, " M"], names: Sequence[str]
) -> None:
    """Draw the stacked histogram of `plot_certainty` for a multiclass result."""
    n_classes = len(names)
    labels, probability = label_numbers.labels(result)[nodes], label_mean(result)[nodes].max(axis=1)
    colors = class_colors(n_classes)
    bins: Any = np.linspace(1 / n_classes, 1, 31)
    ax.hist(
        [probability[labels == k] for k in range(n_classes)],
        bins=bins,
        stacked=True,
        color=[colors(k) for k in range(n_classes)],
        label=names,
    )
    ax.legend(frameon=False, fontsize=7, ncols=1 + n_classes // 11)
    ax.set_xlabel("probability of the most probable class")


def plot_order(result: Result, *, ax: "Axes | None" = None) -> "Axes":
    """Plot the label variance of all nodes, from the most to the least certain.

    Parameters
    ----------
    result : Result
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = new_or_given(ax)
    variance = label_variance(result)[rank_by_uncertainty(result)[::-1]]
    ax.plot(
        np.arange(1, len(result.has_evidence) + 1), variance, color=accents()[0], rasterized=True
    )
    ax.set(
        xlabel="nodes, most certain first",
        ylabel="label variance",
        ylim=(-0.02, 1.02),
        title=f"Label variance of all nodes (mean {mean_label_variance(result):.3f})",
    )
    return ax


def plot_marginals(
    result: Result,
    nodes: Int[np.ndarray, " M"],
    *,
    class_names: Sequence[Any] | None = None,
    title: str = "Marginal posterior of the latent field u",
    axes: ManyAxes | None = None,
) -> AxesArray:
    """Plot a histogram of u at each of some nodes (Bertozzi et al. 2018, figure 4).

    Parameters
    ----------
    result : Result
    nodes : numpy.ndarray of int, shape (M,)
    class_names : sequence, optional
        Names of the classes in the order of their codes; by default those of the result.
    title : str
        Title of a new figure; unused if ``axes`` are given.
    axes : Axes, sequence or array of Axes, optional
        M axes to draw into; by default those of a new figure.

    Returns
    -------
    numpy.ndarray of matplotlib.axes.Axes, shape (M,)
    """
    if axes is None:
        figure, axes = panels(len(nodes), 3, MARGINAL_SIZE, pyplot=True)
        figure.suptitle(title, fontsize=10)
    grid = check_panels(axes, len(nodes))
    names = figure_names(result, class_names)
    for ax, node, u in zip(grid, nodes, latent_draws(result, nodes), strict=True):
        if u.ndim == 2:
            colors, edges = class_colors(u.shape[1]), np.histogram_bin_edges(u, _n_bins(u))
            for k, values in enumerate(u.T):
                line = {"histtype": "step", "color": colors(k), "label": names[k]}
                ax.hist(values, bins=edges, density=True, **line)
        else:
            ax.hist(u, bins=_n_bins(u), density=True, color=accents()[0])
            ax.axvline(0.0, color=GREY, linewidth=1, linestyle="--")
        ax.set_title(f"node {node}: {_label_words(result, int(node), names)}", fontsize=8)
        ax.set_yticks([])
        ax.set_xlabel("u", fontsize=7)
        ax.tick_params(labelsize=7)
        ax.spines[["top", "right", "left"]].set_visible(False)
    if len(grid) and label_mean(result).ndim == 2:
        grid[0].legend(frameon=False, fontsize=6)
    return grid


def _n_bins(draws: np.ndarray) -> int:
    """Return the number of bins, so that a bin has many draws."""
    return int(np.clip(np.sqrt(len(draws)), 10, 60))


def _label_words(result: Result, node: int, names: Sequence[str]) -> str:
    """Describe a node: its most probable class with the probability."""
    k = int(class_codes(result)[node])
    return f"{names[k]} {result.probabilities[node, k]:.2f}"
