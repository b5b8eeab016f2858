"""Files of JSON lines as tables: types, missing cells, and lines that are damaged."""

import numpy as np
import pandas as pd
import pytest

from graphuq.errors import StorageError
from graphuq.results.formats import format_of

LINES = '\ufeff{"x": 1, "name": "a\\u00e4"}\n\n{"name": null, "x": 2.5, "more": [1, {"b": 2}]}\n'


def test_names_are_columns_and_absent_ones_are_missing(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(LINES, encoding="utf-8")
    table = format_of(path).read(path)
    assert table.columns.tolist() == ["x", "name", "more"]
    assert table["x"].tolist() == [1.0, 2.5]
    assert table["name"].isna().tolist() == [False, True]
    assert table["more"][1] == '[1, {"b": 2}]'


def test_a_table_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "x.jsonl"
    table = pd.DataFrame(
        {
            "n": [1, 2, 3],
            "x": [0.1, np.nan, -np.inf],
            "text": ['"\n', None, "=1"],
            "flag": [True, False, True],
            "day": pd.to_datetime(["2026-01-02", None, "2026-01-03"]),
        }
    )
    format_of(path).write(table, path)
    lines = path.read_text().splitlines()
    assert lines[1] == '{"n": 2, "x": null, "text": null, "flag": false, "day": null}'
    again = format_of(path).read(path)
    assert again["n"].tolist() == [1, 2, 3]
    assert again["x"][0] == 0.1
    assert again["x"][1:].isna().all()
    assert again["text"][0] == '"\n'
    assert again["flag"].tolist() == [True, False, True]
    assert again["day"][0] == "2026-01-02 00:00:00"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": \n', "line 2 of .* is no JSON"),
        ('{"a": 1}\n[1]\n', "line 2 of .* is no object"),
        ("\n \n", "has no line"),
        ("[" * 100_000, "line 1 of .* is no JSON"),
    ],
)
def test_what_is_no_object_is_refused(tmp_path, text, message):
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(StorageError, match=message):
        format_of(path).read(path)
