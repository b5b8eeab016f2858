"""Every error and warning that a user can see has a code of its own, which the pages list."""

import ast
import pickle
import re
from pathlib import Path

import pytest

from graphuq import errors
from graphuq.cli.app import CODES

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "papers/src").rglob("*.py")])
PAGE = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")

# What else is raised, in how many places at most, and why no user sees it as an error of graphuq.
OTHERS = {
    "AssertionError": (1, "cannot be reached"),
    "AttributeError": (3, "modules and objects without such a name"),
    "Exit": (1, "of the argument parser: the version was printed"),
    "KeyError": (1, "a mapping without such a key"),
    "KeyboardInterrupt": (1, "a signal, which the command line reports with a code"),
    "LinAlgError": (3, "caught by the method that factorises, or by the model of counts"),
    "OSError": (2, "the system refuses; the command line reports it with a code"),
    "PairsNotConverged": (1, "caught by the choice of the solver"),
    "TypeError": (6, "columns that are no numbers, caught; an answer that no function knows"),
    "ValueError": (40, "damaged files: each reader makes a StorageError of it"),
    "_Coarse": (1, "caught by the solver in single precision"),
}
READERS = {  # modules that raise ValueError about a file, within `gate.reading` or the like
    "binary.py", "campaign.py", "checkpoint.py", "dialect.py", "gate.py", "records.py",
    "spectrum.py", "storage.py", "store.py",
}  # fmt: skip


def coded(base):
    """Return the classes of a kind that the module of errors defines."""
    kinds = [getattr(errors, name) for name in errors.__all__]
    return [kind for kind in kinds if issubclass(kind, base)]


def raised():
    """Return name, file and line of each exception that a statement of the packages raises."""
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and node.exc is not None:
                made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
                name = made.attr if isinstance(made, ast.Attribute) else getattr(made, "id", "")
                found.append((name, path.name, node.lineno))
    return found


def test_each_class_has_a_code_of_its_own():
    kinds = coded(errors.GraphuqError) + coded(errors.GraphuqWarning)
    assert len(kinds) == len(errors.__all__) >= 15
    codes = [vars(kind)["code"] for kind in kinds]
    assert len({*codes, *CODES}) == len(codes) + len(CODES)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in [*codes, *CODES])


def test_every_exception_that_is_raised_has_a_code_or_a_reason():
    names = {kind.__name__ for kind in coded(errors.GraphuqError)}
    names |= {"RefusedColumn", "RefusedColumns"}  # kinds of InvalidInput
    counts: dict[str, int] = {}
    for name, file, line in raised():
        if name in names or (not name[:1].isupper() and name != "_Coarse"):
            continue  # a variable: an error that was caught, or made by a function
        assert name in OTHERS, f"{file}:{line} raises {name}, which has no code"
        counts[name] = counts.get(name, 0) + 1
        if name == "ValueError":
            assert file in READERS, f"{file}:{line}: raise an error of graphuq"
    for name, (most, _) in OTHERS.items():
        assert 0 < counts.get(name, 0) <= most, name


def test_the_page_lists_every_code():
    listed = re.findall(
        r"^\| `([a-z-]+)` \|", PAGE.split("\n## Errors\n")[1].split("\n## ")[0], re.M
    )
    codes = [vars(kind)["code"] for kind in coded(errors.GraphuqError)]
    codes += [vars(kind)["code"] for kind in coded(errors.GraphuqWarning)]
    assert sorted(listed) == sorted([*codes, *CODES])


@pytest.mark.parametrize(
    ("error", "argument", "problem", "remedy"),
    [
        (errors.InvalidInput("n", "0 rows", "give one"), "n", "0 rows", "give one"),
        (errors.StorageError("no file"), None, "no file", None),
        (
            errors.MissingPackage("faiss-cpu", "neighbors"),
            None,
            "the package faiss-cpu is not installed",
            "run pip install 'graphuq[neighbors]'",
        ),
    ],
)
def test_an_error_has_its_parts(error, argument, problem, remedy):
    for one in (error, pickle.loads(pickle.dumps(error))):
        assert (one.argument, one.problem, one.remedy) == (argument, problem, remedy)
        assert str(one) == str(error)
