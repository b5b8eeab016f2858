"""Scenes: rasters of several bands in files, read by windows."""

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from graphuq.errors import StorageError, require
from graphuq.utils.extras import require_extra
from graphuq.utils.gate import reading, require_file

TILE = 256  # pixels of the side of a tile
MAX_BANDS = 10_000  # GDAL takes minutes for more, also of a few pixels


class Tile(NamedTuple):
    """A rectangle of a scene: its first row and column, and those after its last."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.bottom - self.top, self.right - self.left

    @property
    def window(self) -> Any:
        """The rectangle as rasterio has it."""
        from rasterio.windows import Window

        rows, columns = self.shape
        return Window(self.left, self.top, columns, rows)

    @property
    def of_scene(self) -> tuple[slice, slice]:
        """Places in an array of the whole scene."""
        return slice(self.top, self.bottom), slice(self.left, self.right)


@dataclass(frozen=True)
class Scene:
    """A raster of several bands in a file, with its georeference.

    `read_scene` makes one. Values are read when they are asked for.

    Attributes
    ----------
    path : Path
    shape : tuple of int
        Rows and columns.
    n_bands : int
    crs : rasterio.crs.CRS or None
        System of coordinates; None if the file has none.
    transform : affine.Affine
        From column and row to the coordinates x and y.
    """

    path: Path
    shape: tuple[int, int]
    n_bands: int
    crs: Any
    transform: Any

    @property
    def has_georeference(self) -> bool:
        """Whether coordinates can be turned into pixels."""
        return self.crs is not None or not self.transform.is_identity

    def coordinates(self, places: Int[np.ndarray, "n 2"]) -> Float[np.ndarray, "2 n"]:
        """Return x and y of the centres of pixels, given by row and column."""
        to, rows, columns = self.transform, *(places.T + 0.5)
        return np.stack([to.a * columns + to.b * rows + to.c, to.d * columns + to.e * rows + to.f])

    def read(
        self, tile: Tile | None = None
    ) -> tuple[Float[np.ndarray, "B R C"], Bool[np.ndarray, "R C"]]:
        """Return the bands of a tile, by default of the whole scene, and which pixels have data.

        A pixel has data if all bands have: none is no-data of the file, masked, or not finite.

        Raises
        ------
        StorageError
            If the file is damaged.
        """
        import rasterio

        window = None if tile is None else tile.window
        with reading(self.path, "raster"), quiet(), rasterio.open(self.path) as file:
            values = file.read(window=window).astype(np.float64)
            masks = file.read_masks(window=window)
        return values, (masks > 0).all(axis=0) & np.isfinite(values).all(axis=0)

    def around(
        self, tile: Tile, margin: int
    ) -> tuple[Float[np.ndarray, "B R C"], Bool[np.ndarray, "R C"], Tile]:
        """Return bands and mask of a tile with a margin inside the scene, and its rectangle."""
        n_rows, n_columns = self.shape
        wide = Tile(
            max(0, tile.top - margin),
            max(0, tile.left - margin),
            min(n_rows, tile.bottom + margin),
            min(n_columns, tile.right + margin),
        )
        return *self.read(wide), wide

    def tiles(self, size: int = TILE) -> Iterator[Tile]:
        """Yield the tiles of the scene, row by row."""
        n_rows, n_columns = self.shape
        for top in range(0, n_rows, size):
            for left in range(0, n_columns, size):
                yield Tile(top, left, min(n_rows, top + size), min(n_columns, left + size))

    def n_tiles(self, size: int = TILE) -> int:
        """Return the number of tiles."""
        return -(-self.shape[0] // size) * -(-self.shape[1] // size)

    def mask(self) -> Bool[np.ndarray, "R C"]:
        """Return which pixels have data, tile by tile: one byte a pixel."""
        found = np.zeros(self.shape, dtype=bool)
        for tile in self.tiles():
            found[tile.of_scene] = self.read(tile)[1]
        return found


def read_scene(path: str | Path) -> Scene:
    """Return a scene from a GeoTIFF, ENVI or other raster that rasterio reads.

    Parameters
    ----------
    path : path
        The file of an ENVI image is the one without the suffix ``.hdr``.

    Raises
    ------
    StorageError
        If there is no such file, it is damaged, or has more than 10,000 bands.
    InvalidInput
        If values are complex, or the path is an ENVI header.
    MissingPackage
        If the extra ``graphuq[raster]`` is not installed.

    Examples
    --------
    >>> import graphuq as gq
    >>> scene = gq.external.raster.read_scene("scene.tif")  # doctest: +SKIP
    >>> values, mask = scene.read()  # doctest: +SKIP
    """
    require_extra("raster")
    import rasterio

    path = require_file(path)
    require(
        path.suffix.lower() != ".hdr",
        "scene",
        f"'{path.name}' is the header of an ENVI image",
        "give the file with the values, which lies beside it",
    )
    with reading(path, "raster"), quiet(), rasterio.open(path) as file:
        kinds = {np.dtype(kind).kind for kind in file.dtypes if not kind.startswith("complex")}
        is_real = len(kinds) > 0 and kinds <= set("uif")
        scene = Scene(path, (file.height, file.width), file.count, file.crs, file.transform)
    require(is_real, "scene", f"'{path.name}' has complex values", "give real ones")
    if scene.shape[0] * scene.shape[1] < 2:
        raise StorageError(f"'{path.name}' has fewer than two pixels")
    if scene.n_bands > MAX_BANDS:
        raise StorageError(f"'{path.name}' has {scene.n_bands} bands, more than {MAX_BANDS}")
    return scene


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence rasterio's warning of files without a georeference, which errors name."""
    from rasterio.errors import NotGeoreferencedWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        yield
