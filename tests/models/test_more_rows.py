"""Components of the default have a limit as the rows become many, on a circle."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.models.learnt_odds import eigenvalue_of_rank, features, learnt_mixture

ANGLES = np.array([0.5, 1.5, 3.0])


def circle(angles):
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    graph = gq.graphs.knn_graph(rows, 14, weights=gq.graphs.SelfTuning(4.0))
    return gq.Basis(gq.laplacian_spectrum(graph, n_eigenpairs=60))


def even(n_nodes):
    return circle(2 * np.pi * np.arange(n_nodes) / n_nodes)


def correlations(basis, term):
    """Return those of node 0 with nodes at some angles."""
    std = term.scale * term.prior.spectral_std(basis.spectrum).modes
    field = np.asarray(basis.spectrum.eigenvectors) * std
    covariance = field @ field[0]
    at = (ANGLES / (2 * np.pi) * basis.n_nodes).round().astype(int)
    return covariance[at] / covariance[0]


@pytest.mark.parametrize("rank", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("alpha", [2.0, 5.0])
def test_a_component_tends_to_a_field_on_the_circle(rank, alpha):
    """The eigenvalues of the circle are k², twice each; that of rank r is ⌈r/2⌉²."""
    k = np.arange(1, 31)
    variance = (k**2.0 + ((rank + 1) // 2) ** 2.0) ** -alpha
    limit = np.cos(ANGLES[:, None] * k) @ variance / variance.sum()
    errors = []
    for n_nodes in (200, 800, 3200):
        basis = even(n_nodes)
        tau = eigenvalue_of_rank(basis, rank) ** 0.5
        term = gq.models.Term(1.0, gq.priors.Matern(tau, alpha))
        errors.append(np.abs(correlations(basis, term) - limit).max())
    assert errors[-1] < 0.01
    assert errors[-1] < errors[0] / 2 + 1e-4


def test_ratios_of_eigenvalues_tend_to_those_of_the_circle_at_random_rows_too():
    limit, errors = np.repeat(np.arange(1, 5) ** 2.0, 2), []
    for n_nodes in (250, 4000):
        basis = circle(np.sort(np.random.default_rng(1).uniform(0, 2 * np.pi, n_nodes)))
        ratios = basis.eigenvalues[1:9] / basis.eigenvalues[1:3].mean()
        errors.append(np.abs(ratios / limit - 1).mean())
    assert errors[1] < 0.06
    assert errors[1] < errors[0]


def test_prior_odds_of_components_do_not_know_the_number_of_rows():
    few, many = (learnt_mixture(even(n), 3, 30) for n in (400, 3200))
    assert np.abs(features(even(400), 3, 30) - features(even(3200), 3, 30)).max() < 0.02
    assert few.n_components == many.n_components
    np.testing.assert_allclose(few.log_probabilities, many.log_probabilities, atol=0.02)
