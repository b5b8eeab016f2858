"""Fits by row blocks give what a fit in memory gives, whatever happens on the way."""

import errno
import json
import shutil
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse
from sklearn.exceptions import NotFittedError

import graphuq as gq
from graphuq.classifier.stored import sample
from graphuq.classifier.stored.output import summary_of_store
from graphuq.engine import (
    equal_rows,
    graph,
    list_search,
    neighbors,
    pairs,
    partition,
    settings,
    tasks,
)
from graphuq.engine.sources import open_source
from graphuq.engine.stages import Stages
from graphuq.engine.store import RowParts, Stage
from graphuq.errors import (
    DisconnectedGraphWarning,
    InvalidInput,
    NotConvergedWarning,
    StorageError,
)
from in_store import in_store

N_PAIRS = 30


def blobs(n_rows=2500, n_classes=3, width=6, seed=0, spread=2.5):
    """Return rows of overlapping clusters, and their classes."""
    rng = np.random.default_rng(seed)
    centres = spread * rng.normal(size=(2 * n_classes, width))
    cluster = rng.integers(len(centres), size=n_rows)
    return (centres[cluster] + rng.normal(size=(n_rows, width))).astype(np.float32), cluster % (
        n_classes
    )


def some_labels(classes, n_each=8, seed=1):
    """Return a few rows of each class, by row number."""
    rng = np.random.default_rng(seed)
    rows = [rng.choice(np.flatnonzero(classes == k), n_each, False) for k in np.unique(classes)]
    return {int(row): int(classes[row]) for row in np.concatenate(rows)}


def classifier_in(store, **more):
    options = {"n_eigenpairs": N_PAIRS, "search": "exact", "n_parts": 3, "tolerance": 1e-3}
    options["model"] = "largest-evidence"
    return in_store(store, **options | more)


def in_memory(model="largest-evidence"):
    return gq.GraphClassifier(
        model=model, inference="expectation-propagation", n_eigenpairs=N_PAIRS, n_neighbors=15
    )


def read(files):
    """Return the table of all files of `to_parquet`."""
    return pa.concat_tables([parquet.read_table(f) for f in files if f.suffix == ".parquet"])


def shares_in(files, classes):
    table = read(files)
    return np.stack([table[f"probability_{k}"].to_numpy() for k in classes], axis=1)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Make blocks of the source so small that there are several."""
    monkeypatch.setattr("graphuq.engine.sources.BLOCK_ROWS", 900)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return the file of features, features and classes."""
    features, classes = blobs()
    path = tmp_path_factory.mktemp("data") / "rows.npy"
    np.save(path, features)
    return path, features, classes


@pytest.fixture(scope="module")
def fitted(data, tmp_path_factory):
    """Return a fit of three parts, its files, and that of the library in memory."""
    path, features, classes = data
    folder = tmp_path_factory.mktemp("fit")
    given = some_labels(classes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphuq.engine.sources.BLOCK_ROWS", 900)
        found = classifier_in(folder / "store").fit(path, given)
        files = found.to_parquet(folder / "out")
    y = np.full(len(features), -1)
    y[list(given)] = list(given.values())
    return found, files, in_memory().fit(features, y)


def matrix_of(found):
    """Return the normalised adjacency matrix of a fit, in the order of the source."""
    starts, rows = found._stored.stages.first.parts.record["starts"], []
    for p in range(len(starts) - 1):
        block = graph.load_block(found._stored.stages.first.graph, p)
        columns = np.append(np.arange(starts[p], starts[p + 1]), block.halo)
        entries = block.weights.data, columns[block.weights.indices], block.weights.indptr
        rows.append(sparse.csr_array(entries, shape=(block.weights.shape[0], starts[-1])))
    matrix = sparse.vstack(rows).tocsr()
    place = found._stored.stages.places(np.arange(starts[-1]))
    return matrix[place][:, place]


def test_the_graph_is_that_of_the_library_in_memory(fitted):
    found, _, memory = fitted
    degrees = memory.graph_.degrees
    root = sparse.diags_array(1 / np.sqrt(degrees))
    expected = root @ memory.graph_.weights @ root
    assert abs(matrix_of(found) - expected).max() < 1e-5
    assert found._stored.stages.first.graph.record["n_edges"] == memory.graph_.n_edges
    assert found.recall_ == 1.0
    assert found.n_components_ == 1


def test_eigenpairs_are_those_of_the_library_in_memory(fitted):
    found, _, memory = fitted
    record, spectrum = found._stored.stages.first.pairs.record, memory.result_.posterior.spectrum
    residuals = np.array(record["residuals"])
    values = np.array(record["eigenvalues"])
    assert (residuals <= 1e-3 * values[-1]).all()
    assert (np.abs(values - spectrum.eigenvalues[1:]) < residuals + 1e-6).all()
    matrix = matrix_of(found)
    places = found._stored.stages.places(np.arange(matrix.shape[0]))
    vectors = found._stored.basis.pairs.vectors(places)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(N_PAIRS), atol=1e-5)
    left = vectors[:, 1:] - matrix @ vectors[:, 1:] - values * vectors[:, 1:]
    np.testing.assert_allclose(np.linalg.norm(left, axis=0), residuals, atol=2e-6)


