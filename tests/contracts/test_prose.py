"""Rules for the prose of docstrings and pages: plain openings, short lines, short table cells."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE, TESTS = ROOT / "src" / "graphuq", ROOT / "tests"
PAPERS = ROOT / "papers"
OPENINGS = re.compile(r"(Of|The same|None|Always)\b")
MAX_COLUMNS = 100
MAX_CELL = 80  # characters in one cell of a table

PENDING_PAGES: set[str] = set()


def docstring_faults(source: str, min_words: int = 2) -> list[str]:
    """Return one line for each docstring with a forbidden opening or too few words."""
    faults = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node)
        if text and (OPENINGS.match(text) or len(text.split()) < min_words):
            faults.append(f"{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}")
    return faults


def page_faults(text: str) -> list[str]:
    """Return one line for each line of a page that is too wide, and each cell that is too long."""
    faults = []
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_COLUMNS:
            faults.append(f"{number}: {len(line)} columns")
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip("|"))
            faults += [f"{number}: {cell[:40]}…" for cell in cells if len(cell.strip()) > MAX_CELL]
    return faults


def pages() -> list[Path]:
    """Return the Markdown files that are held to the rules."""
    found = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *PAPERS.glob("*.md")])
    return [page for page in found if page.name not in PENDING_PAGES]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_have_short_lines_and_short_cells(page):
    assert page_faults(page.read_text(encoding="utf-8")) == []


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 110
    assert max(map(len, lines)) <= 90


@pytest.mark.parametrize(
    ("folder", "min_words"),
    [(PACKAGE, 2), (TESTS, 1), (PAPERS / "src", 2), (PAPERS / "tests", 1)],
    ids=["src", "tests", "papers/src", "papers/tests"],
)
def test_docstrings_have_plain_openings(folder, min_words):
    faults = {
        str(path.relative_to(folder)): found
        for path in sorted(folder.rglob("*.py"))
        if (found := docstring_faults(path.read_text(encoding="utf-8"), min_words))
    }
    assert faults == {}


@pytest.mark.parametrize(
    "docstring", ["Of two classes.", "The same by rows.", "None where it has none.", "Always.", "x"]
)
@pytest.mark.parametrize("where", ['"""{}"""', 'def f():\n    """{}"""', 'class C:\n    """{}"""'])
def test_a_faulty_docstring_is_found(where, docstring):
    assert len(docstring_faults(where.format(docstring))) == 1


def test_a_plain_docstring_is_not_found():
    assert docstring_faults('def f():\n    """Return the offset."""') == []
    assert docstring_faults('def f():\n    """Offset."""', min_words=1) == []


def test_a_wide_line_and_a_long_cell_are_found():
    assert page_faults("x" * MAX_COLUMNS) == []
    assert len(page_faults("x" * (MAX_COLUMNS + 1))) == 1
    assert len(page_faults(f"| a | {'x' * (MAX_CELL + 1)} |")) == 1
    assert page_faults(f"| a | {'x' * MAX_CELL} |") == []
