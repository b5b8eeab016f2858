"""Entry points of this package: the commands that graphuq expects of it, and their help."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphuq.cli.added_commands import OF_PAPERS
from graphuq.cli.app import run

SOURCES = str(Path(__file__).parents[1] / "src")
ENV = os.environ | {"PYTHONPATH": os.pathsep.join([SOURCES, os.environ.get("PYTHONPATH", "")])}


def test_the_commands_are_those_that_graphuq_expects(commands):
    assert {point.name for point in commands} == set(OF_PAPERS)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("moving-ball", ["FOLDER", "--random-state"]),
        ("track", ["--mask", "--resume"]),
        ("reproduce", ["bertozzi, chen, hartog or zhu"]),
    ],
)
def test_help_names_options(command, words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert run([command, "--help"]) == 0
    printed = capsys.readouterr().out
    assert f"Usage: graphuq {command}" in printed
    assert all(word in printed for word in words), printed


def test_the_help_of_all_commands_needs_no_package_of_numbers():
    modules = ", ".join(f"graphuq_papers.cli.{name.replace('-', '_')}" for name in OF_PAPERS)
    code = f"import sys, {modules}; print([m for m in ('numpy', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENV)
    assert done.stdout == "[]\n", done.stderr
