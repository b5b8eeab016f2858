"""Reported probabilities: a power of those of an average over blocks."""

import dataclasses

import numpy as np
import pytest

import graphuq as gq
from graphuq.models.average import sharpness_of
from graphuq.results.reported import powers, sharpened
from graphuq.results.summaries import NodeSummaries

EP = "expectation-propagation"


def data(n_classes, per_class=4):
    rng = np.random.default_rng(1)
    codes = rng.integers(n_classes, size=120)
    X = rng.normal(size=(120, 3)) + 1.5 * np.eye(3)[codes]
    y = np.full(120, -1)
    for k in range(n_classes):
        y[np.flatnonzero(codes == k)[:per_class]] = k
    return X, y


def test_powers_keep_the_order_and_the_sum():
    p = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [1 / 3] * 3])
    expected = p**1.5 / (p**1.5).sum(axis=1, keepdims=True)
    assert np.abs(powers(p, 1.5) - expected).max() < 1e-15
    tiny = powers(np.array([[1e-300, 2e-300]]), 2.0)
    assert np.abs(tiny - [[0.2, 0.8]]).max() < 1e-12


@pytest.mark.parametrize("n_classes", [2, 3])
def test_errors_change_with_the_probabilities(n_classes):
    """Against differences, with the other classes in their proportions."""
    p, step = np.array([[0.7, 0.3]]) if n_classes == 2 else np.array([[0.5, 0.3, 0.2]]), 1e-6
    zero = np.zeros_like(p)

    def summaries(p, error):
        if n_classes == 3:
            return NodeSummaries(p, np.full_like(p, error), zero, zero)
        mean = p[:, 1] - p[:, 0]
        return NodeSummaries(mean, np.full(1, 2 * error), zero[:, 0], zero[:, 0])

    found = sharpened(summaries(p, step), 1.3)
    for k in range(n_classes):
        moved = p.copy()
        moved[0, k] += step
        moved[0, np.arange(n_classes) != k] *= (1 - moved[0, k]) / (1 - p[0, k])
        change = sharpened(summaries(moved, step), 1.3).probabilities - found.probabilities
        assert abs(change[0, k] / found.mcse[0, k] - 1) < 1e-3


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_average_over_blocks_is_sharpened(n_classes, tmp_path):
    X, y = data(n_classes)
    model = gq.models.Average("random")
    classifier = gq.GraphClassifier(model=model, inference=EP).fit(X, y)
    result = classifier.result_
    plain = gq.infer(
        dataclasses.replace(result.posterior, sharpness=1.0), gq.inference.ExpectationPropagation()
    )
    power = sharpness_of(len(result.posterior.labels), n_classes)
    assert power > 1.1
    expected = powers(plain.probabilities, power)
    assert np.abs(result.probabilities - expected).max() < 1e-10
    assert np.abs(result.probabilities - plain.probabilities).max() > 0.005
    near = X[:20] + 1e-9
    assert np.abs(classifier.predict_proba(near) - result.probabilities[:20]).mean() < 0.1
    new = X[:20] + 0.3
    sharp = classifier.predict_proba(new)
    classifier.save(tmp_path / "model.nc")
    again = gq.load(tmp_path / "model.nc")
    assert again.result_.posterior.sharpness == power
    assert np.abs(again.predict_proba(new) - sharp).max() < 1e-6
    rows = gq.results.at_rows  # the same power outside the graph
    weights = classifier._rows(new)[:2]
    assert np.abs(rows(plain, *weights).probabilities - sharp).max() > 0.005
    unsharp = rows(plain, *weights).probabilities
    assert np.abs(powers(unsharp, power) - sharp).max() < 1e-6


@pytest.mark.parametrize("model", ["likeliest", "largest-evidence"])
def test_single_models_are_not(model):
    X, y = data(3)
    found = gq.GraphClassifier(model=model, inference=EP).fit(X, y)
    assert found.result_.posterior.sharpness == 1.0


def test_an_average_on_the_graph_alone_is_too_and_less_with_more_labels():
    X, y = data(3)
    graph = gq.graphs.from_adjacency(gq.graphs.knn_graph(X).weights)
    found = gq.GraphClassifier(graph, inference=EP).fit(None, y)
    few = found.result_.posterior.sharpness
    assert few == sharpness_of(12, 3)
    found.add_labels(np.arange(100, 120), np.arange(20) % 3)
    n_labels = len(found.result_.posterior.labels)
    assert 1 < found.result_.posterior.sharpness == sharpness_of(n_labels, 3) < few


def test_the_power_is_that_of_the_mean_number_of_labels_a_class():
    found = [np.log(sharpness_of(n * n_classes, n_classes)) for n in (1, 4) for n_classes in (2, 9)]
    assert found == pytest.approx([0.39, 0.39, 0.195, 0.195])
    assert sharpness_of(10**6, 2) < 1.001


def test_a_component_of_an_average_is_not():
    X, y = data(2)
    posterior = gq.GraphClassifier(inference=EP).fit(X, y).result_.posterior
    assert posterior.sharpness == sharpness_of(len(posterior.labels), 2)
    assert posterior.component(3).sharpness == 1.0
