"""The command ``graphuq``: classify, predict, track, reproduce, and data sets."""

from graphuq.cli.app import main

__all__ = ["main"]
