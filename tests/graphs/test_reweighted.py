"""Weights by the Poisson equation with sources at the labels, against dense formulas."""

import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.errors import DisconnectedGraphWarning, InvalidInput

poisson_reweighted = gq.graphs.poisson_reweighted
LABELLED = [3, 17, 40]


def moons():
    return gq.graphs.knn_graph(gq.datasets.two_moons(80, n_features=2).features, 8)


def expected(weights, labelled, floor):
    """Return the new weights by a pseudoinverse, for a connected graph."""
    laplacian = np.diag(weights.sum(axis=1)) - weights
    source = np.full(len(weights), -len(labelled) / len(weights))
    source[labelled] += 1
    gamma = np.linalg.pinv(laplacian, hermitian=True) @ source
    gamma -= gamma.min()
    gamma += floor * gamma.mean()
    new = gamma[:, None] * weights * gamma
    return new * weights.sum() / new.sum()


@pytest.mark.parametrize("floor", [0.01, 1.0, 5])
@pytest.mark.parametrize("is_dense", [False, True])
def test_weights_are_those_of_the_pseudoinverse(floor, is_dense):
    graph = moons()
    weights = graph.weights.toarray()
    if is_dense:
        graph = gq.graphs.from_adjacency(weights)
    found = poisson_reweighted(graph, LABELLED, floor=floor)
    assert sparse.issparse(found.weights) != is_dense
    own = found.weights if is_dense else found.weights.toarray()
    np.testing.assert_allclose(own, expected(weights, LABELLED, floor), rtol=1e-6)
    np.testing.assert_allclose(found.degrees, own.sum(axis=1))
    assert found.settings["floor"] == floor


def test_posterior_mean_is_the_solution_of_the_reweighted_laplace_equation():
    """With hardly any noise the mean is harmonic for the new weights between the labels.

    That is Laplace learning on the reweighted graph, ``L_UU u_U = −L_UL y`` (Miller & Calder 2023).
    """
    graph = moons()
    new = poisson_reweighted(graph, LABELLED)
    weights = expected(graph.weights.toarray(), LABELLED, 1.0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    y = np.array([1.0, -1.0, 1.0])
    free = np.setdiff1d(np.arange(80), LABELLED)
    harmonic = np.linalg.solve(
        laplacian[np.ix_(free, free)], -laplacian[np.ix_(free, LABELLED)] @ y
    )
    posterior = gq.Posterior(
        gq.Laplacian(new, "unnormalized"),
        gq.priors.RegularizedLaplacian(beta=1.0, sigma=1e3),
        gq.likelihoods.GaussianNoise(1e-5),
        LABELLED,
        y,
    )
    mean = gq.infer(posterior, gq.inference.ExpectationPropagation()).latent_mean
    np.testing.assert_allclose(mean[free], harmonic, atol=1e-4)
    np.testing.assert_allclose(gq.harmonic_function(new, LABELLED, y)[free], harmonic, atol=1e-6)


def test_component_without_label_keeps_the_ratios_of_its_weights():
    one = np.diag(np.arange(1.0, 5), 1)
    weights = np.zeros((10, 10))
    weights[:5, :5], weights[5:, 5:] = one + one.T, one + one.T
    with pytest.warns(DisconnectedGraphWarning):
        graph = gq.graphs.from_adjacency(weights)
    with pytest.warns(DisconnectedGraphWarning):
        new = poisson_reweighted(graph, [0]).weights
    assert np.ptp(np.diag(new[5:, 5:], 1) / np.arange(1.0, 5)) < 1e-12
    assert (np.diff(np.diag(new[:5, :5], 1) / np.arange(1.0, 5)) < 0).all()


def test_labels_everywhere_change_nothing():
    graph = moons()
    found = poisson_reweighted(graph, np.arange(80))
    np.testing.assert_allclose(found.weights.toarray(), graph.weights.toarray(), rtol=1e-12)


def test_names_stay_and_features_that_made_the_edges_go():
    graph = gq.graphs.from_edges(list("abcc"), list("bcad"))
    found = poisson_reweighted(graph, [0])
    assert found.node_names == ["a", "b", "c", "d"]
    assert poisson_reweighted(moons(), [0]).feature_space is None


def test_estimator_takes_the_graph():
    graph, moons_data = moons(), gq.datasets.two_moons(80, n_features=2)
    y = np.full(80, -1)
    y[[0, 79]] = moons_data.codes()[[0, 79]]
    new = poisson_reweighted(graph, [0, 79])
    model = gq.GraphClassifier(graph=new, laplacian="unnormalized").fit(None, y)
    assert (model.transduction_ == moons_data.codes()).mean() > 0.8


@pytest.mark.parametrize(
    ("labelled", "floor", "argument"),
    [
        ([80], 1.0, "labelled"),
        ([-1], 1.0, "labelled"),
        ([3, 3], 1.0, "labelled"),
        ([], 1.0, "labelled"),
        ([0.5], 1.0, "labelled"),
        ([3], 0.0, "floor"),
        ([3], np.nan, "floor"),
        ([3], "one", "floor"),
    ],
)
def test_what_is_refused(labelled, floor, argument):
    with pytest.raises(InvalidInput, match=argument):
        poisson_reweighted(moons(), labelled, floor=floor)
