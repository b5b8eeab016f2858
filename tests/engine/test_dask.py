"""Blocks on a cluster of processes: the same bytes, also if a worker or the driver is killed."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import graphuq as gq
from graphuq.engine.cluster import MAX_DEATHS, dask_client, results_of
from graphuq.engine.tasks import Tasks
from graphuq.errors import InvalidInput
from graphuq.utils.checks import require_integer
from in_store import in_store
from mixture import mixture

distributed = pytest.importorskip("distributed", reason="pip install graphuq[dask]")
dask = pytest.importorskip("dask")

N_ROWS, N_PARTS = 6000, 6
FIXED = gq.models.Fixed(gq.priors.Matern(0.3), gq.likelihoods.Probit(0.3))


@pytest.fixture(scope="module")
def cluster():
    """Return a client of a cluster of two processes."""
    with dask_client(n_workers=2) as client:
        yield client


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return the file of features, features, and labels of some rows."""
    features, classes = mixture(N_ROWS, width=12, n_classes=2)
    path = tmp_path_factory.mktemp("data") / "rows.npy"
    np.save(path, features)
    rng = np.random.default_rng(0)
    rows = [rng.choice(np.flatnonzero(classes == k), 15, replace=False) for k in range(2)]
    return path, features, {int(row): int(classes[row]) for row in np.concatenate(rows)}


def classifier(store, **more):
    options = {"model": "largest-evidence", "n_eigenpairs": 30, "n_parts": N_PARTS} | more
    return in_store(store, **options)


def written(found, folder):
    """Return the bytes of all files of probabilities."""
    return [path.read_bytes() for path in found.to_parquet(folder) if path.suffix == ".parquet"]


@pytest.fixture(scope="module")
def on_threads(data, tmp_path_factory):
    """Return what threads of one process write."""
    folder = tmp_path_factory.mktemp("threads")
    return written(classifier(folder / "store").fit(data[0], data[2]), folder / "out")


@pytest.mark.slow
def test_processes_write_the_same_bytes_as_threads(cluster, data, on_threads, tmp_path):
    found = classifier(tmp_path / "store", client=cluster).fit(data[0], data[2])
    assert written(found, tmp_path / "out") == on_threads


def killer(cluster, phase):
    """Return a callback that kills a worker once in a phase, and the processes before that.

    Dask does not always start another one on a busy machine: a cluster is used once.
    """
    processes = []

    def kill(reported, *_):
        if reported == phase and not processes:
            processes.extend(cluster.run(os.getpid).values())
            os.kill(processes[0], signal.SIGKILL)

    return kill, processes


@pytest.fixture(scope="module")
def twenty_thousand(tmp_path_factory):
    """Return the file of 20,000 rows, labels of 200, and what threads write."""
    folder = tmp_path_factory.mktemp("twenty_thousand")
    features, classes = mixture(20_000)
    np.save(folder / "rows.npy", features)
    rng = np.random.default_rng(0)
    rows = [rng.choice(np.flatnonzero(classes == k), 20, replace=False) for k in range(10)]
    given = {int(row): int(classes[row]) for row in np.concatenate(rows)}
    found = classifier(folder / "store", model=FIXED).fit(folder / "rows.npy", given)
    return folder / "rows.npy", given, written(found, folder / "out")


@pytest.mark.slow
@pytest.mark.parametrize(
    "phase",
    [
        "neighbours",
        pytest.param("eigenpairs", marks=pytest.mark.slow),
        pytest.param("probabilities", marks=pytest.mark.slow),
    ],
)
def test_a_killed_worker_changes_nothing(phase, twenty_thousand, tmp_path):
    path, given, expected = twenty_thousand
    with dask_client(n_workers=2) as cluster:
        kill, processes = killer(cluster, phase)
        found = classifier(tmp_path / "store", model=FIXED, client=cluster, progress=kill)
        assert written(found.fit(path, given), tmp_path / "out") == expected
        assert len(processes) == 2
        assert processes[0] not in cluster.run(os.getpid, on_error="ignore").values()


