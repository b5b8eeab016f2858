"""Commands of other distributions: found by their entry points, and imported when used."""

from importlib.metadata import EntryPoint

import pytest
import typer

from graphuq.cli import added_commands
from graphuq.cli.app import run


def greet(name: str, loud: bool = typer.Option(False, help="Use capitals.")) -> None:
    """Greet a person."""
    typer.echo(f"HELLO {name}" if loud else f"hello {name}")


def demo() -> None:
    """Stand for a command that has the name of one of graphuq's own."""
    raise AssertionError


@pytest.fixture
def added(monkeypatch):
    """Return a function that adds commands, given by name and value of their entry points."""

    def add(**points):
        found = [EntryPoint(*item, added_commands.GROUP) for item in points.items()]
        monkeypatch.setattr(added_commands, "entry_points", lambda group: found)

    return add


def test_an_added_command_runs_and_is_listed(added, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    added(greet=f"{__name__}:greet")
    assert run(["greet", "Ada", "--loud"]) == 0
    assert capsys.readouterr().out == "HELLO Ada\n"
    assert run(["--help"]) == 0
    assert "Greet a person." in capsys.readouterr().out
    assert run(["greet", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Usage: graphuq greet" in shown
    assert "Use capitals." in shown
    assert run(["greet"]) == 2
    assert "graphuq: error: Missing argument" in capsys.readouterr().err


def test_a_command_is_imported_only_when_it_is_used(added, capsys):
    added(other="a_module_that_is_not_there:f")
    assert run(["datasets"]) == 0
    assert run(["nothing"]) == 2
    assert "No such command 'nothing'" in capsys.readouterr().err


def test_no_command_replaces_one_of_graphuq(added, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    added(demo=f"{__name__}:demo")
    assert run(["demo", "--help"]) == 0
    assert "report.html" in capsys.readouterr().out


@pytest.mark.parametrize("command", added_commands.OF_PAPERS)
def test_a_command_of_the_papers_says_what_to_install(command, added, capsys):
    added()
    assert run([command, "--all"]) == 2
    assert capsys.readouterr().err == (
        f"graphuq: error: COMMAND: '{command}' is a command of graphuq-papers, which is not "
        "installed; run pip install ./papers in a checkout of graphuq\n"
    )
