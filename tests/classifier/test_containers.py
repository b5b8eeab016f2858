"""Tables and labels in the types of other libraries: the same answer, or one clear refusal."""

import enum
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from scipy import sparse

import graphuq as gq
from graphuq.classifier.annotators import readings_of
from graphuq.classifier.multilabel.tags import tags_of
from graphuq.errors import GraphuqWarning, InvalidInput

ml_dtypes = pytest.importorskip("ml_dtypes")
N = 60
CLASSES = np.arange(N) % 2
X = np.round(8 * (np.random.default_rng(0).normal(size=(N, 3)) + 2 * CLASSES[:, None])) / 8
FRAME = pd.DataFrame(X, columns=list("abc"))
POLARS = pl.from_pandas(FRAME)
Y = np.where(np.arange(N) < 16, CLASSES, -1)
NAMES = ["", "left", "right"]
TEXTS = [NAMES[k + 1] for k in Y]


class Side(str, enum.Enum):  # noqa: UP042
    LEFT = "left"
    RIGHT = "right"


def probabilities(features, labels=Y):
    classifier = gq.GraphClassifier(model="fixed", inference="expectation-propagation")
    return classifier.fit(features, labels).label_distributions_


@pytest.fixture(scope="module")
def expected():
    return probabilities(X)


