"""The simulated evidence against orthant probabilities and plain simulation."""

import numpy as np
import pytest
from reference import covariance, orthant

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts, InvalidInput

WEIGHTS = random_adjacency(24, seed=3)
LABELLED, LABELS = np.array([0, 3, 7, 12]), np.array([1, -1, 1, -1])


def build(likelihood, n_eigenpairs=12, tail=None, prior=None):
    graph = gq.graphs.from_adjacency(WEIGHTS)
    spectrum = gq.laplacian_spectrum(
        graph, n_eigenpairs=n_eigenpairs, tail_eigenvalue=tail or False
    )
    prior = prior or gq.priors.InverseLaplacian()
    return gq.Posterior(spectrum, prior, likelihood, LABELLED, LABELS)


@pytest.mark.parametrize(("n_eigenpairs", "tail"), [(12, None), (3, 0.8)])
def test_evidence_of_probit(n_eigenpairs, tail):
    """Evidence of probit agrees with the orthant probability of field plus noise."""
    found = gq.estimate_evidence(build(gq.likelihoods.Probit(0.05), n_eigenpairs, tail))
    law = covariance(WEIGHTS, n_eigenpairs, tail)[np.ix_(LABELLED, LABELLED)]
    truth = np.log(orthant(law + 0.05**2 * np.eye(4), LABELS, error=1e-7))
    assert found.std_error < 2e-3
    assert abs(found.log_evidence - truth) < 4 * found.std_error + 1e-5
    assert found.effective_share > 0.95
    gap = abs(found.expectation_propagation - truth)
    assert gap < 0.1
    if tail is None:
        assert gap > 8 * found.std_error, "else this would not tell the two apart"


def test_evidence_of_logistic():
    likelihood = gq.likelihoods.Logistic()
    found = gq.estimate_evidence(build(likelihood), n_draws=20_500, rng=3)
    law = covariance(WEIGHTS, 12, None)[np.ix_(LABELLED, LABELLED)]
    u = np.random.default_rng(0).multivariate_normal(np.zeros(4), law, 200_000)
    labels = np.tile(LABELS, 200_000).astype(float)
    plain = np.exp(np.asarray(likelihood.log_prob(u.ravel(), labels))).reshape(-1, 4).prod(axis=1)
    error = np.hypot(found.std_error, plain.std() / plain.mean() / np.sqrt(200_000))
    assert error < 0.01
    assert abs(found.log_evidence - np.log(plain.mean())) < 4 * error


def test_unsupported_models_are_refused():
    with pytest.raises(InvalidInput, match="n_draws: 1"):
        gq.estimate_evidence(build(gq.likelihoods.Probit()), n_draws=1)
    learnt = gq.priors.Matern(tau=gq.LogUniform(0.1, 1.0))
    with pytest.raises(IncompatibleParts, match="tau is learnt"):
        gq.estimate_evidence(build(gq.likelihoods.Probit(), prior=learnt))
    with pytest.raises(IncompatibleParts, match="without a tail"):
        gq.estimate_evidence(build(gq.likelihoods.Logistic(), 3, 0.8))
