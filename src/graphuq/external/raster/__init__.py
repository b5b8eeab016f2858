"""Scenes of remote sensing: rasters and a few labels in, maps of class and certainty out.

The package rasterio, of the extra ``graphuq[raster]``, reads and writes the files.
"""

from graphuq.external.raster.fit import FittedScene, fit_scene
from graphuq.external.raster.labels import PixelLabels, read_labels
from graphuq.external.raster.maps import Overview, write_maps
from graphuq.external.raster.scene import Scene, Tile, read_scene

__all__ = [
    "FittedScene",
    "Overview",
    "PixelLabels",
    "Scene",
    "Tile",
    "fit_scene",
    "read_labels",
    "read_scene",
    "write_maps",
]
