"""Figures of nodes that are images."""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float, Int
from numpy import ndarray

from graphuq.plots.panels import (
    AxesArray,
    ManyAxes,
    check_panels,
    figure_names,
    panels,
    theme,
)
from graphuq.results.label_numbers import class_codes
from graphuq.results.result import Result

IMAGE_SIZE = (0.95, 1.15)  # inches, of one image with its title
IMAGE_COLUMNS = 10  # largest number of images in a row


def plot_images(
    result: Result,
    images: Float[ndarray, "N h w"],
    nodes: Int[ndarray, " M"],
    title: str = "",
    class_names: Sequence[Any] | None = None,
    *,
    axes: ManyAxes | None = None,
) -> AxesArray:
    """Plot the images of some nodes, each under its inferred class and the probability of it.

    Large numbers are dark, or light if matplotlib's style has a dark background.

    Parameters
    ----------
    result : Result
    images : numpy.ndarray, shape (N, h, w)
    nodes : numpy.ndarray of int, shape (M,)
    title : str
        Title of a new figure; unused if ``axes`` are given.
    class_names : sequence, optional
        Names of the classes in the order of their codes; by default those of the result.
    axes : Axes, sequence or array of Axes, optional
        M axes to draw into; by default those of a new figure.

    Returns
    -------
    numpy.ndarray of matplotlib.axes.Axes, shape (M,)
    """
    if axes is None:
        figure, axes = panels(len(nodes), IMAGE_COLUMNS, IMAGE_SIZE, pyplot=True)
        figure.suptitle(title, fontsize=10)
    grid = check_panels(axes, len(nodes))
    names, probability = figure_names(result, class_names), result.probabilities
    codes = class_codes(result)
    cmap = "gray" if theme() == "dark" else "gray_r"
    for ax, node in zip(grid, nodes, strict=True):
        ax.imshow(images[node], cmap=cmap, interpolation="nearest")
        k = int(codes[node])
        ax.set_title(f"{names[k]}\n{probability[node, k]:.2f}", fontsize=7)
        ax.set_axis_off()
    return grid