def test_probabilities_are_those_of_the_library_in_memory(fitted, data):
    found, files, memory = fitted
    table = read(files)
    assert (table["id"].to_numpy() == np.arange(len(data[2]))).all()
    shares = shares_in(files, found.classes_)
    # Eigenpairs have a tolerance of 1e-2; where two labels are as near, either may be the nearest.
    np.testing.assert_allclose(shares, memory.label_distributions_, atol=1e-2)
    assert np.abs(shares - memory.label_distributions_).mean() < 1e-3
    assert (table["label"].to_numpy() == shares.argmax(axis=1)).all()
    np.testing.assert_allclose(shares.max(axis=1), table["probability"].to_numpy())
    np.testing.assert_allclose(
        gq.results.entropy(memory.result_), table["entropy"].to_numpy(), atol=0.05
    )
    labelled = np.flatnonzero(table["given"].is_valid())
    assert set(labelled) == set(some_labels(data[2]))
    assert table["has_evidence"].to_numpy().all()
    assert [f.name for f in files] == [
        "rows-00000.parquet", "rows-00001.parquet", "rows-00002.parquet", "settings.json"
    ]  # fmt: skip
    settings = json.loads(files[-1].read_text())
    assert sum(settings["counts"]) == len(data[2])
    assert settings["graphuq_version"] == gq.__version__


def test_the_result_and_the_summary(fitted):
    found, _, memory = fitted
    assert found.result_.trust.checks.keys() == memory.result_.trust.checks.keys()
    for name, value in memory.result_.hyperparameters.items():
        assert found.result_.hyperparameters[name] == pytest.approx(value, rel=0.02)
    assert "mean probability" in summary_of_store(found)
    assert "Verdict" in summary_of_store(found)


