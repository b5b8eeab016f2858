"""Points between which distances are measured: main components of rows of many features."""

import numpy as np
from jaxtyping import Float

from graphuq.engine.store import Stage
from graphuq.engine.tasks import Tasks
from graphuq.graphs.principal import Axes, main_axes, rows_of_axes
from graphuq.graphs.weights import WeightFunction


def project(
    stage: Stage, parts: Stage, n_components: int, weight: WeightFunction, tasks: Tasks
) -> None:
    """Write the points of all rows, as a table of their own in the same order.

    The stage then holds what the search for neighbours needs: for part p ``features-p``, the
    points, and ``row-p``; and ``centres`` and ``list_starts`` of the lists.
    """
    starts = parts.record["starts"]
    if not stage.has("directions"):
        rows = rows_of_axes(starts[-1])
        places = parts.parts("place", parts.record["blocks"]).take(rows)
        sample = parts.parts("features", starts).take(places)
        axes = main_axes(sample.astype(np.float64), weight, n_components)
        assert axes is not None  # the number was given
        for name, array in zip(Axes._fields, axes, strict=True):
            stage.save(name, None, array)
    centres = measured(stage, np.asarray(parts.load("centres"), dtype=np.float64))
    stage.save("centres", None, centres)
    stage.save("list_starts", None, np.asarray(parts.load("list_starts")))
    tasks.map(_project_part, [(stage, parts, p) for p in range(len(starts) - 1)], "neighbours")
    stage.finish({"starts": starts})


def measured(stage: Stage, rows: np.ndarray) -> Float[np.ndarray, "R r"]:
    """Return the points of rows of features, in single precision."""
    axes = Axes(*(np.asarray(stage.load(name)) for name in Axes._fields))
    return axes.scores(rows).astype(np.float32)


def _project_part(stage: Stage, parts: Stage, p: int) -> None:
    if not stage.has("features", p):
        stage.save("row", p, np.asarray(parts.load("row", p)))
        stage.save("features", p, measured(stage, parts.load("features", p)))
