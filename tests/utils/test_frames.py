import os

import numpy as np
import pandas as pd
import pytest

import graphuq as gq
from graphuq.utils.frames import made_frame

NAMES = [os.fsdecode(b"\xff.png"), "plain.png"]  # the first is no Unicode


@pytest.mark.parametrize("names", [NAMES, NAMES[1:] * 2])
def test_texts_of_any_bytes_are_kept(names):
    table = made_frame({"id": np.array(names, dtype=object), "p": np.array([0.25, 1.0])})
    assert table["id"].tolist() == names
    assert table["p"].tolist() == [0.25, 1.0]
    assert table["p"].dtype == float


def test_a_table_of_names_of_any_bytes_is_written(tmp_path):
    columns = {"id": np.array(NAMES, dtype=object), "given": np.array([None, "a"], dtype=object)}
    gq.results.write_table(made_frame(columns), tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_bytes().splitlines()[1:] == [b"\xff.png,", b"plain.png,a"]
    assert pd.read_csv(tmp_path / "table.csv", encoding="latin-1")["id"][1] == "plain.png"
    gq.results.write_table(made_frame(columns), tmp_path / "table.jsonl")
    assert (tmp_path / "table.jsonl").read_bytes().startswith(b'{"id": "\xff.png"')
    with pytest.raises(gq.errors.StorageError, match="no Unicode"):
        gq.results.write_table(made_frame(columns), tmp_path / "table.parquet")
    assert not (tmp_path / "table.parquet").exists()
