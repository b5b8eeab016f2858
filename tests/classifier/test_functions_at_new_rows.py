"""Predictions at new rows where the answer is a function of the features."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_friedman1

import graphuq as gq
from graphuq.classifier.regressor.rows import kept_by_means
from graphuq.scores import accuracy


def linear_numbers():
    """Return rows of eight columns and numbers that are linear in them, with noise of 0.3."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    return X, X @ rng.normal(size=8) + 0.3 * rng.normal(size=600)


@pytest.mark.parametrize("data", [linear_numbers, lambda: make_friedman1(600, 8, random_state=0)])
def test_numbers_of_new_rows_are_those_of_rows_in_the_graph(data):
    """With means over neighbours errors were 3.5 and 1.2 times as large, and intervals held .4."""
    X, numbers = data()
    given = np.full(600, np.nan)
    given[:60] = numbers[:60]
    new = slice(500, 600)
    first = gq.GraphRegressor().fit(X[:500], given[:500])
    whole = gq.GraphRegressor().fit(X, given)
    errors = [
        np.sqrt(np.mean((found - numbers[new]) ** 2))
        for found in (first.predict(X[new]), whole.transduction_[new])
    ]
    assert errors[0] < 1.1 * errors[1]
    low, high = first.predict_interval(X[new]).T
    assert ((low <= numbers[new]) & (numbers[new] <= high)).mean() > 0.79


def test_a_file_predicts_the_same(tmp_path):
    X, numbers = linear_numbers()
    given = np.full(500, np.nan)
    given[:60] = numbers[:60]
    first = gq.GraphRegressor().fit(X[:500], given)
    first.save(tmp_path / "numbers.nc")
    again = gq.GraphRegressor.load(tmp_path / "numbers.nc")
    np.testing.assert_allclose(again.predict(X[500:]), first.predict(X[500:]), rtol=1e-6)


@pytest.mark.parametrize("out_of_sample", ["mean", "combination"])
def test_classes_of_new_rows(out_of_sample, tmp_path):
    """A sphere of 20 dimensions that a plane cuts: neighbours are nearer to the plane."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 20))
    classes = (X @ rng.normal(size=20) > 0).astype(int)
    y = np.where(np.arange(600) < 200, classes[:600], -1)
    one = gq.GraphClassifier(out_of_sample=out_of_sample).fit(X[:600], y)
    inside = accuracy(one.transduction_[200:], classes[200:600])
    assert accuracy(one.predict(X[600:]), classes[600:]) > inside - 0.04
    one.save(tmp_path / "classes.nc")
    again = gq.GraphClassifier.load(tmp_path / "classes.nc")
    found = one.predict_proba(X[600:])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).predict_proba(X[600:]), found)
    np.testing.assert_allclose(again.predict_proba(X[600:]), found, atol=1e-6)
    shifted = gq.GraphClassifier(out_of_sample=out_of_sample).fit(X[:600] + 3, y)
    np.testing.assert_allclose(shifted.predict_proba(X[600:] + 3), found, atol=0.02)


@pytest.mark.parametrize("laplacian", ["symmetric", "random-walk", "unnormalized"])
def test_a_row_joined_as_a_node_has_the_basis_of_the_node(laplacian):
    """The mean over its neighbours, divided by what it keeps of each eigenvector."""
    graph = gq.graphs.knn_graph(np.random.default_rng(0).normal(size=(200, 3)), 10)
    spectrum = gq.laplacian_spectrum(graph, laplacian, n_eigenpairs=20)
    weights = sparse.csr_array(graph.weights)[[5, 17]]
    kept = kept_by_means(spectrum, weights)
    assert kept.min() > 0.3
    scale = spectrum.extend_scale(weights)[:, None]
    found = spectrum.extend(weights) * scale / kept
    expected = spectrum.basis[[5, 17]] * spectrum.node_scale[[5, 17], None]
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_fields_of_new_rows_vary_as_those_of_nodes():
    """Without the shares kept, 90 % intervals held .73 of Friedman's numbers of little noise."""
    X, numbers = make_friedman1(1200, 5, noise=0.3, random_state=0)
    given = np.where(np.arange(600) < 60, numbers[:600], np.nan)
    low, high = gq.GraphRegressor().fit(X[:600], given).predict_interval(X[600:]).T
    assert 0.86 < ((low <= numbers[600:]) & (numbers[600:] <= high)).mean() < 0.97


def test_the_nearest_node_lends_its_answer():
    X, numbers = linear_numbers()
    given = np.where(np.arange(500) < 60, numbers[:500], np.nan)
    one = gq.GraphRegressor(out_of_sample="nearest").fit(X[:500], given)
    nearest = ((X[500:, None] - X[None, :500]) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_allclose(one.predict(X[500:]), one.transduction_[nearest])


def test_a_row_without_neighbours_has_the_mean():
    """The linear functions would be extrapolated where no row was."""
    X, numbers = linear_numbers()
    given = np.where(np.arange(600) < 60, numbers, np.nan)
    one = gq.GraphRegressor(weights="GaussianWeights(scale=2.0)").fit(X, given)
    far = np.full((1, 8), 1e3)
    with pytest.warns(gq.errors.FarRowsWarning):
        found = one.predict(far)
    assert abs(found[0] - np.nanmean(given)) < 3 * np.nanstd(given)