@pytest.mark.parametrize(("model", "n_each"), [("largest-evidence", 8), ("auto", 4)])
def test_two_classes_from_a_column_of_parquet_files(model, n_each, tmp_path):
    features, classes = blobs(1500, 2, spread=1.2)
    given = some_labels(classes, n_each)
    names = np.array(["no", "yes"])[classes]
    label = [names[row] if row in given else None for row in range(len(names))]
    columns = {f"x{k}": features[:, k] for k in range(features.shape[1])}
    table = pa.table({**columns, "label": pa.array(label)})
    (tmp_path / "in").mkdir()
    for k, begin in enumerate((0, 400, 1100)):
        end = (400, 1100, 1500)[k]
        parquet.write_table(table.slice(begin, end - begin), tmp_path / "in" / f"{k}.parquet")
    found = classifier_in(tmp_path / "store", model=model).fit(tmp_path / "in", "label")
    (tmp_path / "out").mkdir()
    for name in ("rows-00003.parquet", "notes.txt"):  # of a longer table, and of the user
        (tmp_path / "out" / name).write_text("old")
    files = found.to_parquet(tmp_path / "out")
    there = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert there == sorted([*(path.name for path in files), "notes.txt"])
    y = np.array([value if value else "" for value in label])
    memory = in_memory(model).fit(features, y)
    assert found.classes_.tolist() == ["no", "yes"]
    shares = shares_in(files, found.classes_)
    np.testing.assert_allclose(shares, memory.label_distributions_, atol=5e-3)
    table = read(files)
    if model != "auto":
        np.testing.assert_allclose(table["latent_std"], memory.result_.latent_std, atol=0.02)
    assert (table["id"].to_numpy() == np.arange(1500)).all()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_zarr_array(zarr_format, fitted, data, tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3", reason="pip install zarr")
    array = zarr.create_array(
        tmp_path / "rows.zarr", shape=data[1].shape, chunks=(400, 4), dtype="f4",
        zarr_format=zarr_format,
    )  # fmt: skip
    array[:] = data[1]
    source = open_source(tmp_path / "rows.zarr")
    assert [block.n_rows for block in source.blocks] == [800, 800, 800, 100]  # whole chunks
    again = open_source(tmp_path / "rows.zarr")
    assert source.identity == again.identity
    if zarr_format == 3:
        found = classifier_in(tmp_path / "store").fit(tmp_path / "rows.zarr", some_labels(data[2]))
        shares = shares_in(found.to_parquet(tmp_path / "out"), found.classes_)
        np.testing.assert_allclose(shares, shares_in(fitted[1], found.classes_), atol=1e-6)
    else:
        rows = np.concatenate([block.features(()) for block in source.blocks])
        np.testing.assert_array_equal(rows, data[1])
    array[3, 0] = 9.0
    assert open_source(tmp_path / "rows.zarr").identity != source.identity


def test_zarr_arrays_that_cannot_be_read(tmp_path, monkeypatch):
    folder = tmp_path / "rows.zarr"
    folder.mkdir()
    (folder / "zarr.json").write_text("{}")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "zarr", None)
        with pytest.raises(InvalidInput, match="zarr is missing; pip install zarr"):
            open_source(folder)
    pytest.importorskip("zarr", minversion="3", reason="pip install zarr")
    with pytest.raises(StorageError, match=r"rows\.zarr"):
        open_source(folder)


def test_more_rows_than_the_sample_has(fitted, data, tmp_path, monkeypatch):
    found, files, _ = fitted
    monkeypatch.setattr(sample, "SAMPLED", 100)
    monkeypatch.setattr(sample, "WHOLE_UP_TO", 100)
    shutil.copytree(found.store.folder, tmp_path / "store")
    shutil.rmtree(tmp_path / "store" / found._stored.posterior.name)
    again = classifier_in(tmp_path / "store").fit(data[0], some_labels(data[2]))
    assert 100 <= len(again.result_.has_evidence) <= 125
    shares = shares_in(again.to_parquet(tmp_path / "out"), again.classes_)
    np.testing.assert_allclose(shares, shares_in(files, found.classes_), atol=1e-4)


@pytest.mark.slow
def test_fewer_lists_find_the_share_of_neighbours_that_is_told(data, tmp_path):
    path, features, classes = data
    found = classifier_in(tmp_path / "store", search="approximate", n_eigenpairs=3)
    found.fit(path, some_labels(classes))
    assert (
        found._stored.stages.first.neighbors.record["n_searched"]
        < found._stored.stages.first.neighbors.record["n_lists"]
    )
    starts = found._stored.stages.first.parts.record["starts"]
    near = found._stored.stages.first.neighbors.parts("near", starts).take(
        found._stored.stages.places(np.arange(len(features)))
    )
    row_of = np.concatenate([found._stored.stages.first.parts.load("row", p) for p in range(3)])
    exact = gq.graphs.knn_graph(features, 15).feature_space.neighbors
    hits = np.array([np.isin(row_of[a], b).mean() for a, b in zip(near, exact, strict=True)])
    error = hits.std() / np.sqrt(400)
    assert hits.mean() > 0.98
    assert abs(hits.mean() - found.recall_) < 4 * error


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("n_calls", [2, 4, 5, 9, 40])
def test_an_interrupted_fit_goes_on_to_the_same_bytes(n_calls, fitted, data, tmp_path, monkeypatch):
    found, files, _ = fitted
    run, calls = tasks.Tasks.map, []

    def interrupted(self, function, arguments, phase=""):
        calls.append(function)
        if len(calls) == n_calls:
            run(self, function, arguments[:1], phase)  # some of the tasks end
            raise Interrupted
        return run(self, function, arguments, phase)

    with monkeypatch.context() as patch:
        patch.setattr(tasks.Tasks, "map", interrupted)
        with pytest.raises(Interrupted):
            classifier_in(tmp_path / "store").fit(data[0], some_labels(data[2]))
    name = found._stored.posterior.name  # the labels are not explored again, to save time
    shutil.copytree(found.store.folder / name, tmp_path / "store" / name)
    again = classifier_in(tmp_path / "store").fit(data[0], some_labels(data[2]))
    for a, b in zip(files, again.to_parquet(tmp_path / "out"), strict=True):
        assert a.read_bytes() == b.read_bytes()
    assert not list(again.store.folder.rglob("*scratch*"))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("n_calls", [20, 2, 60])
