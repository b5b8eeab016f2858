"""Nothing of what the caller gives is changed or dropped in silence."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.classifier.annotators import readings_of
from graphuq.classifier.labels import split_labels
from graphuq.classifier.regressor.values import numbers_of
from graphuq.classifier.training_labels import training_labels
from graphuq.errors import InvalidInput, MissingLabelWarning

N, N_GIVEN = 60, 8
CLASSES = np.arange(N) % 2
X = np.random.default_rng(0).normal(size=(N, 3)) + 2 * CLASSES[:, None]
KNOWN = np.arange(N) < N_GIVEN
Y = np.where(KNOWN, CLASSES, -1)


def fitted(features, y=Y, **settings):
    return gq.GraphClassifier(inference="expectation-propagation", **settings).fit(features, y)


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
