"""Figures of the report, as embedded pictures."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from graphuq import plots, scores
from graphuq.results.result import Result
from graphuq.utils.html import embedded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL_SIZE = (5.0, 3.3)  # inches; its letters can be read in a page 400 pixels wide
BACKGROUND, INK = "#14171c", "#e6e9ee"  # of a dark page; see page.css
DARK: dict[Any, Any] = {  # names of matplotlib's settings
    **dict.fromkeys(["figure.facecolor", "savefig.facecolor", "axes.facecolor"], BACKGROUND),
    **dict.fromkeys(["text.color", "axes.labelcolor", "axes.edgecolor"], INK),
    **dict.fromkeys(["xtick.color", "ytick.color"], INK),
}

ALTERNATIVES = {
    "Spectrum": "Eigenvalues of the Laplacian in ascending order",
    "Map": "Map of the nodes, coloured by class; similar nodes lie side by side",
    "Certainty": "Histogram of the certainty of the unlabelled nodes, by class",
    "Reliability": "Accuracy against the probability of the inferred class, with error bars; the "
    "tables beside it have the scores",
}
"""Texts in place of the figures, for readers who cannot see them."""


def result_figures(
    result: Result,
    names: list[str],
    scored: tuple[np.ndarray, np.ndarray] | None,
    nodes: Int[np.ndarray, " n"],
    places: Float[np.ndarray, "n 2"],
) -> dict[str, dict[str, str]]:
    """Return the figures that the result has, by the names in `ALTERNATIVES` and by theme."""
    draw: dict[str, Callable[[Axes], Axes]] = {
        "Certainty": lambda ax: plots.plot_certainty(result, names, ax=ax),
        "Map": lambda ax: plots.plot_map(result, nodes, places, names, ax=ax),
    }
    if result.posterior.spectrum.has_eigenpairs:
        spectrum = result.posterior.spectrum
        draw["Spectrum"] = lambda ax: plots.plot_spectrum(spectrum, ax=ax)
    if scored is not None:
        curve = scores.reliability_curve(*scored)
        draw["Reliability"] = lambda ax: plots.plot_reliability(curve, ax=ax)
    return drawn_panels(draw)


def drawn_panels(draw: "Mapping[str, Callable[[Axes], Axes]]") -> dict[str, dict[str, str]]:
    """Return figures of one panel, each for a light and for a dark page."""
    return {name: themed_pictures(partial(_one_panel, part)) for name, part in draw.items()}


def themed_pictures(picture: Callable[[], str]) -> dict[str, str]:
    """Draw a figure for a light and for a dark page, in the colours of that page."""
    import matplotlib

    with matplotlib.rc_context(DARK):
        dark = picture()
    return {"light": picture(), "dark": dark}


def _one_panel(draw: "Callable[[Axes], Axes]") -> str:
    """Draw into a figure that pyplot does not manage, and embed it."""
    figure, axes = plots.panels(size=PANEL_SIZE)
    draw(axes[0])
    return embedded(figure)


def chain_figures(result: Result, names: list[str]) -> dict[str, dict[str, str]]:
    """Return traces, and effective sample sizes and R-hat against the number of draws, by theme."""

    def trace() -> str:
        figure, traces = plots.panels(2, 1, PANEL_SIZE)
        drawn = plots.plot_trace(result, names, axes=traces)
        for unused in traces[len(drawn) :]:
            unused.remove()
        return embedded(figure)

    def ess() -> str:
        figure, both = plots.panels(2, 1, PANEL_SIZE)
        plots.plot_ess(result, axes=both)
        return embedded(figure)

    return {"Trace": themed_pictures(trace), "Effective sample size": themed_pictures(ess)}
