"""Fits in threads and processes give the answers of one after the other, or are refused."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import GraphuqError
from graphuq.utils import concurrency

N, N_GIVEN, N_THREADS = 60, 10, 6
CLASSES = np.arange(N) % 2
X = np.random.default_rng(0).normal(size=(N, 3)) + 2 * CLASSES[:, None]
Y = np.where(np.arange(N) < N_GIVEN, CLASSES, -1)
EP = {"model": "largest-evidence", "inference": "expectation-propagation"}
METHODS = {
    "expectation propagation": EP,
    "default": {},
    "exact": {**EP, "inference": gq.inference.MCMC("exact-hamiltonian", n_samples=40)},
    "pcn": {
        "model": gq.models.Fixed(gq.priors.Matern(), gq.likelihoods.Probit()),
        "inference": gq.inference.MCMC("pcn", n_samples=40),
    },
}
pytestmark = [
    pytest.mark.filterwarnings("ignore::graphuq.errors.GraphuqWarning"),
    pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


def fitted(method):
    return gq.GraphClassifier(**METHODS[method]).fit(X, Y).label_distributions_


def fresh(method, start):
    """Return what another process finds, as a script of its own would start it."""
    with ProcessPoolExecutor(1, multiprocessing.get_context(start)) as pool:
        return pool.submit(fitted, method).result(timeout=100)


def test_no_label_of_any_thread_is_lost():
    classifier = gq.GraphClassifier(**EP).fit(X, Y)
    later = np.arange(N_GIVEN, N_GIVEN + 3 * N_THREADS).reshape(N_THREADS, 3)
    with ThreadPoolExecutor(N_THREADS) as pool:
        list(pool.map(lambda rows: classifier.add_labels(rows, CLASSES[rows]), later))
    posterior = classifier.result_.posterior
    labelled = sorted(posterior.labelled.tolist())
    assert labelled == list(range(N_GIVEN + later.size))
    np.testing.assert_array_equal(posterior.labels > 0, CLASSES[posterior.labelled])
    alone = gq.GraphClassifier(**EP).fit(X, Y).add_labels(later.ravel(), CLASSES[later.ravel()])
    found = classifier.label_distributions_
    np.testing.assert_allclose(found, alone.label_distributions_, atol=2e-3)


class Crossed:
    """Two properties, each of which needs the other, of another object in another thread."""

    def __init__(self, other, both_began):
        self.other, self.both_began = other, both_began

    @concurrency.cached_property
    def first(self):
        return 1 if self.other is None else self.began() + self.other.second

    @concurrency.cached_property
    def second(self):
        return 2 if self.other is None else self.began() + self.other.first

    def began(self):
        self.both_began.wait(timeout=20)
        return 10


def test_properties_of_different_objects_do_not_wait_for_each_other():
    both_began = threading.Barrier(2)
    one, other = (Crossed(Crossed(None, None), both_began) for _ in range(2))
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(getattr, [one, other], ["first", "second"], timeout=60)
    assert list(found) == [12, 11]
    one.other = None
    assert one.first == 12  # computed once


def test_fits_of_one_object_wait_for_each_other():
    classifier = gq.GraphClassifier(**EP)
    others = [np.where(np.arange(N) < n, CLASSES, -1) for n in range(8, 8 + N_THREADS)]
    with ThreadPoolExecutor(N_THREADS) as pool:
        list(pool.map(lambda y: classifier.fit(X, y), others))
    n_labels = len(classifier.result_.posterior.labels)
    alone = gq.GraphClassifier(**EP).fit(X, others[n_labels - 8])
    np.testing.assert_array_equal(classifier.label_distributions_, alone.label_distributions_)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("method", METHODS)
def test_fits_in_threads_are_those_of_one_thread(method):
    expected = fitted(method)
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(fitted, [method] * 3):
            np.testing.assert_array_equal(found, expected)


def test_a_fit_is_copied_and_pickled_as_before():
    classifier = gq.GraphClassifier(**EP).fit(X, Y)
    for again in (copy.deepcopy(classifier), pickle.loads(pickle.dumps(classifier))):
        again.add_labels([30, 31], CLASSES[[30, 31]])
    assert len(classifier.result_.posterior.labels) == N_GIVEN


SCRIPT = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path[:0] = {path!r}
from test_concurrency import fitted, fresh

if __name__ == "__main__":
    fitted({first!r})
    try:
        found = fresh({method!r}, {start!r})
    except Exception as error:
        print(type(error).__name__, error)
    else:
        print(float(abs(found - fitted({method!r})).max()))
"""


def run_script(tmp_path, **names):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(path=[str(Path(__file__).parent), *sys.path], **names))
    run = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=200, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip().splitlines()[-1]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("method", ["pcn", "default", "expectation propagation"])
def test_processes_that_are_spawned_find_the_same(method, tmp_path):
    assert float(run_script(tmp_path, first=method, method=method, start="spawn")) < 1e-9


@pytest.mark.skipif(not hasattr(concurrency.os, "fork"), reason="needs fork")
@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("first", "method"),
    [("pcn", "pcn"), ("expectation propagation", "pcn"), ("default", "default")],
)
def test_forked_processes_find_the_same_or_are_refused(first, method, tmp_path):
    """JAX waits for ever in a process that was forked after it had run."""
    printed = run_script(tmp_path, first=first, method=method, start="fork")
    if first == "pcn":
        assert printed.startswith("GraphuqError this process was forked from one in which JAX")
        assert "spawn" in printed
    else:
        assert float(printed) < 1e-9


def test_a_forked_process_is_refused_at_every_entrance(monkeypatch):
    classifier = gq.GraphClassifier(**EP).fit(X, Y)
    monkeypatch.setattr(concurrency, "_jax_ran_before_fork", True)
    posterior = classifier.result_.posterior
    calls = [
        lambda: classifier.fit(X, Y),
        lambda: classifier.add_labels([30], [0]),
        lambda: gq.infer(posterior, "expectation-propagation"),
        lambda: gq.maximize_evidence(posterior),
    ]
    for call in calls:
        with pytest.raises(GraphuqError, match=r"forked.*spawn"):
            call()
    assert classifier.predict_proba(X[:3] + 0.01).shape == (3, 2)
