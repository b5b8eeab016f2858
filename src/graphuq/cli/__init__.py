"""Floor 7: the command line."""

from graphuq.cli.app import main

__all__ = ["main"]
