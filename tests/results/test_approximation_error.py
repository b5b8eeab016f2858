"""What expectation propagation says of its own error holds beside long chains."""

import types

import numpy as np
import pytest

import graphuq as gq
from graphuq.inference import ExpectationPropagation
from graphuq.results import approximation_error as ae
from graphuq.results.diagnostics import diagnostics_from

MOONS = gq.datasets.two_moons(150)
SPECTRUM = gq.laplacian_spectrum(gq.graphs.knn_graph(MOONS.features), n_eigenpairs=12)
ONE = np.array([3, 40, 77, 101, 120, 149])
LIKELIHOODS = {
    "probit, broad": gq.likelihoods.Probit(1.0),
    "probit, sharp": gq.likelihoods.Probit(0.05),
    "level set": gq.likelihoods.LevelSet(0.3),
    "atomic noise": gq.likelihoods.AtomicNoise(),
    "probit, three classes": gq.likelihoods.Probit(0.3, 3),
    "softmax, three classes": gq.likelihoods.Softmax(n_classes=3),
}


def posterior(name, contradictory=False):
    likelihood = LIKELIHOODS[name]
    if likelihood.is_multiclass:
        labels = np.arange(6) % 3
    else:
        labels = np.where(np.arange(6) % 2 == 1, 1, -1) if contradictory else MOONS.signs(1)[ONE]
    return gq.Posterior(SPECTRUM, gq.priors.Matern(), likelihood, ONE, labels)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("contradictory", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_error_is_at_least_that_found_by_chains(name, contradictory):
    given = posterior(name, contradictory)
    approximate = gq.infer(given, ExpectationPropagation())
    chains = gq.infer(given, n_samples=8000, stop=gq.Converged(label_mcse=0.005), rng=0)
    assert chains.diagnostics.converged
    unlabelled = np.setdiff1d(np.arange(150), ONE)
    unit = 1 if given.likelihood.is_multiclass else 2
    found = (
        np.abs(gq.results.label_mean(approximate) - gq.results.label_mean(chains))[unlabelled].max()
        / unit
    )
    noise = 4 * gq.results.label_mcse(chains).max() / unit
    stated = approximate.diagnostics.probability_error
    assert stated is not None
    assert found - noise <= stated  # an estimate from above
    assert stated <= 0.05 + 2.5 * found  # which is not far above


def test_a_gaussian_without_weighty_draws_says_nothing():
    """24 nodes of two moons with labels at random, which no smooth field can follow."""
    nodes = np.arange(0, 144, 6)
    labels = np.random.default_rng(2).choice([-1, 1], size=24)
    given = gq.Posterior(SPECTRUM, gq.priors.Matern(), gq.likelihoods.LevelSet(0.3), nodes, labels)
    found = gq.infer(given, ExpectationPropagation()).diagnostics
    assert found.probability_error is None
    assert 0 <= found.acceptance < 0.2
    assert "too far from the posterior to tell" in found.verdict
    check = gq.infer(given, ExpectationPropagation()).trust.checks["convergence"]
    assert (check.level, check.value) == ("amber", None)


def test_the_error_is_kept_in_plain_data():
    found = gq.infer(posterior("probit, sharp"), ExpectationPropagation()).diagnostics
    again = diagnostics_from(found.to_plain())
    assert again.verdict == found.verdict
    assert again.probability_error == found.probability_error


def test_the_error_of_an_average_is_that_of_probabilities_to_a_power():
    terms = [gq.models.Term(scale, gq.priors.Matern(0.3, 2.0)) for scale in (1.0, 3.0)]
    prior = gq.models.Mixture([(term,) for term in terms], gq.Categorical([0.5, 0.5]))
    likelihood = gq.likelihoods.Probit(1.0, random_labels=True)
    given = gq.Basis(SPECTRUM), prior, likelihood, ONE, MOONS.signs(1)[ONE]
    plain, sharp = (
        gq.infer(gq.Posterior(*given, sharpness=power), ExpectationPropagation())
        for power in (1.0, 1.5)
    )
    expected = 1.5 * plain.diagnostics.probability_error
    assert sharp.diagnostics.probability_error == pytest.approx(expected, rel=1e-9)
    assert expected > 0


@pytest.mark.parametrize(
    ("square", "error", "n_labels", "n_draws"),
    [
        (0.03**2, 0.001, 12, [25, 100]),  # 0.054 with two errors, after 0.03
        (0.03**2, 0.0003, 12, [25]),  # 0.039: close
        (0.06**2, 0.001, 12, [25]),  # not close
        (0.03**2, 0.001, ae.FEW_LABELS + 1, [25]),  # draws would take too long
    ],
)
def test_more_draws_decide_where_few_leave_it_open(square, error, n_labels, n_draws, monkeypatch):
    made = []

    def estimated(*given):
        made.append(given[-1])
        return square, error / len(made)

    monkeypatch.setattr(ae, "_estimated", estimated)
    posterior = types.SimpleNamespace(labels=np.zeros(n_labels))
    found = ae.square_error([posterior], [None], np.ones(1), np.ones(1), None)
    assert made == n_draws
    assert found == pytest.approx(square + 2 * error / len(made))
