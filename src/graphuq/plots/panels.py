"""Figures, their panels, and the names and colours of classes."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Shaped

from graphuq.errors import require
from graphuq.results.result import Result
from graphuq.results.uncertainty import with_unseen
from graphuq.utils.class_colors import CLASS_COLORS, class_color
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap, ListedColormap
    from matplotlib.figure import Figure

    ManyAxes = Axes | Sequence[Axes] | np.ndarray
    """Axes that a caller gives to a function with several panels."""
else:
    ManyAxes = Any

LONG_NAMES = 44  # letters of two names, above which they are written smaller

AxesArray = Shaped[np.ndarray, " P"]
"""A one-dimensional array of matplotlib ``Axes``, one for each panel."""

BLUE, ORANGE, GREY = "#3b6fb6", "#d97706", "#8a8f98"
NEUTRAL = {"light": "#e4e6e9", "dark": "#3d434c"}  # a label mean of 0
MAX_NAME = 30  # characters of a class name in a figure
FIGURE_SIZE = (6.0, 3.8)  # inches, of a figure with one panel


def panels(
    n_panels: int = 1,
    max_columns: int = 1,
    size: tuple[float, float] = FIGURE_SIZE,
    *,
    pyplot: bool = False,
) -> "tuple[Figure, AxesArray]":
    """Return a figure and its axes, in rows of at most ``max_columns`` panels.

    Parameters
    ----------
    n_panels : int, default 1
        Number of panels. Surplus places of the last row stay empty.
    max_columns : int, default 1
        Largest number of panels in a row.
    size : tuple of float, default `FIGURE_SIZE`
        Width and height of a panel in inches.
    pyplot : bool, default False
        True: pyplot manages the figure, so that ``show`` displays it.

    Raises
    ------
    MissingPackage
        If the extra ``graphuq[plots]`` is not installed.
    """
    require_extra("plots")
    columns = min(max_columns, max(1, n_panels))
    rows = -(-max(1, n_panels) // columns)
    shape: dict[str, Any] = {
        "figsize": (size[0] * columns, size[1] * rows),
        "layout": "constrained",
    }
    if pyplot:
        from matplotlib import pyplot as plt

        figure = plt.figure(**shape)
    else:
        from matplotlib.figure import Figure

        figure = Figure(**shape)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in grid:
        ax.spines[["top", "right"]].set_visible(False)
    for ax in grid[n_panels:]:
        ax.set_axis_off()
    return figure, grid[:n_panels]


def new_or_given(ax: "Axes | None", size: tuple[float, float] = FIGURE_SIZE) -> "Axes":
    """Return the given axes, or those of a new pyplot figure."""
    return panels(size=size, pyplot=True)[1][0] if ax is None else ax


def check_panels(axes: ManyAxes, n_panels: int) -> AxesArray:
    """Return given axes as a one-dimensional array, after a check of their number."""
    grid = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    require(len(grid) >= n_panels, "axes", f"{len(grid)} panels", f"give {n_panels} or more")
    return grid[:n_panels]


def add_colorbar(drawn: Any, ax: "Axes", label: str, **options: Any) -> Any:
    """Add a colour bar to the figure of the axes, which may be a subfigure."""
    return ax.figure.colorbar(drawn, ax=ax, label=label, **options)


def names_of_classes(result: Result, names: Sequence[Any] | np.ndarray | None = None) -> list[str]:
    """Names of all classes as text: the given ones, or those of the result."""
    text = [str(name) for name in (result.classes if names is None else names)]
    text = ["−1", "+1"] if text == ["-1", "1"] else text
    return with_unseen(text, result.posterior.n_classes)


def figure_names(result: Result, names: Sequence[Any] | np.ndarray | None = None) -> list[str]:
    """Names of all classes for figures: short, without control characters or mathematics."""
    return [figure_text(name) for name in names_of_classes(result, names)]


def figure_text(text: str) -> str:
    r"""Text that matplotlib draws as it stands, in at most 30 characters.

    Examples
    --------
    >>> print(figure_text("a $5 and a $10 note"))
    a \$5 and a \$10 note
    """
    plain = "".join(c if c.isprintable() else " " for c in text)
    short = plain if len(plain) <= MAX_NAME else plain[: MAX_NAME - 1] + "…"
    return short.replace("$", r"\$")


def label_mean_ticks(names: Sequence[str]) -> tuple[list[float], list[str]]:
    """Ticks of an axis of label means, and their labels: the ends have names of classes."""
    ends = names if list(names) == ["−1", "+1"] else [f"−1: {names[0]}", f"+1: {names[1]}"]
    return [-1.0, -0.5, 0.0, 0.5, 1.0], [ends[0], "−0.5", "0", "+0.5", ends[1]]


def show_label_mean_ticks(ax: "Axes", names: Sequence[str]) -> None:
    """Show `label_mean_ticks` below an axis; names of classes have a line of their own."""
    ticks, words = label_mean_ticks(names)
    ax.set_xticks(ticks, labels=[word.replace(": ", "\n", 1) for word in words])
    first, *_, last = ax.get_xticklabels()
    first.set_horizontalalignment("left")
    last.set_horizontalalignment("right")
    if sum(map(len, names)) > LONG_NAMES:
        first.set_fontsize("small")
        last.set_fontsize("small")


def functional_words(name: str, names: Sequence[str]) -> str:
    """Name of a monitored functional, with the name of its class instead of the code.

    Examples
    --------
    >>> functional_words("u[7,1]", ["cat", "dog"]), functional_words("tau[0]", ["cat", "dog"])
    ('u[7] of dog', 'tau of cat')
    >>> functional_words("log_likelihood", ["cat", "dog"])
    'log likelihood'
    """
    found = re.fullmatch(r"(?P<stem>u\[\d+(?=,)|(?!u\[)\w+)[,\[](?P<code>\d+)\]", name)
    if found is None:
        return name.replace("_", " ")
    stem = found["stem"] + "]" if found["stem"].startswith("u[") else found["stem"]
    return f"{stem} of {names[int(found['code'])]}"


def theme() -> str:
    """Return "dark" if matplotlib's style has a dark background, and else "light"."""
    import matplotlib
    from matplotlib.colors import to_rgb

    return "dark" if np.mean(to_rgb(matplotlib.rcParams["axes.facecolor"])) < 0.5 else "light"


def class_colors(n_classes: int) -> "ListedColormap":
    """Return a colour map with one distinct colour for each class; colours repeat after 20.

    Colour-blind readers tell the first ten apart. Colours 11 to 20 are half way from these to
    black, or to white on a dark background (``matplotlib.style.use("dark_background")``).
    """
    from matplotlib.colors import ListedColormap, to_rgb

    colors = [to_rgb(class_color(k, theme())) for k in range(n_classes)]
    return ListedColormap(colors)


def accents() -> tuple[str, str]:
    """Return a blue and an orange for curves, lighter on a dark background."""
    first, second = CLASS_COLORS["dark"][:2]
    return (first, second) if theme() == "dark" else (BLUE, ORANGE)


def label_colors() -> "LinearSegmentedColormap":
    """Return the colour map of label means: the first class at −1, the second at +1."""
    from matplotlib.colors import LinearSegmentedColormap

    first, second = CLASS_COLORS[theme()][:2]
    return LinearSegmentedColormap.from_list("label mean", [first, NEUTRAL[theme()], second])
