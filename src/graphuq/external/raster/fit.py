"""Fit of a classifier to some pixels of a scene, and its answer for all others, tile by tile."""

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.separate_places import check_places, leave_places_out
from graphuq.classifier.suspect_columns import codes_in
from graphuq.errors import GraphuqWarning, InvalidInput, require
from graphuq.external.raster.labels import PixelLabels, with_data
from graphuq.external.raster.scene import Scene, Tile
from graphuq.graphs.pixels import PixelGraph, Pixels
from graphuq.results.trust.base import Trust, not_computed
from graphuq.utils.checks import require_integer
from graphuq.utils.concurrency import cached_property
from graphuq.utils.progress import Progress
from graphuq.utils.user_warnings import warn_user

MAX_PIXELS = 30_000  # nodes of the graph
MAX_LABELS = 1_000  # up to which the default is an average over models
MARGIN = 1  # pixels around a tile that enter the means of its own


class TileAnswer(NamedTuple):
    """The answer for the pixels of a tile that have data, row by row.

    Attributes
    ----------
    chosen : numpy.ndarray of bool, shape (R, C)
        Pixels of the tile that have data, n of them.
    probabilities : numpy.ndarray, shape (n, K)
    values : numpy.ndarray, shape (B, R, C)
        Bands of the tile.
    """

    chosen: Bool[np.ndarray, "R C"]
    probabilities: Float[np.ndarray, "n K"]
    values: Float[np.ndarray, "B R C"]


