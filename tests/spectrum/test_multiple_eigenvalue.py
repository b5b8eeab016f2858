"""A multiple eigenvalue is kept whole or not at all: nodes that are alike get equal answers."""

import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.spectrum.multiple_eigenvalue import equal_to_last

EP = gq.inference.ExpectationPropagation()


def star(n_leaves):
    """Return the weights of a star, whose hub is node 0."""
    weights = np.zeros((n_leaves + 1, n_leaves + 1))
    weights[0, 1:] = weights[1:, 0] = 1.0
    return weights


def two_stars(n_leaves):
    """Return the weights of two stars with joined hubs, nodes 0 and n + 1."""
    weights = np.zeros((2 * n_leaves + 2, 2 * n_leaves + 2))
    weights[: n_leaves + 1, : n_leaves + 1] = star(n_leaves)
    weights[n_leaves + 1 :, n_leaves + 1 :] = star(n_leaves)
    weights[0, n_leaves + 1] = weights[n_leaves + 1, 0] = 1.0
    return weights


def fitted(weights, codes, order=None, **options):
    """Return the result for nodes in an order, with its rows in the given order again."""
    order = np.arange(len(weights)) if order is None else order
    graph = gq.graphs.from_adjacency(weights[np.ix_(order, order)])
    result = gq.GraphClassifier(graph, inference=EP, **options).fit(None, codes[order]).result_
    p = np.empty(len(order))
    p[order] = result.probabilities[:, 1]
    return result, p


@pytest.mark.parametrize("weights", [1.0 - np.eye(300), star(300)], ids=["complete", "star"])
def test_three_labels_against_three_say_nothing_of_equal_nodes(weights):
    """Whatever the numbering, by expectation propagation; 0.001 is the error of class shares."""
    codes = np.full(len(weights), -1)
    codes[[5, 9, 44]], codes[[70, 80, 90]] = 0, 1
    for order in (None, np.random.default_rng(1).permutation(len(weights))):
        result, p = fitted(weights, codes, order)
        np.testing.assert_allclose(p[codes < 0], 0.5, atol=1e-3)
        assert result.posterior.spectrum.settings["multiple_eigenvalue"] == "all copies"
        assert (p[codes == 0] < 0.2).all()
        assert (p[codes == 1] > 0.8).all()


def test_equal_leaves_of_two_stars_get_equal_answers():
    codes = np.full(402, -1)
    codes[1:7], codes[202:208] = [0, 0, 0, 0, 1, 1], [1, 1, 1, 1, 0, 0]
    _, p = fitted(two_stars(200), codes)
    first, second = p[7:201], p[208:]
    assert np.ptp(first) < 1e-6
    assert np.ptp(second) < 1e-6
    assert first[0] == pytest.approx(1 - second[0], abs=1e-3)  # the error of class shares


def test_many_copies_have_a_tail_in_place_of_those_left_out():
    """The answer is that of all eigenpairs, but for the one other eigenvalue, 2, of the star."""
    weights, codes = star(800), np.full(801, -1)
    codes[[5, 9, 44]], codes[[70, 80, 90]] = 0, 1
    result, p = fitted(weights, codes)
    spectrum = result.posterior.spectrum
    assert spectrum.settings["multiple_eigenvalue"] == "tail"
    assert (spectrum.n_eigenpairs, spectrum.tail_eigenvalue) == (150, pytest.approx(1.0))
    np.testing.assert_allclose(p[codes < 0], 0.5, atol=1e-3)
    model = result.posterior
    prior, likelihood = model.prior, model.likelihood
    full = gq.laplacian_spectrum(gq.graphs.from_adjacency(weights), n_eigenpairs=801)
    whole = gq.Posterior(full, prior, likelihood, model.labelled, model.labels)
    np.testing.assert_allclose(p, gq.infer(whole, EP).probabilities[:, 1], atol=2e-3)


@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
def test_copies_beyond_enough_other_pairs_are_left_out():
    """A path of 150 nodes and 300 components of three nodes, all alike."""
    triangle = 1.0 - np.eye(3)
    blocks = [np.diag(np.ones(149), 1) + np.diag(np.ones(149), -1), *[triangle] * 300]
    graph = gq.graphs.from_adjacency(sparse.block_diag([*map(sparse.csr_array, blocks)]).tocsr())
    spectrum = gq.laplacian_spectrum(graph)
    assert spectrum.settings["multiple_eigenvalue"] == "no copy"
    assert 301 + 75 <= spectrum.n_eigenpairs < 450
    assert spectrum.eigenvalues[-1] < 1.5 - 1e-6


def test_rings_keep_both_waves_of_a_frequency():
    spectrum = gq.laplacian_spectrum(gq.graphs.ring_graph(1_000), "unnormalized")
    assert spectrum.n_eigenpairs == 151
    gram = np.asarray(spectrum.eigenvectors)
    diagonal = (gram**2).sum(axis=1)
    np.testing.assert_allclose(diagonal, 151 / 1_000)  # no node is special


def test_a_number_that_is_asked_for_is_kept_and_the_verdict_says_so():
    weights, codes = star(300), np.full(301, -1)
    codes[[5, 9, 44]], codes[[70, 80, 90]] = 0, 1
    result, p = fitted(weights, codes, n_eigenpairs=150)
    assert result.posterior.spectrum.n_eigenpairs == 150
    assert np.ptp(p[codes < 0]) > 0.1
    check = result.trust.checks["truncation"]
    assert check.level == "amber"
    assert "more copies" in check.sentence


def test_a_node_without_prior_variance_is_named():
    """Eigenvectors of a star but the first and the last are 0 at its hub."""
    weights, codes = star(300), np.full(301, -1)
    codes[[5, 9, 44]], codes[[70, 80, 90]] = 0, 1
    codes[0] = 1
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(weights), n_eigenpairs=300)
    known = np.flatnonzero(codes >= 0)
    prior = gq.priors.Matern(0.3, 2.0, include_constant=False)
    posterior = gq.Posterior(
        spectrum, prior, gq.likelihoods.Probit(), known, 2.0 * codes[known] - 1
    )
    result = gq.infer(posterior, EP)
    check = result.trust.checks["truncation"]
    assert check.level == "amber"
    assert "such as node 0" in check.sentence
    assert "without prior variance" in check.sentence


def test_equal_eigenvalues_are_those_that_solvers_do_not_tell_apart():
    values = np.array([0.0, 1e-14, 0.5, 0.5 + 1e-8, 0.50001])
    assert equal_to_last(values, 2.0).tolist() == [False, True, False, True, False]
