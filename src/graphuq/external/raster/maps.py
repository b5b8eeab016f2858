"""Maps of a fitted scene: rasters with its georeference, written tile by tile."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import entr

from graphuq import acquisition
from graphuq.errors import IncompatibleParts
from graphuq.external.raster.attribute_table import SUFFIX, write_attribute_table
from graphuq.external.raster.fit import FittedScene, TileAnswer
from graphuq.external.raster.picture import ends_of, shown_bands, stretched
from graphuq.external.raster.scene import Scene, Tile
from graphuq.plots.panels import class_colors
from graphuq.results.average_parts import block_weights
from graphuq.results.label_numbers import most_uncertain
from graphuq.results.table import margins
from graphuq.utils.extras import require_extra
from graphuq.utils.output_folder import atomic_folder, output_folder
from graphuq.utils.progress import Progress
from graphuq.utils.version import __version__

CLASSES, PROBABILITIES, ENTROPY, RANK = (
    "classes.tif",
    "probabilities.tif",
    "entropy.tif",
    "rank.tif",
)
NEXT, SETTINGS = "next.csv", "settings.json"
FILES = (CLASSES, CLASSES + SUFFIX, PROBABILITIES, ENTROPY, RANK, NEXT, SETTINGS)
"""Names of the files of `write_maps`."""

N_NEXT = 20  # places to label next
N_BINS = 1 << 16  # of margins, whose ranks are those of their bins
OVERVIEW = 500  # pixels of the longer side of the overview, at most


@dataclass(frozen=True, eq=False)
class Overview:
    """What a report shows of a scene: every n-th row and column.

    Attributes
    ----------
    step : int
    picture : numpy.ndarray, shape (R, C, 3)
        Red, green and blue in [0, 1].
    codes : numpy.ndarray of int, shape (R, C)
        Class of each pixel as an index, −1 without data.
    probability : numpy.ndarray, shape (R, C)
        That of this class, NaN without data.
    counts : numpy.ndarray of int, shape (K,)
        Pixels of each class in the whole scene.
    means : numpy.ndarray, shape (K,)
        Mean probability of the pixels of each class.
    next_places : numpy.ndarray of int, shape (n, 2)
        Rows and columns of the pixels to label next, in the whole scene.
    """

    step: int
    picture: Float[np.ndarray, "R C 3"]
    codes: Int[np.ndarray, "R C"]
    probability: Float[np.ndarray, "R C"]
    counts: Int[np.ndarray, " K"]
    means: Float[np.ndarray, " K"]
    next_places: Int[np.ndarray, "n 2"]


def write_maps(
    fitted: FittedScene, folder: str | Path, *, progress: Progress | None = None
) -> Overview:
    """Write the maps of a scene to a folder: all files, or none.

    =====================  =======================================================================
    file                   pixels
    =====================  =======================================================================
    ``classes.tif``        number of the class, from 1; 0 is no data. Names and numbers of pixels
                           are in ``classes.tif.aux.xml``, which GDAL and QGIS read, too
    ``probabilities.tif``  one band a class with its name, NaN without data
    ``entropy.tif``        of these probabilities, in nats; NaN without data
    ``rank.tif``           1 for the smallest difference of the two largest probabilities; 0 is no
                           data
    ``next.csv``           places to label next, the most useful first
    ``settings.json``      how they were made
    =====================  =======================================================================

    Parameters
    ----------
    fitted : FittedScene
    folder : path
        It is created if it is missing.
    progress : callable, optional
        Called with "maps", tiles done, all tiles, and NaN.

    Raises
    ------
    StorageError
        If a file cannot be written; older ones are then unchanged.
    """
    with output_folder(folder) as output, atomic_folder(output) as inside:
        return maps_into(fitted, inside, progress)


def maps_into(fitted: FittedScene, folder: Path, progress: Progress | None = None) -> Overview:
    """Write the maps of a scene into a folder."""
    require_extra("raster")
    from graphuq.utils.spreadsheets import without_formulas

    scene, n_classes = fitted.scene, len(fitted.classes)
    maker = _OverviewMaker(fitted)
    bins = np.zeros(scene.shape, dtype=np.uint16)  # of the margin of each pixel
    numbers = np.zeros(N_BINS, dtype=np.int64)  # of pixels in each bin
    kind = "uint8" if n_classes < 256 else "uint16"
    with (
        _raster(folder / CLASSES, scene, kind, 1, 0) as classes,
        _raster(folder / PROBABILITIES, scene, "float32", n_classes, np.nan) as probabilities,
        _raster(folder / ENTROPY, scene, "float32", 1, np.nan) as entropies,
    ):
        _name(classes, probabilities, fitted.classes)
        for done, tile in enumerate(scene.tiles(), start=1):
            answer = fitted.predict(tile)
            p, chosen = answer.probabilities, answer.chosen
            codes = p.argmax(axis=1)
            classes.write(_filled(chosen, codes + 1, 0).astype(kind), 1, window=tile.window)
            bands = np.stack([_filled(chosen, column, np.nan) for column in p.T])
            probabilities.write(bands.astype(np.float32), window=tile.window)
            entropy = _filled(chosen, entr(p).sum(axis=1), np.nan).astype(np.float32)
            entropies.write(entropy, 1, window=tile.window)
            own = np.minimum(margins(p) * N_BINS, N_BINS - 1).astype(np.int64)
            bins[tile.of_scene] = _filled(chosen, own, 0)
            numbers += np.bincount(own, minlength=N_BINS)
            maker.take(tile, answer, codes)
            if progress is not None:
                progress("maps", done, scene.n_tiles(), np.nan)
    ranks = 1 + np.cumsum(numbers) - numbers
    with _raster(folder / RANK, scene, "uint32", 1, 0) as file:
        for tile in scene.tiles():
            known = fitted.mask[tile.of_scene]
            own = np.where(known, ranks[bins[tile.of_scene]], 0)
            file.write(own.astype(np.uint32), 1, window=tile.window)
    write_attribute_table(folder / CLASSES, fitted.classes, maker.counts, _colours(n_classes))
    places = _next_places(fitted)
    without_formulas(next_table(fitted, places)).to_csv(folder / NEXT, index=False)
    settings = json.dumps(settings_of(fitted), indent=2)
    (folder / SETTINGS).write_text(settings + "\n", encoding="utf-8")
    return maker.overview(places)


def next_table(fitted: FittedScene, places: Int[np.ndarray, "n 2"]) -> Any:
    """Return the places to label next as a table, with the coordinates of the scene, if any.

    What is inferred there is no label, and has another name than the column of labels.
    """
    import pandas as pd

    nodes = fitted._nodes_of(places)
    p = fitted.classifier.label_distributions_[nodes]
    x, y = fitted.scene.coordinates(places)
    return pd.DataFrame(
        {"row": places[:, 0], "column": places[:, 1]}
        | ({"x": x, "y": y} if fitted.scene.has_georeference else {})
        | {
            "likely_class": np.array(fitted.classes, dtype=object)[p.argmax(axis=1)],
            "probability": p.max(axis=1),
        }
    )


def settings_of(fitted: FittedScene) -> dict[str, Any]:
    """Return how the maps were made, as values of JSON."""
    scene, labels = fitted.scene, fitted.labels
    return {
        "graphuq": __version__,
        "scene": scene.path.name,
        "rows": scene.shape[0],
        "columns": scene.shape[1],
        "bands": scene.n_bands,
        "crs": None if scene.crs is None else scene.crs.to_string(),
        "pixels_with_data": int(fitted.mask.sum()),
        "nodes": len(fitted.places),
        "labels": {name: int((labels.classes == name).sum()) for name in fitted.classes},
        "model": str(fitted.classifier.model_),
        "parts": block_weights(fitted.classifier.result_),
        "random_state": fitted.classifier.random_state,
    }


def _next_places(fitted: FittedScene) -> Int[np.ndarray, "n 2"]:
    """Return the places of a batch of nodes to label next."""
    result = fitted.classifier.result_
    try:
        nodes = acquisition.query(result, N_NEXT)
    except IncompatibleParts:  # a point has no covariances
        nodes = most_uncertain(result, N_NEXT)
    return fitted.places[nodes]


class _OverviewMaker:
    """Every n-th row and column of the scene and its maps, taken from the tiles."""

    def __init__(self, fitted: FittedScene) -> None:
        scene, n_classes = fitted.scene, len(fitted.classes)
        self.step = -(-max(scene.shape) // OVERVIEW)
        shape = tuple(-(-n // self.step) for n in scene.shape)
        self.bands = shown_bands(scene.n_bands)
        self.picture = np.full((*shape, 3), np.nan)
        self.codes = np.full(shape, -1)
        self.probability = np.full(shape, np.nan)
        self.counts, self.totals = np.zeros(n_classes, np.int64), np.zeros(n_classes)

    def take(self, tile: Tile, answer: TileAnswer, codes: Int[np.ndarray, " n"]) -> None:
        top, left = -tile.top % self.step, -tile.left % self.step
        some = slice(top, None, self.step), slice(left, None, self.step)
        best = answer.probabilities.max(axis=1)
        self.counts += np.bincount(codes, minlength=len(self.counts))
        self.totals += np.bincount(codes, best, minlength=len(self.counts))
        shown = _filled(answer.chosen, codes, -1)[some]
        at = (tile.top + top) // self.step, (tile.left + left) // self.step
        here = slice(at[0], at[0] + shown.shape[0]), slice(at[1], at[1] + shown.shape[1])
        self.codes[here] = shown
        self.probability[here] = _filled(answer.chosen, best, np.nan)[some]
        colours = np.moveaxis(answer.values[self.bands], 0, -1)
        self.picture[here] = np.where(answer.chosen[..., None], colours, np.nan)[some]

    def overview(self, next_places: Int[np.ndarray, "n 2"]) -> Overview:
        picture = stretched(self.picture, ends_of(self.picture))
        means = self.totals / np.maximum(self.counts, 1)
        return Overview(
            self.step, picture, self.codes, self.probability, self.counts, means, next_places
        )


def _filled(
    chosen: Bool[np.ndarray, "R C"], values: np.ndarray, fill: float
) -> Float[np.ndarray, "R C"]:
    """Return values of chosen pixels at their places."""
    found = np.full(chosen.shape, fill, dtype=np.result_type(values.dtype, type(fill)))
    found[chosen] = values
    return found


@contextlib.contextmanager
def _raster(path: Path, scene: Scene, kind: str, count: int, no_data: float) -> Iterator[Any]:
    """Open a GeoTIFF of the grid of a scene for writing."""
    import rasterio

    from graphuq.external.raster.scene import quiet

    profile = {"driver": "GTiff", "height": scene.shape[0], "width": scene.shape[1],
               "count": count, "dtype": kind, "crs": scene.crs, "transform": scene.transform,
               "nodata": no_data, "tiled": True, "blockxsize": 256, "blockysize": 256,
               "compress": "deflate", "zlevel": 1, "bigtiff": "if_safer"}  # fmt: skip
    try:
        with quiet(), rasterio.open(path, "w", **profile) as file:
            yield file
    except rasterio.errors.RasterioIOError as error:
        raise OSError(str(error)) from error


def _name(classes: Any, probabilities: Any, names: list[str]) -> None:
    """Write names and colours of classes into the files."""
    for k, name in enumerate(names, start=1):
        probabilities.set_band_description(k, name)
    classes.update_tags(1, **{str(k): name for k, name in enumerate(names, start=1)})
    if len(names) < 256:
        colours = _colours(len(names)).tolist()
        known = {k: (*colour, 255) for k, colour in enumerate(colours, start=1)}
        classes.write_colormap(1, {0: (0, 0, 0, 0), **known})


def _colours(n_classes: int) -> Int[np.ndarray, "K 3"]:
    """Return red, green and blue of each class, from 0 to 255."""
    return np.asarray((255 * np.array(class_colors(n_classes).colors)).round().astype(int))
