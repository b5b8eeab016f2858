"""Log likelihoods as ArviZ expects them: one a label, so that its leave-one-out sees all labels."""

import arviz
import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import graphuq as gq

NOISE = 0.5
LABELLED, LABELS = np.array([0, 1, 4, 6, 9]), np.array([1, 1, -1, -1, 1])


def posterior_of(likelihood, labels=LABELS, weights=None):
    spectrum = gq.laplacian_spectrum(gq.graphs.ring_graph(12))
    return gq.Posterior(
        spectrum, gq.priors.Matern(tau=0.5), likelihood, LABELLED, labels, label_weights=weights
    )


def sampled(posterior, method="pcn", n_samples=500):
    return gq.infer(posterior, method, n_samples=n_samples, rng=0)


@pytest.fixture(scope="module")
def result():
    return sampled(posterior_of(gq.likelihoods.Probit(NOISE)), "exact-hamiltonian", 2000)


def test_each_label_has_its_log_probability(result):
    data = gq.to_arviz(result)
    found, u = data["log_likelihood"]["label"], data["posterior"]["u"]
    assert found.dims == ("chain", "draw", "labelled_node")
    assert found["labelled_node"].values.tolist() == LABELLED.tolist()
    expected = norm.logcdf(LABELS * u.sel(node=LABELLED).values / NOISE)
    np.testing.assert_allclose(found.values, expected, atol=1e-9)


def test_loo_of_arviz_agrees_with_orthant_probabilities(result):
    """``p(y_j | y_−j) = p(y) / p(y_−j)``, whose terms are orthants of a Gaussian."""
    factor = np.asarray(result.posterior.field.matrix())
    signed = np.outer(LABELS, LABELS) * (factor @ factor.T + NOISE**2 * np.eye(len(LABELS)))

    def log_orthant(rows):
        zeros, own = np.zeros(len(rows)), signed[np.ix_(rows, rows)]
        return multivariate_normal(zeros, own, seed=0, releps=1e-6, abseps=1e-7).logcdf(zeros)

    every = np.arange(len(LABELS))
    exact = [log_orthant(every) - log_orthant(np.delete(every, j)) for j in every]
    loo = arviz.loo(gq.to_arviz(result), pointwise=True)
    pointwise = np.asarray(getattr(loo, "loo_i", getattr(loo, "elpd_i", None)))
    assert len(pointwise) == len(LABELS)
    np.testing.assert_allclose(pointwise, exact, atol=0.05)


@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize("case", ["weights", "softmax", "soft labels", "learnt"])
def test_log_probabilities_of_labels_add_up(case):
    """Their sum is the log likelihood that the sampler had."""
    if case == "weights":
        weights = np.array([0.2, 1.0, 2.0, 0.5, 1.0])
        posterior = posterior_of(gq.likelihoods.Probit(NOISE), weights=weights)
    elif case == "softmax":
        posterior = posterior_of(gq.likelihoods.Softmax(n_classes=3), np.array([0, 1, 2, 2, 0]))
    elif case == "soft labels":
        q = np.array([[0.3, 0.7], [0.4, 0.6], [0.8, 0.2], [0.7, 0.3], [0.1, 0.9]])
        posterior = posterior_of(gq.likelihoods.SoftProbit(NOISE, q))
    else:
        posterior = posterior_of(gq.likelihoods.Probit(gq.LogUniform(0.1, 1.0)))
    data = gq.to_arviz(sampled(posterior, None if case == "learnt" else "pcn", 40))
    total = data["sample_stats"]["total_log_likelihood"].values
    found = data["log_likelihood"]["label"].sum("labelled_node").values
    np.testing.assert_allclose(found, total, atol=1e-8)
    assert "log_likelihood" not in data["sample_stats"]
