"""Figures of one number for each pixel of each frame."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.plots import panels
from graphuq_papers.checks import require


def frame_panels(n_frames: int, height: int, width: int, *, pyplot: bool = False) -> np.ndarray:
    """Return the axes of a figure for `plot_frames`: one panel for each frame.

    Parameters
    ----------
    n_frames, height, width : int
        Shape of the maps.
    pyplot : bool, default False
        True: pyplot manages the figure.
    """
    columns = min(n_frames, max(3, int(np.ceil(np.sqrt(n_frames)))))
    rows = -(-n_frames // columns)
    total = min(0.5 + 8.0 / columns * rows * height / width, 12.0)
    return panels(n_frames, columns, (8.0 / columns, total / rows), pyplot=pyplot)[1]


def plot_frames(
    maps: Float[np.ndarray, "T H W"] | Int[np.ndarray, "T H W"],
    label: str,
    limits: tuple[float, float] = (0.0, 1.0),
    cmap: str = "Greys",
    names: Sequence[str] = (),
    *,
    axes: Any = None,
) -> np.ndarray:
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
    axes : sequence or array of Axes, optional
        T axes to draw into; by default those of a new figure.

    Returns
    -------
    numpy.ndarray of matplotlib.axes.Axes, shape (T,)

    Raises
    ------
    InvalidInput
        If there are fewer axes than frames.
    """
    given = frame_panels(*maps.shape, pyplot=True) if axes is None else axes
    grid = np.atleast_1d(np.asarray(given, dtype=object)).ravel()
    few = f"{len(grid)} panels for {len(maps)} frames"
    require(len(grid) >= len(maps), "axes", few, f"give {len(maps)} or more")
    grid = grid[: len(maps)]
    for t, ax in enumerate(grid):
        picture = ax.imshow(maps[t], cmap=cmap, vmin=limits[0], vmax=limits[1])
        ax.set(title=names[t] if names else f"frame {t + 1}", xticks=[], yticks=[])
        ax.spines[["top", "right"]].set_visible(True)
    grid[0].figure.colorbar(picture, ax=list(grid), label=label, shrink=0.6)
    return grid
