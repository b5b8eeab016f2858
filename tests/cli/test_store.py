"""``graphuq classify --store``: tables in a store from the command line."""

import json
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from graphuq.cli.app import run
from mixture import mixture


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of two Parquet files with labels and true classes."""
    features, classes = mixture(3000, width=12, n_classes=2)
    rng = np.random.default_rng(0)
    labelled = [rng.choice(np.flatnonzero(classes == k), 15, replace=False) for k in range(2)]
    label = np.full(3000, None, object)
    label[np.concatenate(labelled)] = classes[np.concatenate(labelled)].astype(str)
    columns = {f"x{k}": features[:, k] for k in range(12)}
    table = pa.table({**columns, "y": pa.array(label.tolist()), "truth": classes.astype(str)})
    path = tmp_path_factory.mktemp("in") / "rows"
    path.mkdir()
    for k in range(2):
        parquet.write_table(table.slice(1500 * k, 1500), path / f"{k}.parquet")
    ids = np.sort(np.concatenate(labelled))
    lines = ["id,label", *(f"{row},{label[row]}" for row in ids)]
    (path.parent / "labels.csv").write_text("\n".join(lines) + "\n")
    return path


def classify(folder, store, output, *more):
    start = ["classify", str(folder), "--store", str(store), "-o", str(output)]
    return run([*start, "--truth-column", "truth", "--n-eigenpairs", "20", *more])


def test_a_folder_of_parquet_files(folder, tmp_path, capsys):
    assert classify(folder, tmp_path / "s", tmp_path / "o", "--label-column", "y") == 0
    printed = capsys.readouterr().out
    assert "It needs about" in printed
    accuracy = float(printed.split("Accuracy: ")[1].split()[0].rstrip("."))
    table = pa.concat_tables(
        [parquet.read_table(tmp_path / "o" / f"rows-0000{k}.parquet") for k in range(2)]
    )
    truth = pa.concat_tables([parquet.read_table(folder / f"{k}.parquet") for k in range(2)])
    right = np.array(table["label"].to_pylist()) == np.array(truth["truth"].to_pylist())
    assert accuracy == pytest.approx(right.mean(), abs=1e-4)
    assert accuracy > 0.8
    assert (table["id"].to_numpy() == np.arange(3000)).all()
    settings = json.loads((tmp_path / "o" / "settings.json").read_text())
    assert settings["classes"] == ["0", "1"]
    assert classify(folder, tmp_path / "s", tmp_path / "o", "--label-column", "y", "--json") == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert "It needs about" in printed.err
    assert found["accuracy"] == pytest.approx(right.mean())
    assert found["counts"] == settings["counts"]
    assert (found["n_rows"], found["n_labelled"]) == (3000, 30)
    assert set(found["files"]) == {str(path) for path in (tmp_path / "o").iterdir()}
    drop = ["--labels", str(folder.parent / "labels.csv"), "--drop", "y", "--quiet"]
    assert classify(folder, tmp_path / "s", tmp_path / "o2", *drop) == 0
    again = pa.concat_tables(
        [parquet.read_table(tmp_path / "o2" / f"rows-0000{k}.parquet") for k in range(2)]
    )
    assert again.equals(table)
    lines = (folder.parent / "labels.csv").read_text().replace(",", "|")
    (tmp_path / "l.csv").write_text(lines)
    drop[1:2] = [str(tmp_path / "l.csv"), "--read-labels", "separator=|"]
    assert classify(folder, tmp_path / "s", tmp_path / "o3", *drop) == 0
    third = [parquet.read_table(tmp_path / "o3" / f"rows-0000{k}.parquet") for k in range(2)]
    assert pa.concat_tables(third).equals(table)
    assert len(list((tmp_path / "s").glob("pairs-*"))) == 2  # and of whitened rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--store", "s", "--pca", "3"], "--pca: 3 beside --store; leave it out"),
        (["--store", "s", "--n-samples", "5"], "--n-samples: 5 beside --store"),
        (["--store", "s", "--scaling", "standard"], "--scaling: standard beside --store"),
        (["--store", "s", "--n-eigenpairs", "all"], "n_eigenpairs: 'all'"),
        (["--store", "s", "--workers", "0"], "workers"),
        (["--store", "s", "--workers", "1", "--scheduler", "tcp://a:1"], "give one of the two"),
        (["--workers", "2"], "--workers: 2 without --store; add --store FOLDER"),
        (["--scheduler", "tcp://a:1"], "--scheduler: tcp://a:1 without --store"),
        ([], "is a folder; give a file, or add --store FOLDER"),
    ],
)
def test_options_without_effect_are_refused(
    options, message, folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    code = run(["classify", str(folder), "--label-column", "y", "--drop", "truth", *options])
    assert code == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("is_remote", [False, True])
def test_workers_of_this_command_and_of_a_scheduler(is_remote, folder, tmp_path):
    pytest.importorskip("distributed", reason="pip install graphuq[dask], to test clusters")
    more = ["--label-column", "y", "--quiet"]
    assert classify(folder, tmp_path / "s", tmp_path / "o", *more) == 0
    with started_by_hand(tmp_path) if is_remote else nullcontext() as address:
        others = ["--scheduler", address] if is_remote else ["--workers", "2"]
        assert classify(folder, tmp_path / "t", tmp_path / "p", *more, *others) == 0
    for file in (tmp_path / "o").iterdir():
        assert file.read_bytes() == (tmp_path / "p" / file.name).read_bytes()


@contextmanager
def started_by_hand(folder):
    """Yield the address of a scheduler with two workers, each a process of its own."""
    here = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    commands = [["scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard"]]
    commands += 2 * [["worker", "--nthreads", "1", "--memory-limit", "0", "--no-dashboard"]]
    processes = []
    try:
        for command in commands:
            start = [sys.executable, "-m", "dask", *command, "--scheduler-file", str(here)]
            processes.append(subprocess.Popen(start, **quiet, cwd=folder))
            until = time.monotonic() + 30
            while not here.exists() and time.monotonic() < until:
                time.sleep(0.05)
        address = json.loads(here.read_text())["address"]
        with import_module("distributed").Client(address) as client:
            client.wait_for_workers(2, timeout=30)  # their number decides that of the parts
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()