TABLES = {
    "half precision": X.astype(np.float16),
    "big-endian": X.astype(">f8"),
    "bfloat16": X.astype(ml_dtypes.bfloat16),
    "whole sparse columns": FRAME.astype(pd.SparseDtype(float, np.nan)),
    "one of them": FRAME.astype({"a": pd.SparseDtype(float, np.nan)}),
    "decimals": POLARS.cast(pl.Decimal(10, 3)),
    "Arrow": pa.table(FRAME),
    "batch": pa.RecordBatch.from_pandas(FRAME),
    "xarray": xr.DataArray(X),
    "buffer": memoryview(X),
    "arrays in a column": pl.Series(X),
    "several names": FRAME.set_axis(pd.MultiIndex.from_product([["a"], list("xyz")]), axis=1),
    "one index": FRAME.set_axis([0] * N),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_any_library_have_one_answer(name, expected):
    exact = 1e-9 if name != "bfloat16" else 0.05  # it has eight bits
    np.testing.assert_allclose(probabilities(TABLES[name]), expected, atol=exact)


def test_columns_of_arrow_keep_their_names():
    fitted = gq.GraphClassifier(model="fixed", inference="expectation-propagation").fit(
        pa.table(FRAME), Y
    )
    assert fitted.feature_names_in_.tolist() == list("abc")
    with pytest.raises(InvalidInput, match="column 'b' is NaN in 1 row"):
        fitted.predict(pa.table({"a": [1.0], "b": [None], "c": [2.0]}))


def test_tables_of_arrow_name_classes_annotators_and_tags():
    given = np.where(Y[:, None] < 0, np.nan, np.column_stack([1 - 0.8 * CLASSES, 0.8 * CLASSES]))
    soft = pd.DataFrame(given, columns=["left", "right"])
    classifier = gq.GraphClassifier(model="fixed", inference="expectation-propagation")
    assert classifier.fit(X, pa.table(soft)).classes_.tolist() == ["left", "right"]
    people = pd.DataFrame({"Ada": TEXTS, "Bob": TEXTS})
    assert readings_of(pa.table(people), "")[2] == ["Ada", "Bob"]
    tags = pd.DataFrame({"red": CLASSES, "round": 1 - CLASSES})
    assert tags_of(pa.table(tags)).names.tolist() == ["red", "round"]
    encoded = [gq.TableEncoder().fit_transform(table) for table in (FRAME, pa.table(FRAME))]
    np.testing.assert_array_equal(*encoded)


REFUSED = {
    "dict": ({"a": [1.0, 2.0]}, "X: dict of length 1 is not a matrix; .*pandas.DataFrame"),
    "dicts": (FRAME.to_dict("records"), "X: a list of dicts; give pandas.DataFrame"),
    "iterator": (iter(X), r"X: .* is not a matrix; give list\(X\)"),
    "file": ("table.csv", "X: 'table.csv' is text; load a file first"),
    "query": (POLARS.lazy(), r"X: .*LazyFrame is not an array; call collect\(\) first"),
    "data set": (xr.Dataset({"a": ("row", X[:, 0])}), "X: .*Dataset.* is not a matrix; give one"),
    "rows in a column": (
        FRAME.apply(list, axis=1),
        "X: .* whose elements are rows; give numpy.stack",
    ),
    "lists of Arrow": (pa.array(X.tolist()), "X: .* whose elements are rows; give numpy.stack"),
    "records": (FRAME.to_records(index=False), r"X: not numeric \(records\)"),
    "pair": ((X, Y), "X: a pair of a matrix and numbers; give the matrix alone"),
    "no columns": (FRAME[[]], "X: no columns; give one feature or more"),
    "function": (len, "X: .* is not a matrix"),
    "texts": (X.astype(str).astype(np.dtypes.StringDType()), r"X: not numeric \(text\)"),
    "close integers": (np.int64(8 * X) + 2**60, "X: column 0 holds 11529.* tell steps of 256 the"),
    "column of them": (FRAME.assign(id=2**60 + np.arange(N)), "X: column 'id' holds 1152921504"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.usefixtures("unchecked_types")
def test_what_is_no_table_is_refused_with_the_remedy(name):
    given, words = REFUSED[name]
    classifier = gq.GraphClassifier(model="fixed", inference="expectation-propagation")
    with pytest.raises(InvalidInput, match=words):
        classifier.fit(given, Y)
    with pytest.raises(InvalidInput, match=words):
        gq.GraphRegressor().fit(given, np.where(Y < 0, np.nan, Y))
    if name not in ("close integers", "column of them", "iterator"):
        with pytest.raises(InvalidInput, match=words):
            classifier.fit(X, Y).predict(given)


def test_large_integers_far_apart_are_numbers():
    times = 1_700_000_000_000_000_000 + np.int64(1e12 * X)
    np.testing.assert_allclose(probabilities(times), probabilities(1e12 * X), atol=1e-3)


LABELS = {
    "texts of NumPy 2": np.array(TEXTS, dtype=np.dtypes.StringDType()),
    "Enum of texts": [None if k < 0 else list(Side)[k] for k in Y],
    "Series of them": pd.Series([None if k < 0 else list(Side)[k] for k in Y]),
    "unused category": pd.Categorical(TEXTS, categories=["right", "up", "left", ""]),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "polars": pl.Series(TEXTS, dtype=pl.Enum(["", "right", "left", "up"])),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_of_any_library_have_one_answer(name, expected):
    classifier = gq.GraphClassifier(model="fixed", inference="expectation-propagation").fit(
        X, LABELS[name]
    )
    assert classifier.classes_.tolist() == ["left", "right"]
    np.testing.assert_allclose(classifier.label_distributions_, expected, atol=1e-9)


def test_labels_that_are_none_are_described():
    with pytest.raises(InvalidInput, match="y: 'label'; give one label a row"):
        probabilities(FRAME, "label")
    with pytest.raises(InvalidInput, match=r"y: the class '.ud800', which no file can hold"):
        probabilities(X, ["" if k < 0 else ["\ud800", "b"][k] for k in Y])
    hidden = ["" if k < 0 else ["left", "right"][k] for k in Y]
    hidden[2] = "left\u200b"
    with pytest.warns(GraphuqWarning, match=r"y: the classes 'left' and 'left.u200b' differ"):
        probabilities(X, hidden)
    with pytest.raises(InvalidInput, match="y: a label of type Decimal"):
        probabilities(X, [None if k < 0 else Decimal(int(k)) for k in Y])


@pytest.mark.parametrize("smallest", [0.3, 1.5])  # of full and of sparse rows
def test_sparse_formats_and_stored_zeros_have_one_answer(smallest):
    some = np.where(np.abs(X) < smallest, 0, X)
    stored = sparse.csr_array(np.ones_like(some))
    stored.data = some.ravel().copy()
    expected = probabilities(sparse.csr_array(some))
    for matrix in (stored, sparse.coo_array(some), sparse.dia_array(some), sparse.lil_array(some)):
        np.testing.assert_allclose(probabilities(matrix), expected, atol=1e-9)
