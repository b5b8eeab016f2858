"""Adapters to the data structures of other packages, none of which is imported here."""

from graphuq.external import scanpy

__all__ = ["scanpy"]
