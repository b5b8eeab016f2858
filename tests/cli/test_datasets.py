"""``graphuq datasets`` keeps and labels the rows that its options name."""

import pandas as pd

from graphuq.cli.app import run


def test_rows_of_each_class_without_naming_the_classes(tmp_path, capsys):
    path = tmp_path / "digits.csv"
    assert run(["datasets", "digits", "--csv", str(path), "--n-each", "3"]) == 0
    assert (pd.read_csv(path)["class"].value_counts() == 3).all()
    assert "30 rows" in capsys.readouterr().out


def test_an_error_names_what_was_given(capsys):
    assert run(["datasets", "newsgroups"]) == 2
    assert "NAME: newsgroups has 40,000 columns" in capsys.readouterr().err
