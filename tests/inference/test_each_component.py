"""Methods on each component of a mixture, against exact facts and weighted draws of the prior."""

import functools

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

import graphuq as gq
from graphuq.inference.model_average.class_shares import ClassShares
from graphuq.models import Mixture, Term

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 2))
BASIS = gq.Basis.of(gq.graphs.knn_graph(X, 6), n_eigenpairs=12)
NODES, LABELS = np.array([0, 7, 20, 33]), np.array([1, -1, 1, -1])
PRIOR = Mixture(
    [
        Term(2.0, gq.priors.Matern(0.3, 4.0)),
        Term(0.7, gq.priors.Matern(1.0, 2.0, include_constant=True)),
        Term(1.5, block="exponential"),
        [Term(1.0, gq.priors.Matern(0.5, 2.0)), Term(0.8, block="exponential")],
    ],
    gq.Categorical([0.3, 0.2, 0.4, 0.1]),
)
N_PRIOR = 400_000  # weighted draws, whose error is demanded to be below 0.003


def posterior(design):
    likelihood = gq.likelihoods.Probit(1.0, random_labels=True)
    return gq.Posterior(BASIS, PRIOR, likelihood, NODES, LABELS, label_design=design)


@functools.cache
def weighted_draws(design):
    """Return the probability of +1 at each node, and its error, by importance sampling."""
    rng, whole = np.random.default_rng(0), posterior(design)
    number = rng.choice(4, N_PRIOR, p=[0.3, 0.2, 0.4, 0.1])
    coefficients = (
        rng.normal(size=(N_PRIOR, BASIS.n_columns)) * np.asarray(whole.modes.stds)[number]
    )
    u = coefficients @ (np.asarray(BASIS.basis) * BASIS.node_scale[:, None]).T
    logs = log_ndtr(LABELS * u[:, NODES]).sum(axis=1)
    if design == "by-class":
        logs += ClassShares.of(whole).log_weights(coefficients)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    p = ndtr(u)
    mean = weights @ p
    return mean, np.sqrt((weights**2) @ (p - mean) ** 2)


@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.slow_after(1)
@pytest.mark.parametrize("design", ["by-class", "random"])
def test_draws_agree_with_weighted_draws_of_the_prior(design):
    expected, error = weighted_draws(design)
    assert error.max() < 0.003
    method = gq.inference.ExactHamiltonian()
    result = gq.infer(posterior(design), method, n_samples=1000, n_chains=8, rng=1)
    total = np.hypot(result.mcse[:, 1], error)
    # Four components of 20 strata: a weight is wrong by at most a fortieth.
    assert (np.abs(result.probabilities[:, 1] - expected) < 4 * total + 0.025).all()


@pytest.mark.parametrize("design", ["random", "by-class"])
def test_gaussians_agree_with_weighted_draws_of_the_prior(design):
    expected, _ = weighted_draws(design)
    result = gq.infer(posterior(design), "expectation-propagation")
    assert result.log_evidence is not None
    assert np.abs(result.probabilities[:, 1] - expected).max() < 0.04


@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize("design", ["random", "by-class"])
def test_the_likelihood_of_a_joined_draw_is_that_of_its_field(design):
    """Coefficients given the field at the labels have this field, and draws stay together."""
    result = gq.infer(posterior(design), "exact-hamiltonian", n_samples=60, n_chains=2)
    draws = result.answer
    u = draws.white @ (np.asarray(BASIS.basis)[NODES] * BASIS.node_scale[NODES, None]).T
    found = log_ndtr(LABELS * u).sum(axis=2)
    np.testing.assert_allclose(draws.log_likelihood, found, atol=1e-6)