@dataclass(frozen=True, eq=False)
class FittedScene:
    """A classifier whose nodes are pixels of a scene; `fit_scene` makes one.

    Attributes
    ----------
    scene : Scene
    pixel_graph : PixelGraph
    classifier : GraphClassifier
        Fitted to `labels`.
    labels : PixelLabels
        Those that were used.
    mask : numpy.ndarray of bool, shape (R, C)
        Which pixels have data.
    """

    scene: Scene
    pixel_graph: PixelGraph
    classifier: GraphClassifier
    labels: PixelLabels
    mask: Bool[np.ndarray, "R C"]

    @cached_property
    def trust(self) -> Trust:
        """The verdict on the answer, with a check of places far from labels.

        It weighs the graphs three times again, each time without the labels of a third of some
        squares; see `graphuq.classifier.separate_places`.
        """
        checks = dict(self.classifier.result_.trust.checks)
        try:
            found = leave_places_out(self.classifier, self.places)
            checks["places"] = check_places(found, "pixels")
        except InvalidInput as error:
            checks["places"] = not_computed("How right places far from labels are", error)
        return Trust(checks)

    @property
    def places(self) -> Int[np.ndarray, "N 2"]:
        """Rows and columns of the nodes."""
        return self.pixel_graph.pixels.places

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in the order of probabilities."""
        return [str(name) for name in self.classifier.classes_]

    def predict(self, tile: Tile) -> TileAnswer:
        """Return the probabilities of the pixels of a tile.

        A node has its own. Any other pixel has the weighted mean of those of the nodes to which it
        is joined: the nearest ones, and those of the most similar spectra. That is quicker than
        `GraphClassifier.predict_proba`, which averages fields.
        """
        values, mask, wide = self.scene.around(tile, MARGIN)
        inner = _inner(tile, wide)
        chosen = np.zeros_like(mask)
        chosen[inner] = mask[inner]
        probabilities = np.empty((int(chosen.sum()), len(self.classifier.classes_)))
        if len(probabilities):
            pixels = Pixels.of(values, chosen, mask, (wide.top, wide.left))
            nodes = self._nodes_of(pixels.places)
            new = nodes < 0
            probabilities[~new] = self.classifier.label_distributions_[nodes[~new]]
            if new.any():
                weights = self.pixel_graph.connect(Pixels(*(part[new] for part in pixels)))
                probabilities[new] = mean_over_nodes(weights, self.classifier.label_distributions_)
        return TileAnswer(chosen[inner], probabilities, values[:, *inner])

    def _nodes_of(self, places: Int[np.ndarray, "n 2"]) -> Int[np.ndarray, " n"]:
        """Return the node of each pixel, or −1; nodes are in no order."""
        width = self.scene.shape[1]
        known, asked = self.places @ [width, 1], places @ [width, 1]
        order = np.argsort(known)
        at = np.minimum(np.searchsorted(known, asked, sorter=order), len(known) - 1)
        return np.where(known[order[at]] == asked, order[at], -1)


def fit_scene(
    scene: Scene,
    labels: PixelLabels,
    *,
    max_pixels: int = MAX_PIXELS,
    max_labels: int = MAX_LABELS,
    random_state: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> FittedScene:
    """Infer the classes of the pixels of a scene from a few labels.

    The nodes of the graph are all pixels of a small scene, and of a larger one the labelled pixels
    and a random sample. See docs/scenes.md.

    Parameters
    ----------
    scene : Scene
    labels : PixelLabels
        As `read_labels` returns them; at least two classes.
    max_pixels : int, default 30,000
        Largest number of nodes.
    max_labels : int, default 1,000
        Largest number of labels that are used. Of more, as large polygons have, about as many of
        each class are drawn, with a warning.
    random_state : int, default 0
    progress : callable, optional
        See `graphuq.infer`; also called with the phase "pixels".
    **settings
        Parameters of `GraphClassifier`, such as ``inference``.

    Returns
    -------
    FittedScene

    Raises
    ------
    InvalidInput
        If there are fewer than two classes, or no label is of a pixel with data.
    """
    require_integer("max_pixels", max_pixels, 100)
    require_integer("max_labels", max_labels, 2)
    require(
        len(np.unique(labels.classes)) > 1,
        "labels",
        f"only the class '{labels.classes[0]}'",
        "label pixels of a second class too",
    )
    rng = np.random.default_rng(random_state)
    mask = scene.mask()
    used = _at_most(with_data(labels, mask), max_labels, rng)
    pixel_graph = graph_of_scene(scene, mask, used, max_pixels, rng, progress)
    classifier = GraphClassifier(
        pixel_graph.graph,
        missing_label=None,
        random_state=random_state,
        progress=progress or False,
        **settings,
    )
    unfitted = FittedScene(scene, pixel_graph, classifier, used, mask)
    y = np.full(len(unfitted.places), None, dtype=object)
    y[unfitted._nodes_of(used.places)] = used.classes
    classifier.fit(None, y)
    return dataclasses.replace(unfitted, classifier=classifier)


def graph_of_scene(
    scene: Scene,
    mask: Bool[np.ndarray, "R C"],
    labels: PixelLabels,
    max_pixels: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> PixelGraph:
    """Return the graph of all pixels with data, or of the labelled ones and a random sample.

    Parameters
    ----------
    scene : Scene
    mask : numpy.ndarray of bool, shape (R, C)
        Which pixels have data.
    labels : PixelLabels
        Of pixels with data; they may be none.
    max_pixels : int
        Largest number of nodes, but for labelled ones.
    rng : numpy.random.Generator
    progress : callable, optional
    """
    chosen = _sample(mask, labels, max(max_pixels, len(labels.classes)), rng)
    pixels = _read_pixels(scene, chosen, progress)
    _warn_of_undeclared(pixels.spectra, scene)
    return PixelGraph(pixels)


def _warn_of_undeclared(spectra: Float[np.ndarray, "N B"], scene: Scene) -> None:
    """Warn of numbers such as -9999 that seem to mean "no data", and are data in this file."""
    found = sorted({float(code) for band in spectra.T for code in codes_in(band)})
    if found:
        warn_user(
            f"scene: {', '.join(f'{code:g}' for code in found)} is far from all other numbers of a "
            f"band; if that means no data, let the file say so, as by gdal_edit.py -a_nodata "
            f"{found[0]:g} {scene.path.name}",
            GraphuqWarning,
        )


def mean_over_nodes(
    weights: sparse.csr_array, probabilities: Float[np.ndarray, "N K"]
) -> Float[np.ndarray, "M K"]:
    """Return the mean of the probabilities of the nodes with some weights to them."""
    total = np.asarray(weights.sum(axis=1))[:, None]
    return np.asarray(weights @ probabilities) / total


def _at_most(labels: PixelLabels, n: int, rng: np.random.Generator) -> PixelLabels:
    """Return at most n labels, about as many of each class, with a warning if some are left out."""
    if len(labels.classes) <= n:
        return labels
    order = rng.permutation(len(labels.classes))
    classes = labels.classes[order]
    turn = np.empty(len(classes), dtype=int)  # how many of its class are before each label
    for name in np.unique(classes):
        own = np.flatnonzero(classes == name)
        turn[own] = np.arange(len(own))
    kept = np.sort(order[np.argsort(turn, kind="stable")[:n]])
    warn_user(
        f"labels: {n} of {len(classes)} are used, about as many of each class; neighbouring pixels "
        "say much the same, and max_labels changes the number",
        GraphuqWarning,
    )
    return PixelLabels(labels.places[kept], labels.classes[kept])


def _sample(
    mask: Bool[np.ndarray, "R C"], labels: PixelLabels, n: int, rng: np.random.Generator
) -> Bool[np.ndarray, "R C"]:
    """Return which pixels are nodes: all with data, or the labelled ones and a random sample."""
    n_known = int(mask.sum())
    if n_known <= n:
        return mask
    chosen = np.zeros_like(mask)
    chosen[tuple(labels.places.T)] = True
    while (missing := n - int(chosen.sum())) > 0:
        drawn = rng.integers(mask.size, size=missing * mask.size // n_known + 1)
        drawn = drawn[mask.ravel()[drawn] & ~chosen.ravel()[drawn]]
        chosen.ravel()[drawn[:missing]] = True
    return chosen


def _read_pixels(
    scene: Scene, chosen: Bool[np.ndarray, "R C"], progress: Progress | None
) -> Pixels:
    """Return the chosen pixels, tile by tile."""
    parts, n_tiles = [], scene.n_tiles()
    for done, tile in enumerate(scene.tiles(), start=1):
        if chosen[tile.of_scene].any():
            values, mask, wide = scene.around(tile, MARGIN)
            inner, own = _inner(tile, wide), np.zeros_like(mask)
            own[inner] = chosen[tile.of_scene]
            parts.append(Pixels.of(values, own, mask, (wide.top, wide.left)))
        if progress is not None:
            progress("pixels", done, n_tiles, np.nan)
    return Pixels.joined(parts)


def _inner(tile: Tile, wide: Tile) -> tuple[slice, slice]:
    """Return the places of a tile in a wider one."""
    top, left = tile.top - wide.top, tile.left - wide.left
    rows, columns = tile.shape
    return slice(top, top + rows), slice(left, left + columns)
