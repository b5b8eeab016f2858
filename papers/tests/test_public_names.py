"""The package imports only public names of graphuq: those of an ``__all__`` in the reference."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "docs" / "api").glob("*.rst")
DOCUMENTED = {m for page in PAGES for m in re.findall(r"currentmodule:: (\S+)", page.read_text())}
PARTS = sorted(
    path for part in ("src", "examples") for path in (ROOT / "papers" / part).rglob("*.py")
)


def is_public(module, name=None):
    """Return whether the reference has a module, and it exports the name."""
    if name is not None and is_public(f"{module}.{name}"):
        return True
    if module not in DOCUMENTED:
        return False
    return name is None or name in getattr(importlib.import_module(module), "__all__", ())


def private_imports(source):
    """Return the names of graphuq that a module imports, or reads from what it imports."""
    tree, faults, modules = ast.parse(source), [], {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "graphuq":
                    modules[alias.asname or "graphuq"] = alias.name if alias.asname else "graphuq"
                    faults += [] if is_public(alias.name) else [alias.name]
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "graphuq":
            for alias in node.names:
                found = f"{node.module}.{alias.name}"
                if is_public(found):
                    modules[alias.asname or alias.name] = found
                faults += [] if is_public(node.module, alias.name) else [found]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (module := module_of(node.value, modules)):
            faults += [] if is_public(module, node.attr) else [f"{module}.{node.attr}"]
        if isinstance(node, ast.Attribute) and re.match(r"_(?!_|replace$|fields$)", node.attr):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            faults += [] if own else [node.attr]
    return faults


def module_of(node, modules):
    """Return the module of graphuq that an expression is, or None."""
    if isinstance(node, ast.Name):
        return modules.get(node.id)
    if isinstance(node, ast.Attribute) and (module := module_of(node.value, modules)):
        return f"{module}.{node.attr}" if is_public(f"{module}.{node.attr}") else None
    return None


@pytest.mark.parametrize("path", PARTS, ids=lambda path: str(path.relative_to(ROOT / "papers")))
def test_a_module_uses_public_names_alone(path):
    assert private_imports(path.read_text(encoding="utf-8")) == []


def test_the_reference_has_modules_with_names():
    assert {"graphuq", "graphuq.cli", "graphuq.inference", "graphuq.errors"} <= DOCUMENTED


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (
            "from graphuq.posterior.posterior import Posterior",
            "graphuq.posterior.posterior.Posterior",
        ),
        ("from graphuq.errors import require", "graphuq.errors.require"),
        ("from graphuq import posterior", "graphuq.posterior"),
        ("from graphuq.inference import chains", "graphuq.inference.chains"),
        ("import graphuq.utils.gate", "graphuq.utils.gate"),
        ("import graphuq as gq\ngq.run.infer", "graphuq.run"),
        ("import graphuq\ngraphuq.priors.base.Modes", "graphuq.priors.base"),
        ("from graphuq import plots\nplots.panels.theme", None),
        ("import graphuq as gq\ngq.priors.Matern(), gq.infer", None),
        ("from graphuq import Result\ndef f(r): return r._link", "_link"),
    ],
)
def test_a_private_name_is_found(source, fault):
    assert private_imports(source) == ([] if fault is None else [fault])
