"""A scene as a picture: three of its bands, stretched from black to white."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, UInt8

from graphuq.external.raster.scene import Scene, Tile

STRETCH = (2, 98)  # percentiles of a band at black and at white
MAX_SAMPLED = 1_000  # rows and columns from which the percentiles are computed


def shown_bands(n_bands: int) -> list[int]:
    """Return the bands that are red, green and blue; a single one of fewer than three is grey."""
    return [3 * n_bands // 4, n_bands // 2, n_bands // 4] if n_bands > 2 else [0, 0, 0]


def ends_of(colours: Float[np.ndarray, "R C 3"]) -> Float[np.ndarray, "2 3"]:
    """Return the values at black and at white; NaN is no data."""
    return np.asarray(np.nanpercentile(colours, STRETCH, axis=(0, 1)))


def stretched(
    colours: Float[np.ndarray, "R C 3"], ends: Float[np.ndarray, "2 3"]
) -> Float[np.ndarray, "R C 3"]:
    """Return colours in [0, 1]; what has no data is white."""
    low, high = ends
    scaled = (colours - low) / np.where(high > low, high - low, 1.0)
    return np.nan_to_num(np.clip(scaled, 0, 1), nan=1.0)


def scene_picture(scene: Scene) -> UInt8[np.ndarray, "R C 3"]:
    """Return the picture of a whole scene, tile by tile: three bytes a pixel.

    Raises
    ------
    StorageError
        If the file is damaged.
    """
    bands, step = shown_bands(scene.n_bands), -(-max(scene.shape) // MAX_SAMPLED)
    sampled = [part[::step, ::step].reshape(-1, 1, 3) for _, part in _colours(scene, bands)]
    ends, found = ends_of(np.concatenate(sampled)), np.empty((*scene.shape, 3), np.uint8)
    for tile, part in _colours(scene, bands):
        found[tile.of_scene] = np.round(255 * stretched(part, ends))
    return found


def _colours(scene: Scene, bands: list[int]) -> Iterator[tuple[Tile, Float[np.ndarray, "R C 3"]]]:
    """Yield the tiles of a scene with the values of three bands, NaN without data."""
    for tile in scene.tiles():
        values, mask = scene.read(tile)
        yield tile, np.where(mask[..., None], np.moveaxis(values[bands], 0, -1), np.nan)