def test_a_full_disk_is_told_and_nothing_is_half_written(
    n_calls, fitted, data, tmp_path, monkeypatch
):
    _, files, _ = fitted
    calls, save = [], np.save

    def full(file, array):
        calls.append(file)
        if len(calls) >= n_calls:
            file.write(b"the beginning")
            raise OSError(errno.ENOSPC, "No space left on device")
        save(file, array)

    with monkeypatch.context() as patch:
        patch.setattr("graphuq.engine.store.np.save", full)
        with pytest.raises(StorageError, match="No space left on device"):
            classifier_in(tmp_path / "store").fit(data[0], some_labels(data[2]))
    again = classifier_in(tmp_path / "store").fit(data[0], some_labels(data[2]))
    for a, b in zip(files, again.to_parquet(tmp_path / "out"), strict=True):
        assert a.read_bytes() == b.read_bytes()


@pytest.mark.slow
def test_parts_are_gathered_in_several_passes(fitted, data, tmp_path, monkeypatch):
    found, _, _ = fitted
    monkeypatch.setattr(partition, "GATHERED", 4 * 6 * 1000)
    other = classifier_in(tmp_path / "store", n_eigenpairs=3).fit(data[0], some_labels(data[2]))
    for p in range(3):
        features = other._stored.stages.first.parts.load("features", p)
        np.testing.assert_array_equal(
            features, found._stored.stages.first.parts.load("features", p)
        )
        np.testing.assert_array_equal(
            features, data[1][other._stored.stages.first.parts.load("row", p)]
        )


def test_other_labels_use_the_same_graph_and_pairs(fitted, data, monkeypatch, tmp_path):
    found, _, _ = fitted
    shutil.copytree(found.store.folder, tmp_path / "store")
    calls, run = [], tasks.Tasks.map
    monkeypatch.setattr(
        tasks.Tasks, "map", lambda self, f, *more: calls.append(f) or run(self, f, *more)
    )
    other = classifier_in(tmp_path / "store").fit(data[0], some_labels(data[2], seed=5))
    assert calls == []
    assert other._stored.stages.first.pairs.name == found._stored.stages.first.pairs.name
    assert other._stored.posterior.name != found._stored.posterior.name
    again = classifier_in(tmp_path / "store").fit(data[0], some_labels(data[2]))
    assert again._stored.posterior.name == found._stored.posterior.name
    assert len(again.result_.has_evidence) == len(found.result_.has_evidence)


def test_a_changed_file_is_another_input(fitted, data, tmp_path):
    found, _, _ = fitted
    np.save(tmp_path / "rows.npy", data[1] + 1)
    stages = found._stored.stages
    other = Stages(stages.store, open_source(tmp_path / "rows.npy"), stages.options)
    assert other.first.graph.name != found._stored.stages.first.graph.name


def test_empty_parts_and_one_part(tmp_path):
    features, classes = blobs(700, 2, spread=1.2)
    np.save(tmp_path / "rows.npy", features)
    shares = []
    for n_parts in (1, 14):
        store, given = tmp_path / f"store{n_parts}", some_labels(classes)
        found = classifier_in(store, n_parts=n_parts, n_eigenpairs=12)
        found.fit(tmp_path / "rows.npy", given)
        sizes = np.diff(found._stored.stages.first.parts.record["starts"])
        assert (sizes.min() == 0) == (n_parts == 14)
        shares.append(shares_in(found.to_parquet(tmp_path / f"out{n_parts}"), found.classes_))
    np.testing.assert_allclose(*shares, atol=5e-3)


