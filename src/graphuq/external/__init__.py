"""Adapters to the data structures of other packages, none of which is imported here."""

from graphuq.external import raster, scanpy

__all__ = ["raster", "scanpy"]
