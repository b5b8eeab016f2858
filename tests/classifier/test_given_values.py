"""Nothing of what the caller gives is changed or dropped in silence."""

import datetime
import warnings

import networkx
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.classifier.annotators import readings_of
from graphuq.classifier.labels import split_labels
from graphuq.classifier.regressor.values import numbers_of
from graphuq.classifier.training_labels import training_labels
from graphuq.errors import (
    DisconnectedGraphWarning,
    InvalidInput,
    MissingLabelWarning,
    StorageError,
)

N, N_GIVEN = 60, 8
SPARSE = sparse.csr_array
CLASSES = np.arange(N) % 2
X = np.random.default_rng(0).normal(size=(N, 3)) + 2 * CLASSES[:, None]
KNOWN = np.arange(N) < N_GIVEN
Y = np.where(KNOWN, CLASSES, -1)


def fitted(features, y=Y, **settings):
    return gq.GraphClassifier(model="fixed", inference="expectation-propagation", **settings).fit(
        features, y
    )


@pytest.mark.parametrize("dtype", [int, float, object, "U1"])
def test_masked_labels_are_unlabelled(dtype):
    y = np.ma.array(CLASSES.astype(dtype), mask=~KNOWN)
    found = training_labels(y, N)
    np.testing.assert_array_equal(found.labels.nodes, np.flatnonzero(KNOWN))
    assert found.classes.astype(int).tolist() == [0, 1]
    everything = training_labels(np.ma.array(CLASSES), N)  # a masked array without a mask
    assert len(everything.labels.nodes) == N


def test_masks_of_soft_labels_numbers_and_annotators():
    q = np.ma.array(np.stack([1.0 - 0.8 * CLASSES, 0.8 * CLASSES], axis=1))
    q[~KNOWN] = np.ma.masked
    assert len(training_labels(q, N).labels.nodes) == N_GIVEN
    assert np.isfinite(numbers_of(np.ma.array(X[:, 0], mask=~KNOWN))).sum() == N_GIVEN
    table = np.ma.array(np.stack([CLASSES, CLASSES], axis=1))
    table.mask = np.stack([~KNOWN, KNOWN], axis=1)
    readings = readings_of(table, -1)[1]
    np.testing.assert_array_equal(readings < 0, table.mask)


def test_masked_weights_are_refused():
    weights = np.ma.array(np.ones(N), mask=~KNOWN)
    with pytest.raises(InvalidInput, match="masked values"):
        fitted(X).fit(X, Y, sample_weight=weights)


def test_rows_whose_names_have_another_order_are_refused():
    frame = pd.DataFrame(X, index=[f"r{i}" for i in range(N)])
    shuffled = pd.Series(Y, index=frame.index).sample(frac=1, random_state=0)
    for estimator in (gq.GraphClassifier(), gq.GraphRegressor()):
        with pytest.raises(InvalidInput, match=r"another order.*y\.loc\[X\.index\]"):
            estimator.fit(frame, shuffled)
    same = fitted(frame, shuffled.loc[frame.index])
    with pytest.raises(InvalidInput, match="another order"):
        same.score(frame, shuffled)
    other_names = shuffled.set_axis(range(N))  # say nothing of the rows of X
    assert fitted(frame, other_names).transduction_.shape == (N,)


def test_a_sparse_matrix_with_entries_in_parts_is_their_sum():
    whole = sparse.csr_array(np.abs(X))
    halves = np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr
    parts = sparse.csr_array(halves, shape=whole.shape)
    n_entries = parts.nnz
    found = fitted(parts).label_distributions_
    np.testing.assert_allclose(found, fitted(whole).label_distributions_, atol=1e-12)
    assert parts.nnz == n_entries  # the caller's matrix is as it was


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_changes_of_the_callers_features_change_no_prediction(kind):
    features = kind(np.abs(X))
    classifier = fitted(features)
    before = classifier.predict_proba(X[:5] + 0.01)
    values = features if kind is np.asarray else features.data
    values[:] = values[::-1].copy()
    np.testing.assert_array_equal(classifier.predict_proba(X[:5] + 0.01), before)


