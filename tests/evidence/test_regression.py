"""Regression on a graph against dense Gaussian-process formulas and against simulation."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal, norm

import graphuq as gq
from graphuq.evidence.regression import CONSTANT_STD, GraphRegression
from graphuq.evidence.weighed import maximize_regression, slopes_of, with_values
from graphuq.spectrum.linear import linear_functions
from known_fields import series_covariance

NAMES = ("tau", "alpha", "field_std", "noise_std")
RNG = np.random.default_rng(0)
GRAPH = gq.graphs.knn_graph(RNG.normal(size=(40, 2)), n_neighbors=6)
LABELLED = np.array([0, 5, 9, 14, 22, 31, 36])
VALUES = np.array([0.4, -1.2, 0.9, 0.1, 1.7, -0.6, -1.3])


def regression(laplacian="random-walk", tail=False, weights=None, n_eigenpairs=25, labelled=7):
    spectrum = gq.laplacian_spectrum(GRAPH, laplacian, n_eigenpairs, tail_eigenvalue=tail)
    return GraphRegression(
        spectrum,
        gq.priors.Matern(tau=0.4, alpha=1.5),
        LABELLED[:labelled],
        VALUES[:labelled],
        field_std=0.8,
        noise_std=0.35,
        weights=weights,
    )


def covariances(model):
    """Return the prior covariance of ``c + a u`` at all nodes, and the variances of the noise."""
    weights = np.ones(len(model.values)) if model.weights is None else model.weights
    series = series_covariance(model.prior, model.spectrum)
    return model.field_std**2 * series + CONSTANT_STD**2, model.noise_std**2 / weights


CASES = [
    ("random-walk", False, None),
    ("symmetric", 1.3, None),
    ("random-walk", 1.3, np.array([1.0, 0.2, 3.0, 1.0, 0.5, 1.0, 2.0])),
]


def assert_gaussian_process(model, prior, noise):
    """Rasmussen & Williams 2006, (2.23), (2.24) and (2.30), with matrices of all nodes."""
    k = prior[np.ix_(LABELLED, LABELLED)] + np.diag(noise)
    expected = multivariate_normal(np.zeros(7), k).logpdf(VALUES)
    np.testing.assert_allclose(model.log_evidence, expected, rtol=1e-9)
    gain = prior[:, LABELLED] @ np.linalg.inv(k)
    mean, std = model.field()
    np.testing.assert_allclose(mean, gain @ VALUES, atol=1e-8)
    variance = np.diagonal(prior - gain @ prior[LABELLED])
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-6)


@pytest.mark.parametrize(("laplacian", "tail", "weights"), CASES)
def test_evidence_mean_and_deviation_are_those_of_a_gaussian_process(laplacian, tail, weights):
    """Rasmussen & Williams 2006, (2.23), (2.24) and (2.30), with matrices of all nodes."""
    model = regression(laplacian, tail, weights)
    prior, noise = covariances(model)
    assert_gaussian_process(model, prior, noise)


def test_more_numbers_than_modes():
    model = regression(n_eigenpairs=4)
    prior, noise = covariances(model)
    k = prior[np.ix_(LABELLED, LABELLED)] + np.diag(noise)
    expected = multivariate_normal(np.zeros(7), k).logpdf(VALUES)
    np.testing.assert_allclose(model.log_evidence, expected, rtol=1e-9)


@pytest.mark.parametrize("n_eigenpairs", [4, 25])  # fewer columns than numbers, and more
@pytest.mark.parametrize(("laplacian", "tail", "weights"), CASES)
def test_leave_one_out_is_what_the_other_numbers_predict(laplacian, tail, weights, n_eigenpairs):
    """The regression of the six other numbers at the node of the seventh, plus its noise."""
    model = regression(laplacian, tail, weights, n_eigenpairs)
    mean, std = model.leave_one_out()
    for j, node in enumerate(LABELLED):
        others = np.arange(7) != j
        own = None if weights is None else weights[others]
        refit = dataclasses.replace(
            model, labelled=LABELLED[others], values=VALUES[others], weights=own
        )
        expected, field_std = (part[node] for part in refit.field())
        np.testing.assert_allclose(mean[j], expected, atol=1e-8)
        noise = model.noise_variance[j]
        np.testing.assert_allclose(std[j], np.sqrt(field_std**2 + noise), rtol=1e-7)


@pytest.mark.parametrize(("laplacian", "tail", "weights"), CASES)
def test_the_most_uncertain_nodes_are_those_of_refits(laplacian, tail, weights):
    """Each is the widest one once those before it have a number, whatever it is."""
    model = regression(laplacian, tail, weights)
    free = np.setdiff1d(np.arange(40), LABELLED)
    found = model.most_uncertain(free, 6)
    own = np.ones(7) if weights is None else weights
    for k, node in enumerate(found):
        refit = dataclasses.replace(
            model,
            labelled=np.append(LABELLED, found[:k]),
            values=np.append(VALUES, RNG.normal(size=k)),
            weights=np.append(own, np.ones(k)),
        )
        left = np.setdiff1d(free, found[:k])
        assert node == left[refit.field()[1][left].argmax()]
    widest = free[np.argsort(-model.field()[1][free])[:6]]
    assert found[0] == widest[0]
    assert set(found) != set(widest)
    assert len(model.most_uncertain(free, 99)) == len(set(model.most_uncertain(free, 99))) == 33
    assert len(model.most_uncertain(free[:0], 5)) == 0


def test_numbers_to_come_may_differ_in_noise():
    model, free = regression(), np.setdiff1d(np.arange(40), LABELLED)
    noise = np.where(free % 2, 1e-3, 1e3)
    found = model.most_uncertain(free, 8, noise)
    for k, node in enumerate(found):
        seen = np.searchsorted(free, found[:k])
        refit = dataclasses.replace(
            model,
            labelled=np.append(LABELLED, found[:k]),
            values=np.append(VALUES, np.zeros(k)),
            weights=np.append(np.ones(7), model.noise_std**2 / noise[seen]),
        )
        left = np.setdiff1d(free, found[:k])
        assert node == left[refit.field()[1][left].argmax()]
    assert set(found) != set(model.most_uncertain(free, 8))


def test_a_far_row_has_the_constant_only():
    model = regression()
    mean, std = model.field_at(np.zeros((1, 25)), np.ones(1))
    prior, noise = covariances(model)
    k = prior[np.ix_(LABELLED, LABELLED)] + np.diag(noise)
    constant = np.full(7, CONSTANT_STD**2)
    np.testing.assert_allclose(mean, constant @ np.linalg.solve(k, VALUES), atol=1e-9)
    left = CONSTANT_STD**2 - constant @ np.linalg.solve(k, constant)
    np.testing.assert_allclose(std, np.sqrt(left), rtol=1e-6)


@pytest.mark.parametrize(("laplacian", "tail", "weights"), CASES)
def test_slopes_are_derivatives(laplacian, tail, weights):
    model = regression(laplacian, tail, weights)
    at = np.log([0.4, 1.5, 0.8, 0.35])

    def evidence(x):
        return with_values(model, dict(zip(NAMES, np.exp(x), strict=True))).log_evidence

    expected = approx_fprime(at, evidence, 1e-6)
    np.testing.assert_allclose(slopes_of(model, NAMES), expected, atol=2e-4)


def test_a_weight_is_as_many_measurements():
    """A number of weight 4 has the posterior of four equal ones, up to their own scatter."""
    weighted = regression(weights=np.array([4.0, 1, 1, 1, 1, 1, 1]))
    prior, _ = covariances(weighted)
    nodes = np.concatenate([[LABELLED[0]] * 4, LABELLED[1:]])
    values = np.concatenate([[VALUES[0]] * 4, VALUES[1:]])
    k = prior[np.ix_(nodes, nodes)] + weighted.noise_std**2 * np.eye(10)
    np.testing.assert_allclose(
        weighted.field()[0], prior[:, nodes] @ np.linalg.solve(k, values), atol=1e-7
    )


def test_the_maximum_is_not_below_its_neighbours():
    start = regression()
    best = maximize_regression(start, ("noise_std",))
    assert best.prior == start.prior
    assert best.field_std == start.field_std

    def loss(factor):
        model = with_values(best, {"noise_std": best.noise_std * factor})
        penalty = 0.5 * (np.log(model.noise_std / 0.5) / 1.0) ** 2  # the hyperprior of the noise
        return penalty - model.log_evidence

    assert loss(1.0) < min(loss(1.02), loss(0.98))
    assert maximize_regression(start, ()) is start


def simulated(rng, noise_std=0.4, n_labels=15):
    """Return a fitted model of numbers drawn from its own prior, and the true field."""
    model = regression(n_eigenpairs=20)
    prior, _ = covariances(model)
    prior = prior - CONSTANT_STD**2
    field = rng.multivariate_normal(np.zeros(40), prior, method="eigh") + rng.normal()
    labelled = rng.choice(40, n_labels, replace=False)
    values = field[labelled] + noise_std * rng.normal(size=n_labels)
    known = GraphRegression(model.spectrum, model.prior, labelled, values, 0.8, noise_std)
    return known, field


def test_intervals_cover_as_often_as_they_say():
    """Fields drawn from the prior lie in their 80 % intervals in 80 of 100 simulations."""
    rng, covered = np.random.default_rng(1), []
    for _ in range(400):
        model, field = simulated(rng)
        mean, std = model.field()
        covered.append((np.abs(field - mean) < norm.ppf(0.9) * std).mean())
    error = np.std(covered, ddof=1) / np.sqrt(len(covered))
    assert error < 0.01
    assert abs(np.mean(covered) - 0.8) < 4 * error


def test_a_wrong_noise_is_noticed_by_coverage():
    """Intervals for a noise that is too small cover too rarely: the test above can fail."""
    rng, covered = np.random.default_rng(1), []
    for _ in range(200):
        model, field = simulated(rng)
        mean, std = with_values(model, {"noise_std": 0.1}).field()
        covered.append((np.abs(field - mean) < norm.ppf(0.9) * std).mean())
    error = np.std(covered, ddof=1) / np.sqrt(len(covered))
    assert np.mean(covered) < 0.8 - 4 * error


def test_learnt_hyperparameters_are_near_the_true_ones():
    """With many numbers the evidence finds noise and size of a simulated field."""
    rng = np.random.default_rng(3)
    graph = gq.graphs.knn_graph(np.linspace(0, 1, 600)[:, None], n_neighbors=6)
    spectrum = gq.laplacian_spectrum(graph, "random-walk", 60)
    prior = gq.priors.Matern(tau=0.05, alpha=2.0)
    std = prior.spectral_std(spectrum)
    q = np.asarray(spectrum.eigenvectors)
    field = spectrum.node_scale * (q @ (std.modes * rng.normal(size=60)))
    values = field + 0.3 * rng.normal(size=600)
    start = GraphRegression(spectrum, gq.priors.Matern(), np.arange(600), values)
    best = maximize_regression(start, NAMES)
    assert abs(np.log(best.noise_std / 0.3)) < 4 / np.sqrt(2 * 600)
    truth = GraphRegression(spectrum, prior, np.arange(600), values, 1.0, 0.3)
    assert best.log_evidence > truth.log_evidence - 1


@pytest.mark.parametrize("n_eigenpairs", [4, 25])  # fewer columns than numbers, and more
def test_a_linear_part_is_that_of_bayesian_linear_regression(n_eigenpairs):
    """Its covariance ``g² F Fᵀ`` is added to that of the field, at all nodes."""
    block = linear_functions(np.random.default_rng(3).normal(size=(40, 2)))
    plain = regression(tail=1.3, n_eigenpairs=n_eigenpairs)
    basis = gq.Basis(plain.spectrum, (block,))
    model = dataclasses.replace(plain, spectrum=basis, linear_std=0.7)
    prior, noise = covariances(plain)
    prior = prior + 0.49 * block.values @ block.values.T
    assert_gaussian_process(model, prior, noise)

    def evidence(x):
        values = dict(zip((*NAMES, "linear_std"), np.exp(x), strict=True))
        return with_values(model, values).log_evidence

    slopes = approx_fprime(np.log([0.4, 1.5, 0.8, 0.35, 0.7]), evidence, 1e-6)
    np.testing.assert_allclose(slopes_of(model, (*NAMES, "linear_std")), slopes, atol=2e-4)
