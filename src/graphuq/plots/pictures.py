"""Figures that consist of images: nodes that are images, and frames whose pixels are nodes."""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float, Int
from numpy import ndarray

from graphuq.plots.panels import (
    AxesArray,
    ManyAxes,
    add_colorbar,
    check_panels,
    figure_names,
    frame_panels,
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


def plot_frames(
    maps: Float[ndarray, "T H W"] | Int[ndarray, "T H W"],
    label: str,
    limits: tuple[float, float] = (0.0, 1.0),
    cmap: str = "Greys",
    names: Sequence[str] = (),
    *,
    axes: ManyAxes | None = None,
) -> AxesArray:
    """Plot one number for each pixel of each frame, such as a probability.

    Parameters
    ----------
    maps : numpy.ndarray, shape (T, H, W)
    label : str
        Name of the number, beside the colour bar.
    limits : tuple of float, default (0, 1)
        Numbers at the ends of the colour bar.
    cmap : str, default "Greys"
        A matplotlib colour map.
    names : sequence of str, optional
        Names of the frames; by default "frame 1" and so on.
    axes : Axes, sequence or array of Axes, optional
        T axes to draw into; by default those of a new figure.

    Returns
    -------
    numpy.ndarray of matplotlib.axes.Axes, shape (T,)
    """
    grid = check_panels(frame_panels(*maps.shape, pyplot=True) if axes is None else axes, len(maps))
    for t, ax in enumerate(grid):
        picture = ax.imshow(maps[t], cmap=cmap, vmin=limits[0], vmax=limits[1])
        ax.set(title=names[t] if names else f"frame {t + 1}", xticks=[], yticks=[])
        ax.spines[["top", "right"]].set_visible(True)
    add_colorbar(picture, list(grid), label, shrink=0.6)
    return grid