def test_several_components_and_an_isolated_row(tmp_path):
    features, classes = blobs(900, 2, spread=1.2)
    apart = np.random.default_rng(3).normal(size=(200, 6)) + 1000
    features = np.concatenate([features, apart, np.full((1, 6), 300.0)]).astype(np.float32)
    np.save(tmp_path / "rows.npy", features)
    given, y = some_labels(classes), np.full(len(features), -1)
    y[list(given)] = list(given.values())
    with pytest.warns(DisconnectedGraphWarning, match=r"3 connected components .*1 isolated"):
        found = classifier_in(tmp_path / "store").fit(tmp_path / "rows.npy", given)
    with pytest.warns(DisconnectedGraphWarning):
        memory = in_memory().fit(features, y)
    assert memory.graph_.n_components == found.n_components_ == 3
    files = found.to_parquet(tmp_path / "out")
    evidence = read(files)["has_evidence"].to_numpy()
    assert (evidence == memory.result_.has_evidence).all()
    assert evidence.sum() == 900
    shares = shares_in(files, found.classes_)
    np.testing.assert_allclose(shares[~evidence], 0.5, atol=1e-4)
    np.testing.assert_allclose(shares, memory.label_distributions_, atol=5e-3)


@pytest.mark.parametrize("n_copies", [15, 60])
def test_equal_rows_count_once_as_in_memory(n_copies, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900 // n_copies, 3)).astype(np.float32)
    group = rng.permutation(np.repeat(np.arange(len(rows)), n_copies))
    features, given = rows[group], {row: int(rows[group[row], 0] > 0) for row in range(12)}
    np.save(tmp_path / "rows.npy", features)
    killed, calls = equal_rows._replace_part, []

    def die(*arguments):
        killed(*arguments)
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(equal_rows, "_replace_part", die)
    with pytest.raises(KeyboardInterrupt):
        classifier_in(tmp_path / "store").fit(tmp_path / "rows.npy", given)
    monkeypatch.setattr(equal_rows, "_replace_part", killed)
    found = classifier_in(tmp_path / "store").fit(tmp_path / "rows.npy", given)
    graph = gq.graphs.knn_graph(features, 15, gq.graphs.SelfTuning(4.0))
    root = sparse.diags_array(1 / np.sqrt(graph.degrees))
    assert found.n_components_ == graph.n_components == 1
    assert abs(matrix_of(found) - root @ graph.weights @ root).max() < 1e-5
    assert found._stored.stages.first.described()["distinct"]
    folder = found.store.folder / found._stored.stages.first.neighbors.name
    assert not any(path.is_dir() for path in folder.iterdir())


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (np.full((100, 3), np.nan), {0: 0, 1: 1}, "source: row 0 has a feature that is NaN"),
        (np.zeros((10, 3)), {0: 0, 1: 1}, "X: 10 rows, with 15 neighbours"),
        (np.zeros(100), {0: 0, 1: 1}, "source: 'rows.npy' has shape"),
        (np.full((100, 3), "x"), {0: 0, 1: 1}, "source: 'rows.npy' holds <U1"),
        (np.zeros((100, 3)), {0: 0, 1: 0}, "y: labels of one class only"),
        (np.zeros((100, 3)), {0: 0, 100: 1}, r"y: row \[100\] of a table of 100"),
        (np.zeros((100, 3)), {0: 0, "a": 1}, "y: a row that is no integer"),
        (np.zeros((100, 3)), [0, 1], "y: 2 values; the table has 100 rows"),
        (np.zeros((100, 3)), np.eye(100, 3), "y: a matrix beside a store"),
        (np.zeros((100, 3)), "label", "columns: .* whose columns have no names"),
    ],
)
def test_bad_input_is_refused(rows, labels, message, tmp_path, unchecked_types):
    np.save(tmp_path / "rows.npy", rows)
    with pytest.raises(InvalidInput, match=message):
        in_store(tmp_path / "store").fit(tmp_path / "rows.npy", labels)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0], "b": ["x"]}, "column 'b' of 't.parquet' holds string"),
        ({"a": [1.0]}, "no column 'label'"),
        ({"label": ["x"]}, "no columns of features"),
    ],
)
def test_bad_columns_are_refused(columns, message, tmp_path):
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(InvalidInput, match=message):
        open_source(tmp_path / "t.parquet", ["label"] if "b" not in columns else [])


