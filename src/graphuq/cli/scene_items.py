"""Pixels of a scene, as the page of ``graphuq label`` shows them."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from graphuq.external.raster import PixelLabels, read_labels, read_scene
from graphuq.external.raster.fit import MAX_PIXELS, graph_of_scene
from graphuq.external.raster.labels import with_data
from graphuq.external.raster.picture import scene_picture
from graphuq.graphs import Graph
from graphuq.labelling.pixels import PixelItems

NO_LABELS = PixelLabels(np.empty((0, 2), dtype=np.int64), np.empty(0, dtype=object))
MAX_BANDS = 12  # that are shown beside a pixel


def scene_items(file: Path, labels: Path | None) -> tuple[PixelItems, Graph, Any]:
    """Return pixels of a scene, their graph, and their known classes, None or "" where unknown.

    They are all pixels of a scene of up to 30,000, and of a larger one the labelled pixels and a
    random sample, the same for the same labels.

    Parameters
    ----------
    file : path
    labels : path, optional
        As for ``graphuq map``, with the classes in ``class``.

    Raises
    ------
    InvalidInput, StorageError
        If a file cannot be read or used.
    """
    scene = read_scene(file)
    mask = scene.mask()
    known = NO_LABELS if labels is None else with_data(read_labels(labels, scene), mask)
    nodes = graph_of_scene(scene, mask, known, MAX_PIXELS, np.random.default_rng(0))
    places, spectra = nodes.pixels.places, nodes.pixels.spectra
    shown = {"column": places[:, 1], "row": places[:, 0]}
    if scene.has_georeference:
        shown["x"], shown["y"] = scene.coordinates(places)
    bands = {f"band {b + 1}": spectra[:, b] for b in range(min(scene.n_bands, MAX_BANDS))}
    items = PixelItems(scene_picture(scene), places, pd.DataFrame({**shown, **bands}))
    # One model that is renewed at each label uses one graph: that of places and spectra.
    graph = dataclasses.replace(nodes.graph, others={})
    if labels is None:
        return items, graph, None
    row_of = {tuple(place): row for row, place in enumerate(places.tolist())}
    y = np.full(len(places), "", dtype=object)
    y[[row_of[tuple(place)] for place in known.places.tolist()]] = known.classes
    return items, graph, y
