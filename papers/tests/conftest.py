"""Fixtures of the library's tests, and the commands of this package as if it were installed."""

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from conftest import compiled_code, data_folder, unchecked_types  # noqa: F401

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
GROUP = "graphuq.commands"
ADDED = [EntryPoint(*item, GROUP) for item in PROJECT["project"]["entry-points"][GROUP].items()]


@pytest.fixture(autouse=True)
def commands(monkeypatch):
    """Add the commands that pyproject.toml declares, whether or not the package is installed."""
    monkeypatch.setattr("graphuq.cli.added_commands.entry_points", lambda group: ADDED)
    return ADDED