def test_bad_options_are_refused(tmp_path):
    for option, message in (
        ({"search": "quick"}, "search: 'quick' is unknown"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"tolerance": 2.0}, "tolerance"),
        ({"client": "tcp://1"}, "client: a str"),
        ({"graph": "complete"}, "graph: 'complete' beside a store, where it can only be 'knn'"),
        ({"metric": "cosine"}, "metric: 'cosine' beside a store"),
        ({"class_proportions": [0.5, 0.5]}, "class_proportions"),
        ({"n_eigenpairs": "all"}, "n_eigenpairs"),
        ({"random_state": None}, "random_state"),
        ({"model": "Fixed(likelihood=GinzburgLandau())"}, "model: .* needs all rows at a time"),
        ({"inference": gq.inference.MCMC(checkpoint="x")}, "inference: .* beside a store"),
    ):
        with pytest.raises(InvalidInput, match=message):
            in_store(tmp_path, **option).fit(tmp_path, "y")
    with pytest.raises(NotFittedError):
        in_store(tmp_path).to_parquet(tmp_path)
    with pytest.raises(InvalidInput, match="store: not given; give a folder"):
        gq.GraphClassifier().to_parquet(tmp_path)
    with pytest.raises(InvalidInput, match=r"holds no file \*\.parquet"):
        in_store(tmp_path / "store").fit(tmp_path, "y")
    with pytest.raises(StorageError, match="does not exist"):
        in_store(tmp_path / "store").fit(tmp_path / "none.npy", {})


def test_memory_and_disk_are_checked_before_the_work(data, tmp_path, monkeypatch):
    path, _, classes = data
    few = in_store(tmp_path / "store", memory=1 << 28)
    with pytest.raises(InvalidInput, match=r"memory: .* GB are needed, and 0\.3 GB are free"):
        few.fit(path, some_labels(classes))
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr("graphuq.engine.resources.shutil.disk_usage", lambda _: usage)
    with pytest.raises(InvalidInput, match=r"store: .* GB of disk are needed"):
        in_store(tmp_path / "store").fit(path, some_labels(classes))
    assert not list((tmp_path / "store").iterdir())


def test_less_memory_means_more_parts():
    from graphuq.engine.resources import estimate

    many = estimate(10_000_000, 50, 15, 62, 2, memory=2 << 30)
    few = estimate(10_000_000, 50, 15, 62, 2, memory=30 << 30)
    assert many.n_parts > few.n_parts
    assert many.memory < few.memory < 30 << 30
    assert many.memory < 2 << 30


def test_a_damaged_file_is_told(fitted, data, tmp_path):
    found, _, _ = fitted
    shutil.copytree(found.store.folder, tmp_path / "store")
    (tmp_path / "store" / found._stored.stages.first.pairs.name / "vectors-00001.npy").write_bytes(
        b"no array"
    )
    with pytest.raises(StorageError, match=r"cannot read .*vectors-00001.npy"):
        classifier_in(tmp_path / "store").fit(data[0], some_labels(data[2], seed=6))


def test_pairs_that_do_not_converge_are_refused(fitted, data, tmp_path, monkeypatch):
    found, _, _ = fitted
    shutil.copytree(found.store.folder, tmp_path / "store")
    monkeypatch.setattr(pairs, "MAX_PASSES", 1)
    monkeypatch.setattr(pairs, "DENSE_AT_MOST", 0)
    with pytest.raises(InvalidInput, match="did not converge in 1 passes"):
        classifier_in(tmp_path / "store", tolerance=1e-5).fit(data[0], some_labels(data[2]))
    with pytest.raises(InvalidInput, match="n_eigenpairs: 2000 pairs of 2500 rows"):
        classifier_in(tmp_path / "store", n_eigenpairs=2000).fit(data[0], some_labels(data[2]))


@pytest.mark.slow
def test_a_number_of_pairs_that_nobody_gave_is_never_blamed(data, tmp_path, monkeypatch):
    """Fewer pairs, or a dense factorisation, and the settings say so."""
    monkeypatch.setattr(pairs, "MAX_PASSES", 3)
    monkeypatch.setattr(pairs, "DENSE_AT_MOST", 0)
    wanted = {"n_eigenpairs": "auto", "tolerance": 1e-3}
    with pytest.warns(NotConvergedWarning, match="149 eigenpairs did not converge in 3 passes, so"):
        found = classifier_in(tmp_path / "few", **wanted).fit(data[0], some_labels(data[2]))
    settings = json.loads(found.to_parquet(tmp_path / "out")[-1].read_text())
    n_found = settings["n_eigenpairs"] - 1
    assert 0 < n_found < 149
    assert settings["solver"] == f"filtered subspace, {n_found} of 149 pairs converged"
    monkeypatch.setattr(pairs, "DENSE_AT_MOST", 3_000)
    dense = classifier_in(tmp_path / "dense", **wanted).fit(data[0], some_labels(data[2]))
    assert dense._stored.stages.first.described()["solver"].startswith(
        "dense, since pairs did not converge"
    )
    assert dense._stored.stages.first.described()["n_eigenpairs"] == 150
    few, many = found._stored.stages.first.pairs.record, dense._stored.stages.first.pairs.record
    np.testing.assert_allclose(
        few["eigenvalues"], many["eigenvalues"][:n_found], rtol=1e-3, atol=1e-5
    )


