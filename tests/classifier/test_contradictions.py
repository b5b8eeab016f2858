"""Rows with equal features and different labels get a word, unless that is a table's noise."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.cli.app import run
from graphuq.errors import GraphuqWarning

QUICK = {"model": "fixed", "inference": "expectation-propagation"}


def measured(n_rows, seed=0):
    """Return rows of two classes, of which rows 2 and 5 are equal and their classes are not."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n_rows) % 2
    rows = rng.normal(size=(n_rows, 3)) + 3 * classes[:, None]
    rows[5] = rows[2]
    return rows, np.where(np.arange(n_rows) < 40, classes, -1)


def said(fit):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", GraphuqWarning)
        fit()
    return [str(one.message) for one in found if "another label" in str(one.message)]


@pytest.mark.parametrize("n_rows", [8, 60, 1200])
@pytest.mark.parametrize("kind", ["array", "texts", "sparse", "store"])
def test_two_rows_are_named(n_rows, kind, tmp_path):
    if kind == "store" and n_rows == 8:
        n_rows = 30  # a store needs more rows than neighbours
    X, y = measured(n_rows)
    if kind == "texts":
        y = np.array(["", "a", "b"])[y + 1]
    if kind == "sparse":
        X = sparse.csr_array(X)
    options = {**QUICK, "store": tmp_path} if kind == "store" else QUICK
    (word,) = said(lambda: gq.GraphClassifier(**options).fit(X, y))
    assert word == (
        "y: 2 labelled rows have the features of a row with another label, such as rows 2 and 5; "
        "correct one of the labels, or add a feature that tells such rows apart"
    )


def test_two_people_who_labelled_the_same_rows_are_named():
    """Every row is there twice, yet a measured row is not equal to another by chance."""
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(120) // 2 % 2
    y[7] = 1 - y[7]
    (word,) = said(lambda: gq.GraphClassifier(**QUICK).fit(np.repeat(X, 2, axis=0), y))
    assert word.startswith("y: 2 labelled rows")
    assert "rows 6 and 7" in word


@pytest.mark.parametrize(("share", "expected"), [(0.03, 0), (0.25, 1)])
def test_tables_of_few_distinct_rows_have_noise(share, expected):
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(300, 4)).astype(float)
    y = (X[:, 0] != (rng.random(300) < share)).astype(int)
    words = said(lambda: gq.GraphClassifier(**QUICK).fit(X, y))
    assert len(words) == expected
    if expected:
        assert "% of the labels or more are not matched: add features" in words[0]


def test_added_labels_are_compared(tmp_path):
    X, y = measured(60)
    y[5] = -1
    for options in (QUICK, {**QUICK, "store": tmp_path}):
        fitted = gq.GraphClassifier(**options)
        assert not said(lambda fitted=fitted: fitted.fit(X, y))
        assert len(said(lambda fitted=fitted: fitted.add_labels([5], [1]))) == 1
        assert not said(lambda fitted=fitted: fitted.add_labels([50], [0]))
        assert not said(lambda fitted=fitted: fitted.add_labels([5], [0]))


def test_tags_of_equal_rows_are_compared_together():
    X, y = measured(200)
    tags = np.column_stack([y, np.where(y < 0, -1, np.arange(200) // 2 % 2)]).astype(float)
    tags[tags < 0] = np.nan
    (word,) = said(lambda: gq.MultilabelClassifier(gq.GraphClassifier(**QUICK)).fit(X, tags))
    assert "such as rows 2 and 5; correct" in word


def test_nodes_and_pixels_are_told_apart_by_their_places():
    X, y = measured(80)
    near = gq.graphs.knn_graph(np.random.default_rng(1).normal(size=(80, 2)))
    graph = gq.graphs.from_adjacency(near.weights)
    assert not said(lambda: gq.GraphClassifier(graph, **QUICK).fit(X, y))
    assert not said(lambda: gq.GraphClassifier(graph, **QUICK).fit(None, y))
    soft = np.where(y[:, None] < 0, np.nan, np.column_stack([0.3 + 0.4 * y, 0.7 - 0.4 * y]))
    assert not said(lambda: gq.GraphClassifier(**QUICK).fit(X, soft))


@pytest.mark.filterwarnings("default::graphuq.errors.GraphuqWarning")
def test_the_command_line_says_it(tmp_path, capsys):
    X, y = measured(60)
    names = np.array(["", "yes", "no"])[y + 1]
    pd.DataFrame(X, columns=list("abc")).assign(kind=names).to_csv(tmp_path / "t.csv", index=False)
    command = ["classify", str(tmp_path / "t.csv"), "--label-column", "kind", "--inference"]
    assert run([*command, QUICK["inference"], "-o", str(tmp_path / "out")]) == 0
    assert "such as rows 2 and 5; correct" in capsys.readouterr().err