def test_features_in_a_file_stay_there(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(fitted(mapped).graph_.feature_space.features, mapped)


def test_labels_keep_their_identity():
    large = [2**53, 2**53 + 1, float("nan")]
    values, given = split_labels(large, -1)
    assert values[given].tolist() == large[:2]
    for texts in (["a", "a\0"], np.array(["a", "a\0", None], dtype=object)):
        with pytest.raises(InvalidInput, match="zero byte"):
            split_labels(texts, -1)
    twice = pd.DataFrame({1: [0.2, 0.9], "1": [0.8, 0.1]})
    with pytest.raises(InvalidInput, match="2 columns with the name '1'"):
        training_labels(twice, 2)


def test_what_means_unlabelled():
    assert split_labels(["a", " ", "\t", "b"], -1)[1].tolist() == [True, False, False, True]
    for numbers in (Y, Y.astype(float), list(Y), np.array([*Y[:-1], None], dtype=object)):
        with pytest.raises(InvalidInput, match="missing_label: the text '-1'"):
            split_labels(numbers, "-1")
    unsigned = np.where(KNOWN, CLASSES, 255).astype(np.uint8)
    with pytest.warns(MissingLabelWarning, match="missing_label=255"):
        training_labels(unsigned, N)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        training_labels(np.where(CLASSES, 255, 0).astype(np.uint8), N)  # black and white


NO_CLASSES = {
    "tuples": ([("a", 1), ("b", 2)], "two columns or more"),
    "ragged": ([[1], [1, 2]], "different lengths"),
    "bytes": ([b"a", b"b"], "bytes"),
    "dates": (pd.to_datetime(["2020-01-01", "2020-02-01"]), "dates|Timestamp"),
    "durations": (pd.to_timedelta([1, 2], unit="D"), "time diff|Timedelta"),
    "periods": (pd.period_range("2020", periods=2, freq="M"), "type Period"),
    "days": ([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)], "type date"),
    "intervals": (pd.interval_range(0, 2), "type Interval"),
    "sets": ([{1}, {2}], "type set"),
    "huge": ([10**30, 10**30 + 1], "more than 64 bits"),
    "both signs": ([2**63, -5], "more than 64 bits"),
    "complex": ([1j, 2j], "complex"),
}


