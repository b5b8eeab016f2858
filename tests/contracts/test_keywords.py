"""Scripts that no quick test runs call the library with keywords that it has."""

import ast
import inspect
from pathlib import Path

import pytest

import graphuq as gq
from graphuq.inference.chains import run_chains

ROOT = Path(__file__).parents[2]
CALLED = {
    "infer": gq.infer,
    "run_chains": run_chains,
    "GraphClassifier": gq.GraphClassifier,
    "knn_graph": gq.graphs.knn_graph,
    "laplacian_spectrum": gq.laplacian_spectrum,
    "Posterior": gq.Posterior,
}
# Functions of the papers that pass their keywords on.
PASSED_ON = {"run": gq.infer}
FILES = [
    path
    for folder in ("papers/src", "benchmarks", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


def unknown_keywords(tree, passes_on):
    """Return line and name of each keyword that a called function does not have."""
    known = CALLED | (PASSED_ON if passes_on else {})
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", None))
        is_method = isinstance(node.func, ast.Attribute) and name == "run"
        if name in known and not is_method:
            names = inspect.signature(known[name]).parameters
            found += [(node.lineno, k.arg) for k in node.keywords if k.arg and k.arg not in names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_keywords_are_known(path):
    text = path.read_text(encoding="utf-8")
    passes_on = "hartog.setup import" in text or path.match("hartog/setup.py")
    assert unknown_keywords(ast.parse(text), passes_on) == []


def test_an_unknown_keyword_is_found():
    tree = ast.parse("gq.infer(posterior, seed=0)\nrun(posterior, PAPERS, seed=1)")
    assert unknown_keywords(tree, passes_on=True) == [(1, "seed"), (2, "seed")]
    assert unknown_keywords(tree, passes_on=False) == [(1, "seed")]
