"""Gradients of the evidence in graph, prior and likelihood, against central differences."""

import dataclasses

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.evidence.criteria import evaluate
from graphuq.evidence.graph_gradient import GraphEvidence
from graphuq.graphs import GaussianWeights, SelfTuning, TanhWeights
from graphuq.graphs.neighbors import nearest_neighbors
from graphuq.graphs.pairs import AllNodePairs, NodePairs
from graphuq.graphs.row_distances import all_distances
from graphuq.likelihoods import GaussianNoise, Logistic, Probit, Softmax
from graphuq.priors import InverseLaplacian, Matern, RegularizedLaplacian

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3)) + 1.2 * (np.arange(80) < 40)[:, None]
LABELLED = np.r_[0:4, 40:44]
LABELS = np.r_[np.ones(4), -np.ones(4)]
DISTANCE = all_distances(X, "euclidean")
NEAR = nearest_neighbors(X, 6, "euclidean")[:2]
ALL = AllNodePairs(DISTANCE, np.sort(DISTANCE, axis=1)[:, 6])
FEW = NodePairs.of_neighbors(*NEAR)
SOLVED = RegularizedLaplacian(0.1, 30.0)
CRITERIA = ["laplace", "expectation-propagation", "alignment"]


def model(pairs, weight, prior, likelihood, criterion, laplacian="unnormalized", n_pairs=None):
    """Return a model solved to rounding error, as central differences of a small step need."""
    parts = (weight, laplacian, n_pairs, False, prior, likelihood)
    return GraphEvidence(pairs, *parts, LABELLED, LABELS, criterion, tolerance=1e-14)


