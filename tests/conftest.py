"""Fixtures of all tests: strict JAX, small graphs, and the folder of real data."""

import gc
import os
import shutil
from collections import Counter
from pathlib import Path

import jax
import jaxtyping
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import graphuq as gq

jax.config.update("jax_numpy_rank_promotion", "raise")

DATA = Path(os.environ.get("GRAPHUQ_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium: the one of the system, or the one that Playwright installed."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="pip install playwright, to test pages in a browser"
    )
    with sync_api.sync_playwright() as playwright:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        try:
            opened = playwright.chromium.launch(
                executable_path=found,
                # Without the last one, a small /dev/shm, as in containers, ends the browser.
                args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
            )
        except sync_api.Error as error:
            pytest.skip(f"no browser: run `playwright install chromium` ({error.message[:80]})")
        yield opened
        opened.close()


@pytest.fixture(scope="session", autouse=True)
def compiled_code(pytestconfig):
    """Share compiled programs among the workers, and with the next run."""
    folder = pytestconfig.cache.mkdir("compiled")
    cache = os.environ.get("JAX_COMPILATION_CACHE_DIR", str(folder))
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.05)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.fixture(scope="module", autouse=True)
def no_compiled_programs_of_others():
    """Drop compiled programs after each file: kept, they take gigabytes by the end of the suite."""
    yield
    jax.clear_caches()


if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers that each use all cores wait for each other; some tests then take eight times as long.
    threadpool_limits(1, user_api="blas")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for commands that tests start


def pytest_collection_finish():
    """Spare Python's garbage collector the modules and items, which it would visit all the time."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark scikit-learn's longest checks as slow where another one is nearly the same.

    Of a test with the mark ``slow_after(n)``, all cases but the first n are slow.
    """
    seen = Counter()
    for item in items:
        after = item.get_closest_marker("slow_after")
        if after is not None and item.get_closest_marker("slow") is None:
            function = item.nodeid.partition("[")[0]
            seen[function] += 1
            if seen[function] > after.args[0]:
                item.add_marker(pytest.mark.slow)
        name = item.name
        # Sparse arrays are checked, too, and regressors read them as classifiers do.
        again = ("check_estimator_sparse_matrix", "Regressor()-check_estimator_sparse")
        if "s_train(readonly_memmap" in name or any(part in name for part in again):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def data_folder():
    """Return the folder of real data sets, or skip the test if there is none."""
    if not (DATA / "voting").exists():
        pytest.skip(f"no data sets in {DATA}; set GRAPHUQ_DATA")
    return DATA


def random_adjacency(n_nodes, seed=0, density=0.3):
    """Return the weights of a connected random graph, a ring with chords."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.uniform(0.2, 1, (n_nodes, n_nodes)), 1)
    weights *= rng.uniform(size=weights.shape) < density
    ring = np.arange(n_nodes)
    weights[np.minimum(ring, (ring + 1) % n_nodes), np.maximum(ring, (ring + 1) % n_nodes)] = 0.5
    return weights + weights.T


@pytest.fixture
def graph():
    """Return a connected graph of 16 nodes."""
    return gq.graphs.from_adjacency(random_adjacency(16))


@pytest.fixture
def posterior(graph):
    """Return a small probit posterior."""
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=10)
    return gq.Posterior(
        spectrum,
        gq.priors.InverseLaplacian(),
        gq.likelihoods.Probit(0.3),
        labelled=[0, 5, 9],
        labels=[1, -1, 1],
    )


@pytest.fixture
def unchecked_types():
    """Switch off the suite's type checks, to call functions with arguments of wrong types."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
