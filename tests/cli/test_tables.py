"""Tables of any size: mapped, read and written some rows at a time."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA

from graphuq.cli import tables
from graphuq.cli.app import run
from graphuq.cli.label_files import read_labels
from graphuq.cli.preprocessing import fit_preprocessing
from graphuq.cli.tables import read_table
from graphuq.errors import InvalidInput, StorageError
from graphuq.labelling.layouts import layout_of
from graphuq.utils.csv_files import write_csv

RNG = np.random.default_rng(0)


def test_a_mapped_file_stays_on_disk(tmp_path):
    features = RNG.normal(size=(200, 5)).astype(np.float32)
    np.save(tmp_path / "x.npy", features)
    table = read_table(tmp_path / "x.npy")
    assert isinstance(table.features.base, np.memmap)
    np.testing.assert_array_equal(table.features, features)
    pd.DataFrame({"id": [3, 150], "label": ["a", "b"]}).to_csv(tmp_path / "l.csv", index=False)
    given = read_labels(tmp_path / "l.csv", table.ids)
    assert (given[3], given[150], (given == "").sum()) == ("a", "b", 198)
    with pytest.raises(InvalidInput, match="holds only features; give --labels"):
        read_table(tmp_path / "x.npy", "label")
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:500])
    with pytest.raises(StorageError, match="not a readable npy file"):
        read_table(tmp_path / "x.npy")


@pytest.mark.parametrize("spilled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.int64])
def test_parquet_in_batches(dtype, spilled, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BATCH_ROWS", 64)
    monkeypatch.setattr(tables, "SPILLED_BYTES", 0 if spilled else 1 << 30)
    frame = pd.DataFrame((100 * RNG.normal(size=(300, 3))).astype(dtype), columns=list("abc"))
    frame["label"] = np.where(np.arange(300) < 9, "yes", None)
    frame.to_parquet(tmp_path / "x.parquet")
    table = read_table(tmp_path / "x.parquet", "label")
    single = dtype in (np.float32, np.int16)
    assert table.features.dtype == (np.float32 if single else np.float64)
    assert isinstance(table.features.base, np.memmap) == spilled
    np.testing.assert_array_equal(table.features, frame[list("abc")])
    assert table.feature_names == ["a", "b", "c"]
    assert (table.labels == "yes").sum() == 9


def test_parquet_with_gaps_says_where(tmp_path):
    frame = pd.DataFrame({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 3.0]})
    frame.to_parquet(tmp_path / "x.parquet")
    words = "'a' has 1 empty cell, the first in row 1; fill them, or add --impute or --drop a"
    with pytest.raises(InvalidInput, match=words):
        read_table(tmp_path / "x.parquet")


def test_what_is_written_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BATCH_ROWS", 40)
    frame = pd.DataFrame(
        {
            "id": [f"row{i}" for i in range(100)],
            'odd, "name"': RNG.normal(size=100) * 10.0 ** RNG.integers(-8, 9, 100),
            "sure": RNG.uniform(size=100) < 0.5,
            "rank": np.arange(100),
        }
    )
    frame.loc[[3, 5], "id"] = ["a,b", 'with "quotes"']
    frame.iloc[7:9, 1] = [np.nan, 0.0]
    write_csv(frame, tmp_path / "x.csv")
    again = pd.read_csv(tmp_path / "x.csv")
    assert again.columns.tolist() == frame.columns.tolist()
    for name in ("id", "sure", "rank"):
        assert again[name].tolist() == frame[name].tolist()
    np.testing.assert_allclose(again.iloc[:, 1], frame.iloc[:, 1], rtol=5.1e-6)
    digits = (tmp_path / "x.csv").read_text().splitlines()[60].split(",")[1]
    assert len(digits.lstrip("-").replace(".", "").lstrip("0").split("e")[0]) <= 6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_components_by_blocks_are_scikit_learns(dtype):
    features = (RNG.normal(size=(500, 6)) @ RNG.normal(size=(6, 6)) + 50).astype(dtype)
    mapped = fit_preprocessing(features, "none", 3)(features)
    truth = PCA(3, svd_solver="full").fit_transform(features.astype(float))
    assert mapped.dtype == dtype
    signs = np.sign((mapped * truth).sum(axis=0))
    np.testing.assert_allclose(mapped * signs, truth, atol=1e-3 if dtype == np.float32 else 1e-10)
    scaled = fit_preprocessing(features, "standard", None)(features)
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-5)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-4)


@pytest.mark.parametrize("kind", ["label", "id", "store", "prodigy", "label-studio"])
def test_a_class_that_ends_with_a_zero_byte_is_no_other_class(kind, tmp_path, capsys):
    """NumPy's arrays of texts drop the byte, and "a" and "a\0" became one class."""
    texts = ["a", "a\0", "b"] * 10
    frame = pd.DataFrame(RNG.normal(size=(30, 3)), columns=list("xyz"))
    more = []
    if kind in ("label", "store"):
        frame.assign(kind=texts).to_parquet(tmp_path / "t.parquet")
        more = ["--label-column", "kind"]
        more += ["--store", str(tmp_path / "store")] if kind == "store" else []
    elif kind == "id":
        names = [*map(str, range(29)), "1\0"]
        frame.assign(kind=["a", "b"] * 15, name=names).to_parquet(tmp_path / "t.parquet")
        more = ["--label-column", "kind", "--id-column", "name"]
    if more:
        file = next(tmp_path.glob("t.*"))
        assert run(["classify", str(file), *more, "-o", str(tmp_path / "out")]) == 2
        assert "a name that ends with a zero byte" in capsys.readouterr().err
        return
    result = [{"value": {"choices": ["a\0"]}, "type": "choices", "from_name": "label"}]
    example = {"text": "x", "accept": ["a\0"], "answer": "accept"}
    task = {"id": 1, "data": {"text": "x"}, "annotations": [{"id": 1, "result": result}]}
    path = tmp_path / ("t.jsonl" if kind == "prodigy" else "t.json")
    path.write_text(json.dumps(example if kind == "prodigy" else [task]))
    with pytest.raises(InvalidInput, match="zero byte"):
        layout_of(path).read(path)