def agree(model, values, step=1e-5):
    """Return the largest difference between the gradient and central differences in logarithms."""
    _, gradient = model.value_and_gradient(values)
    worst = 0.0
    for name, value in values.items():
        plain = np.ndim(value) == 0
        for place in np.ndindex(np.shape(value)):
            shift = np.zeros(np.shape(value))
            shift[place] = step
            ends = [
                model.value(values | {name: float(x) if plain else x})
                for x in (np.exp(shift) * value, np.exp(-shift) * value)
            ]
            found = (ends[0] - ends[1]) / (2 * step)
            worst = max(worst, abs(found - np.asarray(gradient[name])[place]))
    return worst


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("laplacian", ["unnormalized", "symmetric"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_gradients_where_the_prior_is_solved_for(criterion, laplacian):
    """Gradients include that of σ, and of one length scale for each feature."""
    tanh = model(ALL, TanhWeights(2.0, 1.5), SOLVED, Logistic(1.0), criterion, laplacian)
    values = {
        "weights__steepness": 2.0,
        "weights__cutoff": 1.5,
        "prior__beta": 0.1,
        "prior__sigma": 30.0,
        "likelihood__steepness": 1.0,
    }
    assert agree(tanh, values) < 1e-7
    near = model(FEW, SelfTuning(1.0), SOLVED, Probit(1.0), criterion, laplacian)
    values = {"weights__sharpness": 1.0, "prior__sigma": 30.0, "likelihood__noise_std": 1.0}
    assert agree(near, values) < 1e-7
    scales = {"weights__scale": np.array([1.0, 2.0, 3.0])}
    weight = GaussianWeights((1.0, 2.0, 3.0))
    for pairs in (NodePairs.of_neighbors(*NEAR, X), AllNodePairs(DISTANCE, np.ones(80), X)):
        assert agree(model(pairs, weight, SOLVED, Logistic(), criterion, laplacian), scales) < 1e-7


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("laplacian", ["unnormalized", "symmetric"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_gradients_of_any_spectral_prior(criterion, laplacian):
    """Gradients are exact with the normalisation of the prior and with a truncated series."""
    full = model(ALL, TanhWeights(2.0, 1.5), Matern(0.3, 2.0), Probit(0.3), criterion, laplacian)
    values = {
        "weights__steepness": 2.0,
        "weights__cutoff": 1.5,
        "prior__tau": 0.3,
        "prior__alpha": 2.0,
        "likelihood__noise_std": 0.3,
    }
    assert agree(full, values) < 1e-7
    for prior in (InverseLaplacian(), SOLVED):
        short = model(FEW, SelfTuning(1.0), prior, Probit(0.3), criterion, laplacian, 20)
        assert agree(short, {"weights__sharpness": 1.0}) < 1e-7


def test_multiclass_evidence_compares_each_class_with_the_rest():
    labels = np.array([0.0, 0, 1, 1, 2, 2, 1, 0])
    softmax = Softmax(0.5, 3)
    together = dataclasses.replace(
        model(FEW, SelfTuning(1.0), SOLVED, softmax, "expectation-propagation"), labels=labels
    )
    values = {"weights__sharpness": 1.0, "likelihood__noise_std": 0.5}
    assert agree(together, values) < 1e-7
    apart = [
        dataclasses.replace(
            model(FEW, SelfTuning(1.0), SOLVED, Probit(0.5), "expectation-propagation"),
            labels=np.where(labels == k, 1.0, -1.0),
        ).value(values)
        for k in range(3)
    ]
    assert together.value(values) == pytest.approx(sum(apart) / 2, abs=1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("likelihood", [Logistic(1.3), Probit(0.4), GaussianNoise(0.3)], ids=repr)
def test_evidence_is_that_of_the_method(likelihood):
    """The criterion equals the log evidence by Laplace's method or expectation propagation."""
    graph = gq.graphs.knn_graph(X, 6)
    posterior = gq.Posterior(
        gq.Laplacian(graph, "unnormalized"), SOLVED, likelihood, LABELLED, LABELS
    )
    searched = [model(FEW, SelfTuning(0.5), SOLVED, likelihood, c) for c in CRITERIA[:2]]
    methods = (gq.inference.Laplace(), gq.inference.ExpectationPropagation())
    for own, method in zip(searched, methods, strict=True):
        fitted = gq.infer(posterior, method)
        assert own.value({}) == pytest.approx(fitted.log_evidence, abs=1e-6)


def test_evidence_of_one_label_is_a_half():
    """The evidence of one label is 1/2 for any covariance."""
    for criterion in CRITERIA[1:2]:
        found = evaluate(np.array([[3.7]]), Logistic(2.0), np.ones(1), criterion)
        assert found.value == pytest.approx(np.log(0.5), abs=1e-10)
        assert abs(found.by_covariance).max() < 1e-9


def test_alignment_of_a_perfect_kernel():
    """`[[1, −1], [−1, 1]]` aligns better with labels 1, −1 than a kernel of unequal deviations."""
    labels = np.array([1.0, -1.0, 1.0, -1.0])
    perfect = evaluate(np.multiply.outer(labels, labels) + 5.0, Logistic(), labels, "alignment")
    assert perfect.value == pytest.approx(1)
    uneven = np.array([1.0, -0.6, 1.0, -0.2])
    assert evaluate(np.multiply.outer(uneven, uneven), Logistic(), labels, "alignment").value < 0.99


def test_unsupported_criteria_are_refused():
    with pytest.raises(InvalidInput, match="criterion: 'bic'"):
        evaluate(np.eye(2), Logistic(), np.array([1.0, -1.0]), "bic")
    with pytest.raises(IncompatibleParts, match="needs a gradient"):
        evaluate(np.eye(2), gq.likelihoods.LevelSet(), np.array([1.0, -1.0]), "laplace")
    walk = model(ALL, TanhWeights(2.0, 1.5), SOLVED, Logistic(), "laplace", "random-walk")
    with pytest.raises(IncompatibleParts, match="random walk"):
        walk.value_and_gradient({"weights__cutoff": 1.5})
    assert agree(walk, {"prior__beta": 0.1, "prior__sigma": 30.0}) < 1e-7
