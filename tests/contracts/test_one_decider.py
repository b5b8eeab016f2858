"""What "auto" means of a model is decided in `graphuq.models`, and no other file takes part."""

import ast
from pathlib import Path

import pytest

import graphuq

SOURCE = Path(graphuq.__file__).parent
DECIDERS = {  # names by which a model is chosen or made from labels, and who may use them
    "Auto": (),
    "Average": (),
    "Likeliest": (),
    "learnt_mixture": (),
    "likeliest_component": ("inference/model_average/",),
    "screened": ("inference/model_average/",),
    "maximize_evidence": ("__init__.py", "evidence/"),
}
FILES = [path for path in SOURCE.rglob("*.py") if "models" not in path.relative_to(SOURCE).parts]


def names_in(path):
    """Return the names that a file reads, imports or defines."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("name", DECIDERS)
def test_models_are_chosen_in_one_place(name):
    users = [path.relative_to(SOURCE).as_posix() for path in FILES if name in names_in(path)]
    assert [user for user in users if not user.startswith(DECIDERS[name] or ("-",))] == []


def test_the_rule_finds_what_it_looks_for():
    """The names exist: a rule about names that were changed would find nothing."""
    inside = set().union(*(names_in(path) for path in (SOURCE / "models").glob("*.py")))
    assert set(DECIDERS) <= inside