def kinds_of_tables():
    """Return small tables of many kinds, with two classes or more."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(400, 4))
    constant = normal.copy()
    constant[:, [1, 3]] = 3.0, 0.0
    far = np.concatenate([normal[:, :3], 1000 + 1e3 * np.arange(20)[:, None] * np.ones(3)])
    moons = gq.datasets.two_moons(300, n_features=2, noise_std=0.05).features
    tables = {
        "moons": moons,
        "one column": rng.uniform(size=(300, 1)),
        "constant columns": constant,
        "duplicates": np.repeat(normal[:40], 10, axis=0),
        "components": np.concatenate([normal[:80] + 50 * k for k in range(5)]),
        "small integers": rng.integers(0, 3, size=(500, 4)),
        "equal rows": np.ones((200, 2)),
        "rows far from all others": far,
        "heavy tails": np.exp(3 * normal),
        "far from the origin": 1e5 + normal,
        "tiny": 1e-6 * normal,
        "more columns than rows": rng.normal(size=(200, 300)),
    }
    return [pytest.param(rows, id=name) for name, rows in tables.items()]


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("rows", kinds_of_tables())
@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
def test_small_tables_of_many_kinds_with_all_defaults(rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    given = {row: int(row % 4 < 2) for row in range(0, len(rows), 11)}
    files = in_store(tmp_path / "store").fit(tmp_path / "rows.npy", given)
    shares = shares_in(files.to_parquet(tmp_path / "out"), [0, 1])
    assert shares.shape == (len(rows), 2)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_eigenvalues_without_a_gap_converge_in_a_few_passes(tmp_path, monkeypatch):
    """Those of noise begin beyond the first window, which must then move beyond them."""
    monkeypatch.setattr(pairs, "DENSE_BELOW", 0)
    monkeypatch.setattr(pairs, "DENSE_AT_MOST", 0)
    features = np.random.default_rng(0).normal(size=(1600, 30))
    np.save(tmp_path / "rows.npy", features)
    given = {row: int(features[row, 0] > 0) for row in range(20)}
    options = {"search": "exact", "n_eigenpairs": 100, "model": "largest-evidence"}
    found = in_store(tmp_path / "store", **options).fit(tmp_path / "rows.npy", given)
    record = found._stored.stages.first.pairs.record
    graph = gq.graphs.knn_graph(features, 15, gq.graphs.SelfTuning(4.0))
    expected = gq.laplacian_spectrum(graph, n_eigenpairs=100, solver="dense").eigenvalues
    assert expected[-1] > pairs.FIRST_LOW
    assert record["n_passes"] <= 12
    np.testing.assert_allclose(record["eigenvalues"], expected[1:], atol=1e-3)


def test_a_small_table_without_clusters(tmp_path):
    """Eigenvalues of noise are close to each other, and all pairs of few rows are computed."""
    features = np.random.default_rng(0).normal(size=(300, 5))
    np.save(tmp_path / "rows.npy", features)
    given = {row: int(features[row, 0] > 0) for row in range(20)}
    found = in_store(tmp_path / "store", search="exact", n_parts=2)
    found.fit(tmp_path / "rows.npy", given)
    record, parts = found._stored.stages.first.pairs.record, found._stored.stages.first.pairs
    assert (len(record["eigenvalues"]), record["solver"]) == (149, "dense")
    assert max(record["residuals"]) < 1e-6
    memory = gq.graphs.knn_graph(features, 15, gq.graphs.SelfTuning(4.0))
    spectrum = gq.laplacian_spectrum(memory, n_eigenpairs=150)
    np.testing.assert_allclose(record["eigenvalues"], spectrum.eigenvalues[1:], atol=1e-5)
    place = found._stored.stages.places(np.arange(300))
    rows = np.asarray(
        parts.parts("vectors", found._stored.stages.first.parts.record["starts"]).take(place)
    )
    np.testing.assert_allclose(
        rows @ rows.T, spectrum.eigenvectors[:, 1:] @ spectrum.eigenvectors[:, 1:].T, atol=1e-3
    )


def test_bisection_puts_near_centres_together():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(256, 3))
    order = partition.bisection(centres, np.ones(256, np.int64))
    assert sorted(order) == list(range(256))
    step = np.linalg.norm(np.diff(centres[order], axis=0), axis=1).mean()
    shuffled = np.linalg.norm(np.diff(centres, axis=0), axis=1).mean()
    assert step < 0.6 * shuffled


def test_parts_have_similar_sizes():
    lists = np.append(0, np.cumsum(np.full(100, 10)))
    assert partition.part_starts(lists, 4).tolist() == [0, 250, 500, 750, 1000]
    starts = partition.part_starts(np.array([0, 900, 910, 1000]), 5)
    assert starts[0] == 0
    assert starts[-1] == 1000
    assert (np.diff(starts) >= 0).all()


def test_ritz_pairs_without_the_null_vector():
    rng = np.random.default_rng(0)
    null = np.linalg.qr(rng.normal(size=(40, 1)))[0]
    space = np.linalg.qr(np.hstack([null, rng.normal(size=(40, 39))]))[0][:, 1:]
    matrix = space @ np.diag(np.linspace(0.1, 1.9, 39)) @ space.T
    y = rng.normal(size=(40, 6)) + 3 * null
    along, image = null.T @ y, matrix @ y
    gram = y.T @ y - along.T @ along
    values, u, residuals = pairs.ritz_pairs(gram, y.T @ image, image.T @ image)
    x = y @ u - null @ (along @ u)
    np.testing.assert_allclose(x.T @ x, np.eye(6), atol=1e-10)
    np.testing.assert_allclose(x.T @ matrix @ x, np.diag(values), atol=1e-10)
    left = np.linalg.norm(matrix @ x - x * values, axis=0)
    np.testing.assert_allclose(left, residuals, rtol=1e-6)


def test_all_lists_give_the_nearest_rows():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 5)).astype(np.float32)
    starts, index = np.array([0, 40, 40, 120]), np.full((120, 4), -1)
    centres = rng.normal(size=(3, 5)).astype(np.float32)
    near = np.tile(np.arange(3), (3, 1))
    list_search.search_lists(rows, starts, centres, near, rows, starts, centres, 3, index)
    distance = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    assert (index == np.argsort(distance, axis=1)[:, :4]).all()


def test_row_parts(tmp_path):
    stage = Stage(str(tmp_path))
    array = np.arange(20.0).reshape(10, 2)
    for p, (a, b) in enumerate([(0, 4), (4, 4), (4, 10)]):
        stage.save("x", p, array[a:b])
    parts = stage.parts("x", [0, 4, 4, 10])
    assert isinstance(parts, RowParts)
    rows = np.array([9, 0, 3, 4, 4])
    np.testing.assert_array_equal(parts.take(rows), array[rows])
    assert parts.take(np.arange(0)).shape == (0, 2)
    for begin, end in ((0, 10), (2, 6), (4, 5), (3, 3)):
        np.testing.assert_array_equal(parts.range(begin, end), array[begin:end])


def test_unused_names_are_gone(fitted):
    found, _, _ = fitted
    kept = {
        path.name.split("-")[0]
        for path in (found.store.folder / found._stored.stages.first.graph.name).iterdir()
    }
    assert kept == {
        "values", "columns", "pointer", "halo", "degree", "component", "profile", "done.json"
    }  # fmt: skip
    assert not found._stored.stages.first.rows.is_done
    assert neighbors.MIN_RECALL > 0.99
    assert settings.DEFAULT_TOLERANCE == 1e-2


def test_an_index_of_pandas_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": np.arange(4.0), "b": np.arange(4.0)}, index=[3, 1, 0, 2])
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidInput, match="is an index of pandas and no feature"):
        open_source(tmp_path / "t.parquet")
    assert open_source(tmp_path / "t.parquet", ["__index_level_0__"]).names == ["a", "b"]