@pytest.mark.parametrize("case", NO_CLASSES)
def test_labels_that_name_no_class_are_refused(case):
    values, said = NO_CLASSES[case]
    own = [values.repeat(N // 2)] if hasattr(values, "repeat") else []
    for y in [list(values) * (N // 2), *own]:
        with pytest.raises(InvalidInput, match=f"^y: .*({said}).*; give"):
            fitted(X, y)
    if case not in ("huge", "both signs"):
        with pytest.raises(InvalidInput, match=r"^y: "):
            gq.GraphRegressor().fit(X, list(values) * (N // 2))
    with pytest.raises(InvalidInput, match=r"^y: "):
        gq.AnnotatorClassifier().fit(X, list(values) * (N // 2))


def test_the_largest_integers_are_classes():
    large = [2**64 - 1, 2**64 - 2]
    assert fitted(X, large * (N // 2)).classes_.tolist() == sorted(large)
    assert fitted(X, [-(2**63), 2**63 - 1] * (N // 2)).classes_.tolist() == [-(2**63), 2**63 - 1]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["a"] * 3, "3 entries for 60 rows"),
        ("abc", "'abc'"),
        (3, "3"),
        (np.zeros((N, 2)), r"shape \(60, 2\)"),
        (["a\0"] * N, "zero byte"),
    ],
)
def test_ids_are_one_a_row(ids, said, tmp_path):
    classifier = fitted(X)
    regressor = gq.GraphRegressor().fit(X, X[:, 0])
    calls = [
        lambda: classifier.result_.to_dataframe(ids),
        lambda: classifier.predict_table(X, ids),
        lambda: gq.write_report(classifier.result_, tmp_path / "report.html", ids=ids),
        lambda: gq.write_report(regressor, tmp_path / "report.html", ids=ids),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match=f"^ids: .*{said}"):
            call()


def test_names_that_end_with_a_zero_byte_are_refused(tmp_path):
    frame = pd.DataFrame(X, columns=["a\0", "b", "c"])
    graph = networkx.path_graph(["a\0", "b", "c"])
    for argument, call in {
        "X": lambda: fitted(frame),
        "y": lambda: fitted(X, pd.DataFrame({"a\0": [0.1, 0.9] * 30, "b": [0.9, 0.1] * 30})),
        "adjacency": lambda: gq.graphs.from_adjacency(graph),
        "store": lambda: fitted(X, store=tmp_path / "a\0b"),
    }.items():
        with pytest.raises(InvalidInput, match=f"^{argument}: .*x00"):
            call()
    for write in (fitted(X).save, lambda path: gq.write_report(fitted(X).result_, path)):
        with pytest.raises(StorageError, match=r"cannot write .*null (byte|character)"):
            write(tmp_path / "a\0b.nc")


def test_a_graph_without_nodes_or_edges_is_refused():
    for graph in (networkx.Graph(), networkx.empty_graph(1), networkx.empty_graph(5)):
        for given in ({"graph": graph}, {"graph": "precomputed"}):
            with pytest.raises(InvalidInput, match=r"^adjacency: "):
                fitted(graph if given["graph"] == "precomputed" else None, **given)


def test_small_weights_are_edges_in_every_container():
    weights = np.zeros((N, N))
    rows = np.arange(N - 1)
    weights[rows, rows + 1] = weights[rows + 1, rows] = np.where(rows == 30, 1e-9, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DisconnectedGraphWarning)
        dense, thin = (fitted(kind(weights), graph="precomputed") for kind in (np.asarray, SPARSE))
    assert dense.graph_.n_components == thin.graph_.n_components == 1
    np.testing.assert_allclose(dense.label_distributions_, thin.label_distributions_, atol=1e-8)


@pytest.mark.parametrize("filled", [1.0, 0.4])
def test_new_rows_may_have_another_container(filled):
    rng = np.random.default_rng(1)
    rows = np.where(rng.uniform(size=(N, 6)) < filled, rng.normal(size=(N, 6)), 0.0)
    rows[:, 0] += 3 * CLASSES
    new = rows[:5] + 0.1 * (rows[:5] != 0)
    dense, thin = fitted(rows), fitted(SPARSE(rows))
    for classifier in (dense, thin):
        expected = classifier.predict_proba(new)
        np.testing.assert_allclose(classifier.predict_proba(SPARSE(new)), expected, atol=1e-9)
    if filled == 1:  # a sparse format of a full matrix changes no model
        assert isinstance(thin.graph_.features, np.ndarray)
        np.testing.assert_array_equal(dense.label_distributions_, thin.label_distributions_)


RAGGED = [[1], [2, 3]]
ARGUMENTS = {
    "sample_weight": [lambda: fitted(X).fit(X, Y, RAGGED * (N // 2))],
    "rows": [lambda: fitted(X).add_labels(RAGGED, [0, 1])],
    "y": [
        lambda: fitted(X).score(X, RAGGED * (N // 2)),
        lambda: fitted(X).score(X, Y[:-1]),
        lambda: list(gq.LabelledKFold(2).split(X, RAGGED * (N // 2))),
    ],
    "X": [
        lambda: fitted(RAGGED * (N // 2)),
        lambda: fitted(X).predict([[1.0, 2.0, 3.0], [1.0]]),
        lambda: fitted(pd.DataFrame(X, columns=["a", "a", "b"])),
    ],
    "class_proportions": [
        lambda: fitted(X, class_proportions=RAGGED),
        lambda: fitted(X, class_proportions=["a", "b"]),
    ],
    "candidates": [
        lambda: fitted(X).query(3, candidates=RAGGED),
        lambda: fitted(X).query(3, candidates=["a"]),
        lambda: fitted(X).query(3, candidates=[20.5]),
    ],
    "missing_label": [
        lambda: fitted(X, missing_label=[-1, -2]),
        lambda: fitted(X, missing_label=np.array([-1])),
        lambda: fitted(X, np.array(["a", "b"])[CLASSES], missing_label=b"?"),
    ],
    "source": [lambda: gq.graphs.from_edges([["a"], ["b"]], [["c"], ["d"]])],
}


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_values_of_another_form_are_refused_by_name(argument):
    for call in ARGUMENTS[argument]:
        with pytest.raises(InvalidInput, match=f"^{argument}: "):
            call()
