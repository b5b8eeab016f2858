"""Row blocks: tables of any length, from files to files, on one machine or on a Dask cluster."""

from graphuq.blocks.classifier import BlockClassifier

__all__ = ["BlockClassifier"]
