"""Proposals made label by label: weights, distribution and unsupported models."""

import numpy as np
import pytest
from reference import covariance, orthant, probit_label_mean, step_label_mean
from scipy.special import log_ndtr
from scipy.stats import kstest, multivariate_normal, truncnorm

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts
from graphuq.inference.independence import ghk
from graphuq.posterior.field import LowRankField
from graphuq.posterior.target import Target
from graphuq.run.choose_sampler import choose_sampler

EP = gq.inference.ExpectationPropagation()
WEIGHTS = random_adjacency(24, seed=3)
LABELLED, LABELS = np.array([0, 3, 7, 12]), np.array([1, -1, 1, -1])
NODES = [1, 5, 7, 20]
SAMPLER = gq.inference.SequentialIndependence(reference=EP)
LEVELS = {
    "level set": (
        gq.likelihoods.LevelSet(1.0),
        dict.fromkeys((-1, 1), 1 / (1 + np.exp(-2))),
        dict.fromkeys((-1, 1), 1 / (1 + np.exp(2))),
    ),
    "atomic": (gq.likelihoods.AtomicNoise(0.9, 0.7), {1: 0.9, -1: 0.7}, {1: 0.3, -1: 0.1}),
    "noise-free": (gq.likelihoods.NoiseFree(), {1: 1, -1: 1}, {1: 0, -1: 0}),
}


def build(likelihood, n_eigenpairs=12, tail=None, labelled=LABELLED, labels=LABELS):
    graph = gq.graphs.from_adjacency(WEIGHTS)
    spectrum = gq.laplacian_spectrum(
        graph, n_eigenpairs=n_eigenpairs, tail_eigenvalue=tail or False
    )
    return gq.Posterior(spectrum, gq.priors.InverseLaplacian(), likelihood, labelled, labels)


def proposed(posterior, n, lookahead=True, seed=0, sites=None):
    target = posterior.target
    gaussian = EP.fit(target) if lookahead else None
    if sites is not None:
        gaussian = gaussian._replace(sites=sites(gaussian.sites))
    propose = SAMPLER.proposals(target, gaussian, "float64", n * 10)
    return propose(np.random.default_rng(seed), n)


def evidence(name, law):
    """Return the evidence, a sum of orthant probabilities over all signs at the labels."""
    if name == "probit":
        return orthant(law + 0.5**2 * np.eye(4), LABELS)
    _, right, wrong = LEVELS[name]
    total = 0.0
    for code in range(16):
        signs = np.where(code >> np.arange(4) & 1, 1, -1)
        levels = [right[y] if s == y else wrong[-s] for s, y in zip(signs, LABELS, strict=True)]
        if np.prod(levels):
            total += np.prod(levels) * orthant(law, signs)
    return total


@pytest.mark.parametrize("lookahead", [True, False])
@pytest.mark.parametrize(("n_eigenpairs", "tail"), [(12, None), (3, 0.8)])
@pytest.mark.parametrize("name", ["probit", *LEVELS])
def test_the_mean_weight_is_the_evidence(name, n_eigenpairs, tail, lookahead):
    """The mean ratio of posterior to proposal is the evidence, with and without lookahead."""
    likelihood = gq.likelihoods.Probit(0.5) if name == "probit" else LEVELS[name][0]
    law = covariance(WEIGHTS, n_eigenpairs, tail)[np.ix_(LABELLED, LABELLED)]
    weights = np.exp(proposed(build(likelihood, n_eigenpairs, tail), 40_000, lookahead).log_weight)
    error = weights.std() / 200
    assert error < (0.001 if lookahead else 0.01) * weights.mean()
    truth = evidence(name, law)
    assert abs(weights.mean() - truth) < 4 * error + 1e-5 * truth


def test_weights_of_one_label_are_equal():
    """The value at one label is drawn from the posterior itself, so weights are equal."""
    field = LowRankField(np.array([[0.6, 0.8]]), np.ones((1, 2)), np.ones(1), 0.0)
    for likelihood in (gq.likelihoods.Probit(0.5), gq.likelihoods.AtomicNoise(0.9, 0.7)):
        target = Target(field, likelihood, np.ones(1))
        propose = SAMPLER.proposals(target, EP.fit(target), "float64", 1000)
        assert np.ptp(propose(np.random.default_rng(0), 100).log_weight) < 1e-12


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(("n_eigenpairs", "tail"), [(12, None), (12, 0.8), (3, 0.8)])
@pytest.mark.parametrize("name", LEVELS)
def test_step_label_means(name, n_eigenpairs, tail):
    """Label means agree with sums over orthants, for every kind of field."""
    likelihood, right, wrong = LEVELS[name]
    posterior = build(likelihood, n_eigenpairs, tail)
    result = gq.infer(posterior, SAMPLER, n_samples=2000, n_chains=8, rng=1)
    assert result.diagnostics.acceptance > 0.95
    levels = {(y, y): right[y] for y in (-1, 1)} | {(-y, y): wrong[y] for y in (-1, 1)}
    law = covariance(WEIGHTS, n_eigenpairs, tail)
    truth = [step_label_mean(law, LABELLED, LABELS, levels, node) for node in NODES]
    error = gq.results.label_mcse(result)[NODES]
    assert error.max() < 0.015
    assert np.all(np.abs(gq.results.label_mean(result)[NODES] - truth) < 4 * error + 2e-5)


