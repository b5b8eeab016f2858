"""No command writes over a file that it reads."""

import os

import numpy as np
import pandas as pd
import pytest

from graphuq.cli.app import run

N = 60


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Return a table in a folder of results, and other files of the commands."""
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=(N, 2)) + 2 * (np.arange(N) % 2)[:, None]
    frame = pd.DataFrame({"id": np.arange(N), "x": x[:, 0], "y": x[:, 1]})
    frame["label"] = np.where(np.arange(N) < 10, np.where(np.arange(N) % 2, "b", "a"), "")
    frame["number"] = np.where(np.arange(N) < 10, "1.5", "")
    (tmp_path / "out").mkdir()
    for name in ("out/predictions.csv", "out/report.html", "table.csv", "out/labels.csv"):
        frame.to_csv(name, index=False)
    frame.to_parquet("out/predictions.parquet")
    frame.drop(columns="number").to_parquet("out/rows-00000.parquet")
    os.link("table.csv", "out/search.csv")
    frame.to_csv("links.csv", index=False)
    (tmp_path / "link.csv").symlink_to("out/predictions.csv")
    return tmp_path


LABEL = ["--label-column", "label"]
COMMANDS = {
    "table": ["classify", "out/predictions.csv", *LABEL, "-o", "out"],
    "table, other format": ["classify", "out/predictions.parquet", *LABEL, "-o", "out"],
    "table behind a symbolic link": ["classify", "link.csv", *LABEL, "-o", "out"],
    "table with a second name": ["classify", "table.csv", *LABEL, "-o", "out"],
    "table that is not named so": ["classify", "out/../out/predictions.csv", *LABEL, "-o", "out/"],
    "labels": ["classify", "out/labels.csv", "--labels", "out/predictions.csv", "-o", "out"],
    "edges": ["classify", "table.csv", *LABEL, "--graph", "out/predictions.csv", "-o", "out"],
    "one of several lists of edges": [
        "classify",
        "links.csv",
        *LABEL,
        "--graph",
        "links.csv,out/predictions.csv",
        "-o",
        "out",
    ],
    "blocks": ["classify", "out/rows-00000.parquet", *LABEL, "--store", "s", "-o", "out"],
    "folder of blocks": ["classify", "out", *LABEL, "--store", "s", "-o", "out"],
    "numbers": ["regress", "out/predictions.csv", "--target-column", "number", "-o", "out"],
    "items": ["label", "out/predictions.csv", *LABEL, "--no-browser", "-o", "out"],
    "labels of items": ["label", "table.csv", "--labels", "out/labels.csv", "-o", "out"],
    "new rows": ["predict", "out/posterior.nc", "table.csv", "-o", "table.csv"],
    "model": ["predict", "out/posterior.nc", "table.csv", "-o", "out/posterior.nc"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_it_is_refused_before_any_work(name, files, capsys):
    (files / "out" / "posterior.nc").write_bytes(b"a model")
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    assert run(COMMANDS[name]) == 2
    message = capsys.readouterr().err
    assert "--output" in message
    assert "would replace" in message
    after = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    assert {path: after[path] for path in before} == before


def test_other_files_of_the_folder_may_be_read(files):
    (files / "out" / "search.csv").unlink()
    (files / "table.csv").rename(files / "out" / "table.csv")
    columns = [*LABEL, "--id-column", "id", "--drop", "number"]
    assert run(["classify", "out/table.csv", *columns, "-o", "out", "--quiet"]) == 0
    assert len(pd.read_csv("out/predictions.csv")) == N
