"""Warnings name the line of the user, not one inside graphuq."""

import ast
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import DisconnectedGraphWarning, GraphuqWarning, NotConvergedWarning
from graphuq.utils.user_warnings import held_warnings, warn_user

SOURCE = Path(gq.__file__).parent


def test_short_chains():
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(random_adjacency(16)))
    posterior = gq.Posterior(
        spectrum, gq.priors.InverseLaplacian(), gq.likelihoods.Probit(), [0, 5], [1, -1]
    )
    with pytest.warns(NotConvergedWarning) as caught:
        gq.infer(posterior, gq.inference.ExactHamiltonian(), n_samples=8, n_chains=2, n_warmup=0)
    assert {warning.filename for warning in caught} == {__file__}


def test_disconnected_graph():
    features = np.concatenate([np.arange(10.0), 100 + np.arange(10.0)])[:, None]
    with pytest.warns(DisconnectedGraphWarning) as caught:
        gq.graphs.knn_graph(features, 3)
    assert caught[0].filename == __file__


def test_each_thread_holds_its_own_warnings():
    """Two threads hold at once, and the one that began first ends first; nothing is left behind."""
    before, steps = list(warnings.filters), threading.Barrier(2, timeout=60)

    def hold(name):
        with held_warnings() as held:
            steps.wait()
            warn_user(name, GraphuqWarning)
        steps.wait()
        return [str(warning) for warning in held]

    def hold_longer(name):
        with held_warnings() as held:
            steps.wait()
            steps.wait()  # the other one has ended
            warn_user(name, GraphuqWarning)
        return [str(warning) for warning in held]

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(hold, "first"), pool.submit(hold_longer, "second")
        assert first.result() == ["first"]
        assert second.result() == ["second"]
    assert warnings.filters == before
    with pytest.warns(GraphuqWarning, match="third"):
        warn_user("third", GraphuqWarning)


def test_other_classes_of_warnings_are_shown():
    with (
        held_warnings() as outer,
        held_warnings(DisconnectedGraphWarning) as inner,
    ):
        warn_user("in parts", DisconnectedGraphWarning)
        warn_user("short chains", NotConvergedWarning)
    assert [[str(warning) for warning in held] for held in (inner, outer)] == [
        ["in parts"],
        ["short chains"],
    ]
    with (
        held_warnings(DisconnectedGraphWarning),
        pytest.warns(NotConvergedWarning, match="short chains"),
    ):
        warn_user("short chains", NotConvergedWarning)


def test_warnings_of_graphuq_have_one_way():
    """Filters of `warnings` are one for all threads, so no file filters ours, or goes past us."""
    ours = [name for name in gq.errors.__all__ if name.endswith("Warning")]
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        calls = [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Call)]
        for name, text in ((ast.unparse(call.func), ast.unparse(call)) for call in calls):
            filters_ours = "filter" in name and any(warning in text for warning in ours)
            goes_past = name == "warnings.warn" and path.name != "user_warnings.py"
            found += [f"{path}: {text}"] if filters_ours or goes_past else []
    assert found == []