@pytest.mark.parametrize("n_eigenpairs", [3, 12])
def test_probit_of_fewer_modes_than_labels(n_eigenpairs):
    """Noise gives the labelled values full rank, even with few modes."""
    posterior = build(gq.likelihoods.Probit(0.15), n_eigenpairs)
    result = gq.infer(posterior, SAMPLER, n_samples=2000, n_chains=8, rng=1)
    law = covariance(WEIGHTS, n_eigenpairs, None)
    truth = [probit_label_mean(law, LABELLED, LABELS, 0.15, node) for node in NODES]
    error = gq.results.label_mcse(result)[NODES]
    assert error.max() < 0.02
    assert np.all(np.abs(gq.results.label_mean(result)[NODES] - truth) < 4 * error + 2e-5)


def test_wrong_sites_lower_acceptance_without_bias():
    posterior = build(LEVELS["level set"][0])
    weights = np.exp(
        proposed(posterior, 40_000, sites=lambda s: s * [[1.7], [-0.5]] + 0.05).log_weight
    )
    right = np.exp(proposed(posterior, 40_000).log_weight)
    assert weights.std() > 5 * right.std()
    error = np.hypot(weights.std(), right.std()) / 200
    assert abs(weights.mean() - right.mean()) < 4 * error


@pytest.mark.parametrize("name", ["probit", *LEVELS])
def test_without_lookahead_weights_are_bounded(name):
    """Weights are at most 1, the largest likelihood; a control variate does not change them."""
    likelihood = gq.likelihoods.Probit(0.5) if name == "probit" else LEVELS[name][0]
    target, few = build(likelihood).target, 10_000
    bounded = gq.inference.SequentialIndependence(lookahead=False, reference=EP)
    found, plain = (
        sampler.proposals(target, gaussian, "float64", few)(np.random.default_rng(0), 1000)
        for sampler, gaussian in ((bounded, EP.fit(target)), (SAMPLER, None))
    )
    np.testing.assert_array_equal(found.log_weight, plain.log_weight)
    assert found.log_weight.max() <= 1e-12
    assert np.ptp(found.log_ratio) > 0
    assert np.ptp(plain.log_ratio) == 0
    ahead = SAMPLER.proposals(target, EP.fit(target), "float64", few)
    assert np.exp(ahead(np.random.default_rng(0), 1000).log_weight).std() < (
        0.5 * np.exp(found.log_weight).std()
    )


@pytest.mark.parametrize("lookahead", [True, False])
@pytest.mark.parametrize("name", ["probit", "atomic"])
def test_the_ratio_to_the_reference(name, lookahead):
    """The ratio of posterior to reference density agrees with its formula at the draws."""
    likelihood = gq.likelihoods.Probit(0.5) if name == "probit" else LEVELS[name][0]
    target = build(likelihood).target
    gaussian, n = EP.fit(target), target.dimension
    sampler = gq.inference.SequentialIndependence(lookahead=lookahead, reference=EP)
    found = sampler.proposals(target, gaussian, "float64", 10_000)(np.random.default_rng(0), 50)
    u = found.white @ np.asarray(target.field.factor).T
    values = np.asarray(likelihood.log_prob(u.ravel(), np.tile(LABELS, 50).astype(float)))
    prior = multivariate_normal(np.zeros(n), np.eye(n)).logpdf(found.white)
    reference = multivariate_normal(gaussian.white_mean, gaussian.white_covariance)
    ratio = values.reshape(50, -1).sum(axis=1) + prior - reference.logpdf(found.white)
    np.testing.assert_allclose(found.log_ratio, ratio, atol=1e-6)


class Unweighted(gq.inference.SequentialIndependence):
    """Negative control: all proposals have equal weight."""

    def proposals(self, *arguments):
        propose = super().proposals(*arguments)

        def made(rng, n):
            found = propose(rng, n)
            return found._replace(log_weight=np.zeros(n))

        return made


