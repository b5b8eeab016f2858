"""Modules import each other in one direction, without circles.

Imports inside functions count, since they only hide a circle. Imports for type checking and names
that a package finds when they are first used do not.
"""

import ast
from pathlib import Path

import networkx as nx

SOURCE = Path(__file__).parents[2] / "src"


def modules():
    """Return the path of each module, by its name."""
    found = {}
    for path in sorted((SOURCE / "graphuq").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def is_for_types(node):
    """Return whether a statement is ``if TYPE_CHECKING:``."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imported_by(body, names):
    """Yield the modules that statements import, wherever they stand."""
    for node in body:
        if is_for_types(node):
            yield from imported_by(node.orelse, names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in names else node.module
        else:
            yield from imported_by(ast.iter_child_nodes(node), names)


def circles(sources):
    """Return the strongly connected components of more than one module."""
    graph = nx.DiGraph()
    for name, text in sources.items():
        for target in imported_by(ast.parse(text).body, sources):
            if target in sources and target != name:
                graph.add_edge(name, target)
    return [part for part in nx.strongly_connected_components(graph) if len(part) > 1]


def test_a_circle_is_found():
    """Two modules that import each other, one of them in a function, are a circle."""
    sources = {"p.a": "from p.b import x", "p.b": "def f():\n    from p import a", "p.c": ""}
    assert circles(sources) == [{"p.a", "p.b"}]
    hidden = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import a"
    assert circles({**sources, "p.b": hidden}) == []


def test_there_are_no_circles():
    sources = {name: path.read_text(encoding="utf-8") for name, path in modules().items()}
    assert circles(sources) == []