@pytest.mark.slow
@pytest.mark.parametrize(
    "stage", ["graph", *(pytest.param(s, marks=pytest.mark.slow) for s in ("parts", "pairs"))]
)
def test_a_killed_driver_goes_on(stage, data, on_threads, tmp_path):
    program = (
        "import graphuq as gq\n"
        f"store = gq.Store({str(tmp_path / 'store')!r}, n_parts={N_PARTS})\n"
        "c = gq.GraphClassifier(store=store, model='largest-evidence', n_eigenpairs=30)\n"
        f"c.fit({str(data[0])!r}, {data[2]!r})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program])
    until = time.monotonic() + 60
    while not list(tmp_path.glob(f"store/{stage}-*")) and time.monotonic() < until:
        time.sleep(0.005)
    process.kill()
    process.wait()
    assert not list(tmp_path.glob("store/posterior-*/done.json"))
    found = classifier(tmp_path / "store").fit(data[0], data[2])
    assert written(found, tmp_path / "out") == on_threads


@pytest.mark.slow
def test_a_part_stays_on_its_worker(cluster):
    first, second = (Tasks(cluster).map(os.getpid, [()] * 6) for _ in range(2))
    assert first == second
    assert len(set(first)) == 2


def test_a_result_is_saved_while_a_client_is_active(cluster, data, tmp_path):
    """The writer of xarray would ask the cluster for a lock of bytes in memory."""
    assert distributed.default_client() is cluster
    X, given = data[1][:200], np.arange(200) % 2
    fit = gq.GraphClassifier(model=FIXED, n_eigenpairs=20, inference="expectation-propagation")
    fit.fit(X, np.where(np.arange(200) < 20, given, -1)).save(tmp_path / "fit.nc")
    assert gq.load(tmp_path / "fit.nc").predict(X[:5]).shape == (5,)


def test_an_error_of_a_task_comes_back(cluster):
    for client in (None, cluster):
        with pytest.raises(InvalidInput, match="number: -3"):
            Tasks(client).map(require_integer, [("number", -3, 1), ("number", -3, 1)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of dask.dataframe, by pandas
@pytest.mark.parametrize("is_cluster", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_dask_collections(is_cluster, cluster, data, on_threads, tmp_path):
    array = pytest.importorskip("dask.array")
    client, features, given = cluster if is_cluster else None, data[1], data[2]
    blocks = array.from_array(features, chunks=(2500, 5))
    found = classifier(tmp_path / "a", client=client).fit(blocks, given)
    table = pa.table({f"x{k}": features[:, k] for k in range(12)})
    label = [str(given[row]) if row in given else None for row in range(N_ROWS)]
    parquet.write_table(table.append_column("y", pa.array(label)), tmp_path / "rows.parquet")
    frame = pytest.importorskip("dask.dataframe").read_parquet(tmp_path / "rows.parquet")
    frame = frame.repartition(npartitions=3)
    other = classifier(tmp_path / "b", client=client).fit(frame, "y")
    expected = parquet.read_table(pa.BufferReader(on_threads[0]))["probability"].to_numpy()
    for one in (found, other):
        files = one.to_parquet(tmp_path / "out")
        tables = [parquet.read_table(f) for f in files if f.suffix == ".parquet"]
        assert len(tables) == 3
        shares = pa.concat_tables(tables)["probability"].to_numpy()
        np.testing.assert_allclose(shares, expected, atol=1e-5)


@contextmanager
def one_worker(folder, graphuq=None):
    """Yield a client of a worker that is started by hand, whose graphuq may be another file."""
    path = [str(p) for p in (Path(gq.__file__).parents[1], Path(__file__).parents[2])]
    if graphuq is not None:
        (folder / "graphuq.py").write_text(graphuq)
        path = [str(folder)]
    command = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-dashboard", "--no-nanny"]
    more = ["--nthreads", "1", "--memory-limit", "0", "--local-directory", str(folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    cluster = distributed.LocalCluster(n_workers=0, protocol="tcp", dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        worker = subprocess.Popen(
            [*command, *more, cluster.scheduler_address], env=environment, cwd=folder,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield client, worker
        finally:
            worker.kill()
            worker.wait()


@pytest.mark.parametrize(
    ("graphuq", "message"),
    [
        ("raise ModuleNotFoundError('No module of graphuq')", "cannot import .*No module of graph"),
        ("__version__ = '0.0.1'", "has graphuq 0.0.1, and this process"),
    ],
)
def test_workers_without_this_graphuq_are_refused(graphuq, message, data, tmp_path):
    with one_worker(tmp_path, graphuq) as (client, worker):
        with pytest.raises(InvalidInput, match=f"client: worker tcp.* {message}"):
            classifier(tmp_path / "store", client=client).fit(data[0], data[2])
        assert worker.poll() is None  # it has not died of the question


def test_a_cluster_without_workers_is_refused_before_and_while_it_works(monkeypatch):
    monkeypatch.setattr("graphuq.engine.cluster.NO_WORKERS", 0.3)
    monkeypatch.setattr("graphuq.engine.cluster.POLL", 0.1)
    cluster = distributed.LocalCluster(n_workers=0, protocol="tcp", dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        with pytest.raises(InvalidInput, match=r"client: .* no worker for 0\.3 s"):
            Tasks(client).map(os.getpid, [()])
        with pytest.raises(InvalidInput, match=r"client: .* no worker for 0\.3 s"):
            list(results_of(client, [client.submit(os.getpid)], []))


@pytest.mark.slow
def test_a_task_of_which_workers_die(tmp_path):
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        one_worker(tmp_path) as (client, worker),
        pytest.raises(InvalidInput, match="client: its workers die over and over"),
    ):
        Tasks(client).map(os._exit, [(3,)])
    assert worker.wait() == 3


def test_workers_that_die_before_they_take_a_task(monkeypatch):
    """A new worker at each look, as if a plugin killed it."""
    monkeypatch.setattr("graphuq.engine.cluster.POLL", 0.01)

    class Flapping:
        n_looks = 0

        def nthreads(self):
            self.n_looks += 1
            return {f"tcp://worker:{self.n_looks}": 1}

    cluster = distributed.LocalCluster(n_workers=0, protocol="tcp", dashboard_address=None)
    with cluster, distributed.Client(cluster) as client, pytest.raises(InvalidInput, match="die"):
        list(results_of(flapping := Flapping(), [client.submit(os.getpid)], []))
    assert flapping.n_looks == MAX_DEATHS + 2


def test_a_store_that_workers_do_not_see(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "run", partial(blind, cluster.run))
    with pytest.raises(InvalidInput, match=r"store: worker .* does not see"):
        Tasks(cluster, folder=tmp_path).map(os.getpid, [()])
    assert not list(tmp_path.iterdir())


def blind(run, function, *arguments, **more):
    """Answer as workers whose folder is another one."""
    other = [f"{argument}-elsewhere" for argument in arguments]
    return run(function, *(other if function is os.path.isfile else arguments), **more)


def test_clients_are_checked():
    with (
        pytest.raises(InvalidInput, match="workers: 2 beside scheduler 'tcp"),
        dask_client(2, "tcp://localhost:1"),
    ):
        pass
    with pytest.raises(InvalidInput, match="workers"), dask_client(0):
        pass
    with dask_client() as client:
        assert client is None


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer(monkeypatch):
    monkeypatch.setattr("graphuq.engine.cluster.CONNECTING", 0.5)
    with (
        pytest.raises(InvalidInput, match="does not answer"),
        dask_client(scheduler="tcp://127.0.0.1:9"),
    ):
        pass
