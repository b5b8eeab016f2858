"""Maps of the nodes, coloured by class: at two eigenvectors, or beside similar nodes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from graphuq.errors import IncompatibleParts
from graphuq.plots.panels import (
    add_colorbar,
    class_colors,
    figure_names,
    label_colors,
    label_mean_ticks,
    new_or_given,
)
from graphuq.results.label_numbers import label_mean, labels
from graphuq.results.result import Result
from graphuq.spectrum import SpectralBasis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MANY_NODES = 20_000  # number of nodes from which points are binned
MAX_NODES = 50_000  # of a map whose nodes are not given
MAX_OUTLINED = 1000  # labelled nodes; more of them get no outline
MAP_SIZE = (6.0, 4.6)  # inches


def plot_map(
    result: Result,
    nodes: Int[np.ndarray, " n"] | None = None,
    places: Float[np.ndarray, "n 2"] | None = None,
    class_names: Sequence[Any] | None = None,
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot a map on which similar nodes lie side by side, coloured by label mean or class.

    Parameters
    ----------
    result : Result
    nodes : numpy.ndarray of int, shape (n,), optional
        Nodes on the map; by default all, or 50,000 of more, chosen at random.
    places : numpy.ndarray, shape (n, 2), optional
        Their places; by default those of `graphuq.spectrum.layout.node_layout`, which takes
        seconds.
    class_names : sequence, optional
        Names of the classes in the order of their codes; by default those of the result.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; by default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
    """
    ax = new_or_given(ax, MAP_SIZE)
    if nodes is None:
        order = np.random.default_rng(0).permutation(len(result.has_evidence))
        nodes = np.sort(order[:MAX_NODES])
    if places is None:
        from graphuq.spectrum.layout import node_layout  # imports scikit-learn's manifolds

        labelled = np.flatnonzero(np.isin(nodes, result.posterior.labelled))
        places = node_layout(result.posterior.spectrum, nodes, first=labelled)
    _draw_nodes(ax, result, nodes, places, figure_names(result, class_names))
    ax.set(title="Map of the nodes", xticks=[], yticks=[])
    ax.set_xlabel("similar nodes lie side by side; the axes have no unit")
    return ax


def plot_embedding(
    result: Result, class_names: Sequence[Any] | None = None, *, ax: "Axes | None" = None
) -> "Axes":
    """Plot nodes at the first two non-constant eigenvectors, coloured by label mean or class.

    Two eigenvectors rarely separate more than three classes; `plot_map` does.

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

    Raises
    ------
    IncompatibleParts
        If the result has covariance columns instead of eigenvectors.
    """
    ax = new_or_given(ax, MAP_SIZE)
    spectrum = result.posterior.spectrum
    if not spectrum.has_eigenpairs:
        raise IncompatibleParts(
            "covariance columns have no eigenvectors to plot; use plot_map, or make the posterior "
            "from laplacian_spectrum(graph), or n_eigenpairs=150 in GraphClassifier"
        )
    first, second = leading_eigenvectors(spectrum)
    places = np.stack([spectrum.eigenvectors[:, k] for k in (first, second)], axis=1)
    _draw_nodes(
        ax, result, np.arange(len(result.has_evidence)), places, figure_names(result, class_names)
    )
    ax.set(
        xlabel=f"eigenvector {first}",
        ylabel=f"eigenvector {second}",
        title="Nodes at two eigenvectors of the Laplacian",
    )
    return ax


def _draw_nodes(
    ax: "Axes",
    result: Result,
    nodes: Int[np.ndarray, " n"],
    places: Float[np.ndarray, "n 2"],
    names: Sequence[str],
) -> None:
    """Draw nodes in the colours of their classes, labelled ones with an outline; many in bins."""
    import matplotlib

    x, y = places.T
    multiclass = label_mean(result).ndim == 2
    style: dict[str, Any] = {"cmap": label_colors(), "vmin": -1, "vmax": 1}
    shown = label_mean(result)[nodes]
    if multiclass:
        style = {"cmap": class_colors(len(names)), "vmin": -0.5, "vmax": len(names) - 0.5}
        shown = labels(result)[nodes]
    drawn: Any
    if len(nodes) > MANY_NODES:
        reduce: Any = _most_frequent if multiclass else np.mean
        drawn = ax.hexbin(x, y, C=shown, gridsize=120, reduce_C_function=reduce, **style)
    else:
        size = float(np.clip(20_000 / len(nodes), 4, 25))
        drawn = ax.scatter(x, y, c=shown, s=size, linewidths=0, **style)
        drawn.set_rasterized(True)
    ink = matplotlib.rcParams["text.color"]
    given = dict(zip(result.posterior.labelled.tolist(), result.posterior.labels, strict=True))
    at = np.flatnonzero(np.isin(nodes, result.posterior.labelled))
    if 0 < len(at) <= MAX_OUTLINED:
        ax.scatter(
            x[at],
            y[at],
            c=[given[node] for node in nodes[at].tolist()],
            s=45,
            edgecolors=ink,
            linewidths=1.0,
            **style,
        )
        outline = ax.scatter([], [], s=45, facecolors="none", edgecolors=ink)
        ax.legend([outline], ["labelled node"], frameon=False)
    bar = add_colorbar(drawn, ax, "most probable class" if multiclass else "label mean")
    if multiclass:
        bar.set_ticks(range(len(names)), labels=names)
    else:
        ticks, words = label_mean_ticks(names)
        bar.set_ticks(ticks, labels=words)


def leading_eigenvectors(spectrum: SpectralBasis) -> tuple[int, int]:
    """Return the indices of the first two eigenvectors that are not constant on components."""
    first = min(spectrum.n_components, spectrum.n_eigenpairs - 1)
    return first, min(first + 1, spectrum.n_eigenpairs - 1)


def _most_frequent(values: ArrayLike) -> float:
    """Return the most frequent class of a bin."""
    return float(np.bincount(np.asarray(values, dtype=int)).argmax())