def test_proposals_alone_are_wrong():
    likelihood, right, wrong = LEVELS["noise-free"]
    posterior, law = build(likelihood), covariance(WEIGHTS, 12, None)
    levels = {(y, y): right[y] for y in (-1, 1)} | {(-y, y): wrong[y] for y in (-1, 1)}
    truth = [step_label_mean(law, LABELLED, LABELS, levels, node) for node in NODES]
    off = []
    for sampler in (gq.inference.SequentialIndependence(), Unweighted()):
        result = gq.infer(posterior, sampler, n_samples=2000, n_chains=8, thin=4, rng=1)
        gap = np.abs(gq.results.label_mean(result)[NODES] - truth) / (
            4 * gq.results.label_mcse(result)[NODES] + 2e-5
        )
        off.append(gap.max())
    assert off[0] < 1 < off[1]


@pytest.mark.parametrize("least", [-3.0, 0.0, 0.5, 6.0, 40.0])
def test_normals_above_a_bound(least):
    rng = np.random.default_rng(0)
    x = np.array([ghk._normal_above(rng, least) for _ in range(4000)])
    assert x.min() > least
    law = truncnorm(least, np.inf) if least < 30 else None
    if law is not None:
        assert kstest(x, law.cdf).pvalue > 0.001
    else:  # nearly exponential with rate 40
        assert kstest((x - least) * least, "expon").pvalue > 0.001


def test_log_tail():
    for x in (-38.0, -60.0, -1e4):
        assert np.isclose(ghk._log_tail(x), log_ndtr(x), rtol=1e-8)


def test_unlikely_labels_have_finite_weights():
    """Weights are finite for labels that are very unlikely given their neighbours."""
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=2)
    posterior = gq.Posterior(
        spectrum,
        gq.priors.Matern(tau=0.01, alpha=2.0),
        gq.likelihoods.Probit(1e-3),
        LABELLED,
        LABELS,
    )
    target = posterior.target
    propose = gq.inference.SequentialIndependence().proposals(target, None, "float64", 10_000)
    found = propose(np.random.default_rng(0), 400)
    assert np.isfinite(found.log_weight).all()
    assert found.log_weight.min() < -745, "else no probability was too small for a number"


def test_draws_do_not_depend_on_the_number_of_cores(monkeypatch):
    posterior, found = build(LEVELS["level set"][0]), []
    for n_cores in (1, 5):
        monkeypatch.setattr("graphuq.utils.arrays.os.cpu_count", lambda n=n_cores: n)
        found.append(proposed(posterior, 501).white)
    np.testing.assert_array_equal(*found)


def test_unsupported_models_are_refused():
    steps, smooth = gq.likelihoods.LevelSet(1.0), gq.likelihoods.Logistic()
    with pytest.raises(IncompatibleParts, match="needs 4 eigenpairs"):
        gq.infer(build(steps, 3), SAMPLER)
    with pytest.raises(IncompatibleParts, match="levels"):
        gq.infer(build(smooth), SAMPLER)
    laplace = gq.inference.SequentialIndependence(reference=gq.inference.Laplace())
    with pytest.raises(IncompatibleParts, match="needs the sites of expectation propagation"):
        gq.infer(build(gq.likelihoods.Probit(0.5)), laplace)


def test_labels_that_determine_each_other():
    """Nearly equal rows have nearly equal values; the automatic choice is another sampler."""
    twin = random_adjacency(12, seed=1)
    twin[0, 1] = twin[1, 0] = 0.0
    twin[1] = twin[0] * (1 + 1e-11 * np.arange(12))
    twin[:, 1] = twin[1]
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(twin), n_eigenpairs=5)
    assert np.allclose(spectrum.eigenvectors[0], spectrum.eigenvectors[1], atol=1e-8)
    posterior = gq.Posterior(
        spectrum, gq.priors.InverseLaplacian(), gq.likelihoods.LevelSet(1.0), [0, 1, 5], [1, 1, -1]
    )
    with pytest.raises(IncompatibleParts, match="others determine"):
        gq.infer(posterior, SAMPLER)
    chosen = choose_sampler(posterior, EP.fit(posterior.target))
    assert not isinstance(chosen, gq.inference.SequentialIndependence)


def test_resumes_to_the_same_numbers(tmp_path):
    posterior = build(LEVELS["atomic"][0])
    options = {"n_samples": 300, "n_chains": 4, "rng": 7}
    whole = gq.infer(posterior, SAMPLER, **options)

    def interrupt(phase, done, total, acceptance):
        if phase == "sampling":
            raise KeyboardInterrupt

    path = tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        gq.infer(posterior, SAMPLER, checkpoint=path, progress=interrupt, **options)
    resumed = gq.infer(posterior, SAMPLER, checkpoint=path, **options)
    np.testing.assert_array_equal(gq.results.label_mean(resumed), gq.results.label_mean(whole))
