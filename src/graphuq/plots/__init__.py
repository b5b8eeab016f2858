"""Figures of results, spectra and scores.

A function with one panel takes ``ax=None`` and returns the matplotlib ``Axes`` it drew into; one
with several panels takes ``axes=None`` and returns a one-dimensional array of them. Without axes,
a new pyplot figure is made, which ``matplotlib.pyplot.show()`` displays.
"""

from graphuq.plots.curves import (
    plot_ess,
    plot_evidence,
    plot_reliability,
    plot_spectrum,
    plot_trace,
)
from graphuq.plots.maps import plot_embedding, plot_map
from graphuq.plots.nodes import plot_certainty, plot_marginals, plot_order
from graphuq.plots.panels import class_colors, panels
from graphuq.plots.pictures import plot_images

__all__ = [
    "class_colors",
    "panels",
    "plot_certainty",
    "plot_embedding",
    "plot_ess",
    "plot_evidence",
    "plot_images",
    "plot_map",
    "plot_marginals",
    "plot_order",
    "plot_reliability",
    "plot_spectrum",
    "plot_trace",
]
