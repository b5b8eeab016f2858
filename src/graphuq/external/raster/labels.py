"""Labels of pixels: from a raster, from a CSV of places, or from GeoJSON points and polygons."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from graphuq.classifier.unlabelled_words import without_words
from graphuq.errors import GraphuqWarning, InvalidInput, require
from graphuq.external.raster.scene import Scene, quiet
from graphuq.results.formats.csv import Csv
from graphuq.utils.checks import text_array
from graphuq.utils.extras import require_extra
from graphuq.utils.gate import reading, require_file
from graphuq.utils.user_warnings import warn_user
from graphuq.utils.written.numbers import NumberFormat

GEOJSON = (".geojson", ".json")
WGS84 = "EPSG:4326"  # of GeoJSON (RFC 7946), and of columns lon and lat
CLASS, LABEL = "class", "label"  # columns of the classes
PLACES = (("x", "y"), ("lon", "lat"), ("column", "row"))  # columns of a CSV that are places
OUTSIDE = "give places inside the scene, in its system of coordinates, or name theirs"


class PixelLabels(NamedTuple):
    """Classes of some pixels.

    Attributes
    ----------
    places : numpy.ndarray of int, shape (J, 2)
        Row and column of each labelled pixel, in order, each once.
    classes : numpy.ndarray of str, shape (J,)
    """

    places: Int[np.ndarray, "J 2"]
    classes: np.ndarray


def read_labels(
    path: str | Path, scene: Scene, column: str = CLASS, crs: str | None = None
) -> PixelLabels:
    """Read labels of the pixels of a scene.

    =================  ============================================================================
    file               labels
    =================  ============================================================================
    ``.csv``           a place a row: ``x`` and ``y``, ``lon`` and ``lat``, or ``column`` and
                       ``row``, which are counted from 0; and the class, where words such as ``?``
                       mean unlabelled. Separator, encoding and decimal mark are as the file shows
    ``.geojson``       points and polygons with the class as a property; a polygon labels the pixels
                       whose centre it holds
    any other          a raster of whole numbers, 0 or no-data where unlabelled; one on another grid
                       is brought to that of the scene, and what lies outside is cut off
    =================  ============================================================================

    Parameters
    ----------
    path : path
    scene : Scene
    column : str, default "class"
        Column or property with the class; of a CSV file without ``class`` it is ``label``.
    crs : str, optional
        System of the coordinates, such as "EPSG:32616". By default that of the scene for ``x`` and
        ``y``, and WGS 84 for ``lon`` and ``lat`` and for GeoJSON. Rasters have their own.

    Raises
    ------
    StorageError
        If the file is missing or damaged.
    InvalidInput
        If labels lie outside of the scene, a pixel has two classes, the scene has no georeference
        and coordinates are given, or a column is missing.
    """
    require_extra("raster")
    path = require_file(path)
    if path.suffix.lower() in (Csv.suffix, *Csv.other_suffixes):
        places, classes = _of_table(path, scene, column, crs)
    elif path.suffix.lower() in GEOJSON:
        places, classes = _of_geojson(path, scene, column, crs)
    else:
        require(crs is None, "crs", f"{crs!r} beside a raster", "leave it out: rasters have theirs")
        places, classes = _of_raster(path, scene)
    require(len(places) > 0, "labels", f"'{path.name}' labels no pixel", "label some of each class")
    return _each_once(places, classes)


def _each_once(places: Int[np.ndarray, "n 2"], classes: np.ndarray) -> PixelLabels:
    """Return labels in order, after a check that no pixel has two classes."""
    order = np.lexsort((classes, places[:, 1], places[:, 0]))
    places, classes = places[order], classes[order]
    same = (np.diff(places, axis=0) == 0).all(axis=1)
    clash = np.flatnonzero(same & (classes[1:] != classes[:-1]))
    if len(clash):
        k = int(clash[0])
        raise InvalidInput(
            "labels",
            f"the pixel in row {places[k, 0]}, column {places[k, 1]} has the classes "
            f"'{classes[k]}' and '{classes[k + 1]}'",
            "keep one of them",
        )
    first = np.append(True, ~same)
    return PixelLabels(places[first], classes[first])


def _of_table(
    path: Path, scene: Scene, column: str, crs: str | None
) -> tuple[Int[np.ndarray, "n 2"], np.ndarray]:
    require_extra("tables")
    import pandas as pd

    form = Csv().for_file(path)
    assert form.dialect is not None
    frame = form.read(path, form.dialect.columns)
    repeated = sorted(form.repeated)
    require(
        not repeated, "labels", f"'{path.name}' has columns twice: {repeated[:3]}", "rename one"
    )
    names = [str(name).strip() for name in frame.columns]
    frame.columns = pd.Index(names)
    pair = next((pair for pair in PLACES if set(pair) <= set(names)), None)
    if column == CLASS and CLASS not in names and LABEL in names:  # as other files of labels say
        column = LABEL
    require(
        pair is not None and column in names,
        "labels",
        f"'{path.name}' has the columns {', '.join(names)}",
        f"give {column} (or name another by --label-column) beside x and y, lon and lat, or column "
        "and row",
    )
    assert pair is not None
    frame[column] = without_words(
        frame[column].str.strip().to_numpy(str), "labels", "rename it, if it is a class"
    )
    frame = frame[frame[column] != ""]
    numbers = [NumberFormat(form.decimal or ".")(frame[name]).values for name in pair]
    bad = np.flatnonzero(~np.isfinite(numbers).all(axis=0))
    require(
        len(bad) == 0,
        "labels",
        f"row {int(bad[0]) if len(bad) else 0} of '{path.name}' has no numbers for {pair}",
        "give a place for each class",
    )
    classes = frame[column].to_numpy(str)
    if pair == ("column", "row"):
        require(crs is None, "crs", f"{crs!r} beside columns and rows", "leave it out")
        return _pixels(numbers[0], numbers[1], scene, path), classes
    own = crs or (WGS84 if pair == ("lon", "lat") else None)
    _require_georeference(scene, path, own)
    columns, rows = _columns_and_rows(numbers[0], numbers[1], scene, own, path)
    return _pixels(columns, rows, scene, path), classes


def _of_geojson(
    path: Path, scene: Scene, column: str, crs: str | None
) -> tuple[Int[np.ndarray, "n 2"], np.ndarray]:
    from rasterio.warp import transform_geom

    with reading(path, "GeoJSON file"):
        content = json.loads(path.read_text(encoding="utf-8"))
        features = content["features"]
        named = content.get("crs", {}).get("properties", {}).get("name")
    own = crs or (str(named) if named else WGS84)
    _require_georeference(scene, path, own)
    places, classes = [], []
    with reading(path, "GeoJSON file"):
        for number, feature in enumerate(features):
            name, geometry = _parts(feature, number, column)
            if name is not None:
                if scene.crs:
                    with _places_of(path, own):
                        geometry = transform_geom(_known_crs(own), scene.crs, geometry)
                places.append(_places_in(geometry, number, scene, path))
                classes += [name] * len(places[-1])
    found = {str(name) for feature in features for name in feature.get("properties") or {}}
    require(
        len(places) > 0,
        "labels",
        f"'{path.name}' has no {column!r}; its properties are {', '.join(sorted(found)) or 'none'}",
        "name the one with the class by column (--label-column)",
    )
    return np.concatenate(places), text_array(classes, "labels")


def _places_in(
    geometry: Mapping[str, Any], number: int, scene: Scene, path: Path
) -> Int[np.ndarray, "n 2"]:
    """Return the pixels of a geometry in the system of coordinates of the scene."""
    from rasterio.features import rasterize

    kind, at = str(geometry["type"]), geometry["coordinates"]
    if kind in ("Point", "MultiPoint"):
        points = [at] if kind == "Point" else at
        x, y = np.array([point[:2] for point in points], dtype=np.float64).T
        return _pixels(*_columns_and_rows(x, y, scene, None, path), scene, path)
    require(
        kind in ("Polygon", "MultiPolygon"),
        "labels",
        f"feature {number} of '{path.name}' is a {kind[:40]}",
        "give points and polygons",
    )
    burnt = rasterize([geometry], scene.shape, transform=scene.transform, dtype=np.uint8)
    found = np.argwhere(burnt)
    require(
        len(found) > 0,
        "labels",
        f"polygon {number} of '{path.name}' holds no centre of a pixel",
        OUTSIDE,
    )
    return found


def _parts(feature: Any, number: int, column: str) -> tuple[str | None, Mapping[str, Any]]:
    """Return the class of a feature, None if it has none, and its geometry."""
    is_whole = isinstance(feature, Mapping) and isinstance(feature.get("geometry"), Mapping)
    require(is_whole, "labels", f"feature {number} has no geometry", "give points and polygons")
    value = (feature.get("properties") or {}).get(column)
    return (None if value is None else str(value).strip() or None), feature["geometry"]


def _of_raster(path: Path, scene: Scene) -> tuple[Int[np.ndarray, "n 2"], np.ndarray]:
    import rasterio
    from rasterio.warp import Resampling, reproject

    with reading(path, "raster"), quiet(), rasterio.open(path) as file:
        codes, has_data = file.read(1), file.read_masks(1) > 0
        crs, transform = file.crs, file.transform
    require(
        codes.dtype.kind in "iu",
        "labels",
        f"'{path.name}' has values of the type {codes.dtype}",
        "give whole numbers, 0 where unlabelled",
    )
    codes = np.where(has_data, codes, 0)
    large = codes[codes != codes.astype(np.int32)]
    words = f"'{path.name}' has the code {large[:1].tolist()}"
    require(len(large) == 0, "labels", words, "give codes of 31 bits")
    codes = codes.astype(np.int32)
    same = codes.shape == scene.shape and transform.almost_equals(scene.transform)
    if not (same and crs == scene.crs):
        require(
            crs is not None and scene.crs is not None,
            "labels",
            f"'{path.name}' has {codes.shape[0]} × {codes.shape[1]} pixels on another grid, and "
            "a georeference is missing",
            "give a raster on the grid of the scene",
        )
        n_before = int(np.count_nonzero(codes))
        here = np.zeros(scene.shape, np.int32)
        with reading(path, "raster"):
            reproject(
                codes, here, src_transform=transform, src_crs=crs, src_nodata=0,
                dst_transform=scene.transform, dst_crs=scene.crs, dst_nodata=0,
                resampling=Resampling.nearest,
            )  # fmt: skip
        require(
            bool(here.any()) or n_before == 0,
            "labels",
            f"all labels of '{path.name}' lie outside of the scene",
            "give labels of this scene",
        )
        codes = here
    return np.argwhere(codes), codes[codes != 0].astype(str)


def _require_georeference(scene: Scene, path: Path, crs: str | None) -> None:
    """Refuse coordinates beside a scene without a georeference, or without a system for theirs."""
    require(
        scene.has_georeference,
        "labels",
        f"'{path.name}' has coordinates, and '{scene.path.name}' has no georeference",
        "give columns named column and row, or a raster of labels",
    )
    require(
        scene.crs is not None or crs is None,
        "crs",
        f"{crs} of '{path.name}', and '{scene.path.name}' has no system of coordinates",
        "give x and y of the scene",
    )


def _known_crs(name: str) -> Any:
    from rasterio.crs import CRS
    from rasterio.errors import CRSError

    try:
        return CRS.from_user_input(name)
    except CRSError:
        raise InvalidInput("crs", f"{name!r} is unknown", "use one such as EPSG:4326") from None


@contextmanager
def _places_of(path: Path, crs: str) -> Iterator[None]:
    """Refuse coordinates that a system does not have, such as metres where degrees are meant."""
    try:
        yield
    except Exception as error:  # rasterio has no public type for errors of PROJ
        if not str(error).startswith("PROJ"):
            raise
        words = f"'{path.name}' has coordinates that are no places of {crs} ({error})"
        remedy = "name their system, as in crs='EPSG:32616' (--crs)"
        raise InvalidInput("labels", words, remedy) from None


def _columns_and_rows(x: Any, y: Any, scene: Scene, crs: str | None, path: Path) -> tuple[Any, Any]:
    """Return where coordinates are, in pixels from the corner of the scene."""
    from rasterio.warp import transform

    if crs is not None and _known_crs(crs) != scene.crs:
        with _places_of(path, crs):
            x, y = transform(_known_crs(crs), scene.crs, list(x), list(y))
    back, x, y = ~scene.transform, np.asarray(x, float), np.asarray(y, float)
    return back.a * x + back.b * y + back.c, back.d * x + back.e * y + back.f


def _pixels(columns: Any, rows: Any, scene: Scene, path: Path) -> Int[np.ndarray, "n 2"]:
    """Return rows and columns of the pixels that hold places, all of which are in the scene."""
    found = np.floor(np.stack([rows, columns], axis=1))
    outside = np.flatnonzero(~((found >= 0) & (found < scene.shape)).all(axis=1))
    require(
        len(outside) == 0,
        "labels",
        f"{len(outside)} of {len(found)} places of '{path.name}' lie outside of the scene of "
        f"{scene.shape[0]} × {scene.shape[1]} pixels",
        OUTSIDE,
    )
    return found.astype(np.int64)


def with_data(labels: PixelLabels, mask: Any) -> PixelLabels:
    """Return the labels of pixels that have data, with a warning if some have none.

    Raises
    ------
    InvalidInput
        If none has data.
    """
    known = mask[tuple(labels.places.T)]
    require(bool(known.any()), "labels", "all are of pixels without data", "label other pixels")
    if not known.all():
        warn_user(
            f"labels: {int((~known).sum())} of {len(known)} are of pixels without data and are "
            "left out",
            GraphuqWarning,
        )
    return PixelLabels(labels.places[known], labels.classes[known])
