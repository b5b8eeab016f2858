"""The report of a scene: its maps, classes and next places."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from graphuq.plots.panels import class_colors, panels
from graphuq.report import figures
from graphuq.results.trust.base import Trust
from graphuq.utils.extras import require_extra
from graphuq.utils.html import embedded, write_page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PROBABILITY = "probability"  # of the places to label next
PANEL_SIZE = 5.0  # inches of the width of a map
SCENE, CLASS, CERTAINTY = "Scene", "Class", "Certainty"
ALTERNATIVES = {
    SCENE: "The scene in false colours, with the labelled pixels and those to label next",
    CLASS: "The most probable class of each pixel",
    CERTAINTY: "The probability of this class at each pixel",
}
"""Texts in place of the figures, for readers who cannot see them."""


def write_scene_report(
    mapped: Any,
    trust: Trust,
    n_nodes: int,
    path: str | Path,
    *,
    title: str,
    class_names: Sequence[str],
    labelled: Int[np.ndarray, "J 2"],
    label_names: np.ndarray,
    next_table: Any,
    settings: Mapping[str, Any],
) -> None:
    """Write a self-contained HTML report of a scene.

    Parameters
    ----------
    mapped : graphuq.external.raster.Overview
        As `graphuq.external.raster.write_maps` returns it.
    trust : Trust
        Verdict, as of `graphuq.external.raster.FittedScene`.
    n_nodes : int
        Pixels that are nodes of the graph.
    path : path
    title : str
    class_names : sequence of length K
    labelled : numpy.ndarray of int, shape (J, 2)
        Rows and columns of the labelled pixels.
    label_names : numpy.ndarray of str, shape (J,)
        Their classes.
    next_table : pandas.DataFrame
        Places to label next.
    settings : dict
        Values of JSON.

    Raises
    ------
    StorageError
        If the file cannot be written.
    MissingPackage
        If the extra ``graphuq[report]`` is not installed.
    """
    require_extra("report")
    n_pixels = int(mapped.counts.sum())
    mean = float(mapped.counts @ mapped.means) / n_pixels
    write_page(
        path,
        "graphuq.report",
        "scene.html",
        styles=("report.css",),
        title=title,
        trust=trust,
        cards=[
            (f"{100 * mean:.1f} %", "expected accuracy: mean probability of the inferred class"),
            (f"{n_nodes:,}", "pixels are nodes of the graph"),
        ],
        n_pixels=n_pixels,
        n_labelled=len(labelled),
        step=mapped.step,
        classes=[
            {
                "name": name,
                "given": int((label_names == name).sum()),
                "pixels": int(mapped.counts[k]),
                "share": float(mapped.counts[k] / n_pixels),
                "probability": float(mapped.means[k]),
            }
            for k, name in enumerate(class_names)
        ],
        next_columns=list(next_table.columns),
        next_rows=[
            [_shown(name, cell) for name, cell in zip(next_table.columns, row, strict=True)]
            for row in next_table.itertuples(index=False)
        ],
        settings=json.dumps(settings, indent=2, ensure_ascii=False),
        figures=_figures(mapped, class_names, labelled),
        alternatives=ALTERNATIVES,
    )


def _shown(name: str, cell: Any) -> str:
    """Return a cell as text: coordinates to what degrees and metres need, probabilities to 2."""
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:.2f}" if name == PROBABILITY else f"{cell:,.6f}".rstrip("0").rstrip(".")


def _figures(
    mapped: Any, names: Sequence[str], labelled: Int[np.ndarray, "J 2"]
) -> dict[str, dict[str, str]]:
    """Return the maps, each for a light and for a dark page."""
    draw: dict[str, Callable[[Axes], None]] = {
        SCENE: partial(_draw_scene, mapped, labelled),
        CLASS: partial(_draw_classes, mapped, names),
        CERTAINTY: partial(_draw_certainty, mapped),
    }
    rows, columns = mapped.codes.shape
    size = (PANEL_SIZE, 0.6 + PANEL_SIZE * min(rows / columns, 1.6))

    def picture(part: "Callable[[Axes], None]") -> str:
        drawn, axes = panels(size=size)
        part(axes[0])
        axes[0].set_axis_off()
        return embedded(drawn)

    return {name: figures.themed_pictures(partial(picture, part)) for name, part in draw.items()}


def _draw_scene(mapped: Any, labelled: Int[np.ndarray, "J 2"], ax: "Axes") -> None:
    ax.imshow(np.dstack([mapped.picture, mapped.codes >= 0]), interpolation="nearest")
    for places, mark, words in ((labelled, "o", "labelled"), (mapped.next_places, "^", "next")):
        y, x = places.T / mapped.step
        ax.scatter(x, y, 22, marker=mark, edgecolors="k", linewidths=0.6, label=words)
    ax.legend(loc="upper right", fontsize=7)


def _draw_classes(mapped: Any, names: Sequence[str], ax: "Axes") -> None:
    from matplotlib.patches import Patch

    colours: Any = class_colors(len(names))
    shown = np.ma.masked_less(mapped.codes, 0)
    ax.imshow(shown, cmap=colours, vmin=-0.5, vmax=len(names) - 0.5, interpolation="nearest")
    patches = [
        Patch(color=colours.colors[k], label=name)
        for k, name in enumerate(names)
        if mapped.counts[k]
    ]
    ax.legend(handles=patches, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=2, fontsize=8)


def _draw_certainty(mapped: Any, ax: "Axes") -> None:
    shown = ax.imshow(mapped.probability, cmap="cividis", vmin=0, vmax=1, interpolation="nearest")
    figure = ax.figure
    figure.colorbar(shown, ax=ax, shrink=0.8, label="probability of the class")
