"""Progress: a callback, a bar, and a line of text in a notebook."""

import sys
import types

import pytest

from graphuq.errors import InvalidInput
from graphuq.utils import progress


class Line:
    """What a notebook shows below a cell."""

    def __init__(self, text):
        self.texts = [text]

    def update(self, content, raw):
        assert raw
        self.texts.append(content["text/plain"])


@pytest.fixture
def notebook(monkeypatch):
    """A kernel of Jupyter, whose displayed lines are returned."""
    lines = []

    def display(content, raw, display_id):
        assert raw
        assert display_id
        lines.append(Line(content["text/plain"]))
        return lines[-1]

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel="a kernel")
    shown = types.ModuleType("IPython.display")
    shown.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    return lines


def test_a_notebook_has_one_line_that_is_replaced(notebook, monkeypatch):
    monkeypatch.setattr(progress, "MIN_SECONDS", 0.0)
    monkeypatch.setattr(progress, "require_extra", lambda name: pytest.fail("needs a package"))
    with progress.reporting(True) as report:
        report("neighbours", 5, 10, 0.0)
        report("sampling", 1, 9, 0.25)
    (line,) = notebook
    assert [text.rpartition(",")[0] for text in line.texts] == [
        "neighbours 5/10 rows",
        "sampling 1/9 steps, acceptance 0.25",
        "sampling: done",
    ]


def test_lines_that_come_fast_are_left_out_but_for_the_last(notebook, monkeypatch):
    monkeypatch.setattr(progress, "MIN_SECONDS", 3600.0)
    with progress.reporting(True) as report:
        for done in range(1, 101):
            report("sampling", done, 100, 0.5)
    (line,) = notebook
    assert [text.split(",")[0] for text in line.texts] == ["sampling 1/100 steps", "sampling: done"]


def test_a_run_that_fails_is_not_done(notebook):
    shown = progress.reporting(True)
    shown.__enter__()("sampling", 1, 9, 0.5)
    shown.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert [len(line.texts) for line in notebook] == [1]


def test_without_a_report_a_notebook_shows_nothing(notebook):
    with progress.reporting(True):
        pass
    assert notebook == []


def test_a_terminal_has_a_bar(monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes standard error for a terminal
    monkeypatch.setenv("COLUMNS", "200")
    with progress.reporting(True) as report:
        report("sampling", 3, 9, 0.5)
    assert "3/9 steps" in capsys.readouterr().err


def test_a_callback_is_passed_on():
    assert progress.reporting(print).__enter__() is print


def test_a_cell_of_marimo_has_the_line_as_its_output(monkeypatch):
    """Its output is replaced while the cell runs; the kernel knows no IPython."""
    texts = []
    marimo = types.ModuleType("marimo")
    marimo.running_in_notebook = lambda: True
    marimo.output = types.SimpleNamespace(replace=texts.append)
    monkeypatch.setitem(sys.modules, "marimo", marimo)
    monkeypatch.setattr(progress, "require_extra", lambda name: pytest.fail("needs a package"))
    with progress.reporting(True) as report:
        report("sampling", 1, 9, 0.25)
    assert [text.partition(",")[0] for text in texts] == ["sampling 1/9 steps", "sampling: done"]
    marimo.running_in_notebook = lambda: False  # imported, as by a script
    assert progress._line_of_notebook() is None


@pytest.mark.parametrize("wrong", ["bar", 1, []])
def test_what_is_no_function_is_refused_before_any_work(wrong):
    with pytest.raises(InvalidInput, match=r"progress: .* use True, give a callback, or leave it"):
        progress.reporting(wrong).__enter__()
