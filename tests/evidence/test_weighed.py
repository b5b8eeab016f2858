"""Answers averaged over hyperparameters, against sums over fine grids and by simulation."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import graphuq as gq
from graphuq.evidence.hyperpriors import hyperpriors_of
from graphuq.evidence.regression import CONSTANT_STD, GraphRegression
from graphuq.evidence.weighed import SCALES, SHAPES_LOG_STD, learn, with_values
from graphuq.models.averaged import averaged
from graphuq.models.numbers import GivenNumbers
from graphuq.models.predictive import StudentT
from known_fields import series_covariance

NAMES = ("tau", "alpha", "field_std", "noise_std")
GRAPH = gq.graphs.knn_graph(np.random.default_rng(0).normal(size=(40, 2)), n_neighbors=6)
SPECTRUM = gq.laplacian_spectrum(GRAPH, "random-walk", 25)
LABELLED = np.array([0, 5, 9, 14, 22, 31, 36])
VALUES = np.array([0.4, -1.2, 0.9, 0.1, 1.7, -0.6, -1.3])
START = GraphRegression(SPECTRUM, gq.priors.Matern(tau=0.4, alpha=1.5), LABELLED, VALUES)


def answer(start, names):
    """Return the distribution of a new number at every node."""
    best, (names, values, weights) = learn(start, names)
    engines = [with_values(best, dict(zip(names, row, strict=True))) for row in values]
    fields = [engine.field() for engine in engines]
    stds = [np.hypot(f[1], e.noise_std) for f, e in zip(fields, engines, strict=True)]
    found = averaged(np.array([f[0] for f in fields]), np.array(stds), weights[:, None])
    return StudentT(*found)


def test_two_deviations_are_summed_as_on_a_fine_grid():
    """Each point of the grid is a Gaussian process of all nodes, by dense formulas."""
    found = answer(START, ("field_std", "noise_std"))
    series = series_covariance(START.prior, SPECTRUM)
    log_weights, means, stds = [], [], []
    for log_a in np.linspace(-4, 4, 61):
        for log_noise in np.linspace(np.log(0.5) - 4, np.log(0.5) + 4, 61):
            prior = np.exp(2 * log_a) * series + CONSTANT_STD**2
            k = prior[np.ix_(LABELLED, LABELLED)] + np.exp(2 * log_noise) * np.eye(7)
            gain = prior[:, LABELLED] @ np.linalg.inv(k)
            log_weights.append(
                multivariate_normal(np.zeros(7), k).logpdf(VALUES)
                + norm.logpdf(log_a)
                + norm.logpdf(log_noise, np.log(0.5))
            )
            means.append(gain @ VALUES)
            variance = np.diagonal(prior - gain @ prior[LABELLED]) + np.exp(2 * log_noise)
            stds.append(np.sqrt(variance))
    free = np.setdiff1d(np.arange(40), LABELLED)
    means, stds = np.array(means)[:, free], np.array(stds)[:, free]
    weights = np.exp(np.array(log_weights) - np.max(log_weights))
    weights /= weights.sum()
    mean = weights @ means
    std = np.sqrt(weights @ (stds**2 + (means - mean) ** 2))
    np.testing.assert_allclose(found.mean[free], mean, atol=0.05 * std.mean())
    np.testing.assert_allclose(found.std[free], std, rtol=0.05)
    for level in (0.05, 0.25, 0.9, 0.975):  # of the sum itself, which is no Student's t
        reached = weights @ norm.cdf((found.quantile(level)[free] - means) / stds)
        np.testing.assert_allclose(reached, level, atol=0.02)


def test_nothing_to_learn_is_one_choice():
    best, (names, values, weights) = learn(START, ())
    assert best is START
    assert names == ()
    assert values.shape == (1, 0)
    assert weights.tolist() == [1.0]
    assert np.isinf(answer(START, ()).degrees).all()


@pytest.mark.parametrize("labels", [4, 7])
def test_weights_sum_to_one_and_fewer_numbers_say_less(labels):
    start = dataclasses.replace(START, labelled=LABELLED[:labels], values=VALUES[:labels])
    _, (names, values, weights) = learn(start, NAMES)
    assert names == NAMES
    assert weights.sum() == pytest.approx(1)
    assert np.all(weights > 0)
    spread = np.sqrt(weights @ (np.log(values) - weights @ np.log(values)) ** 2)
    assert np.all(spread < 1.2 * np.array([0.5, 0.5, 1.0, 1.0]))  # hyperpriors are as wide
    assert np.all(spread > 0.1)


def test_left_out_numbers_change_the_weights():
    """As if evidences of the six other numbers were computed again."""
    given = GivenNumbers(LABELLED, VALUES, np.ones(7), np.ones(7))
    posterior = gq.models.Regression().posterior(SPECTRUM, given)
    found, spread = posterior.left_out, posterior.spread
    for j in (0, 4):
        others = np.arange(7) != j
        log_weights, means, stds = np.log(posterior.weighed.weights), [], []
        for k, engine in enumerate(posterior.engines):
            less = dataclasses.replace(
                engine,
                labelled=LABELLED[others],
                values=engine.values[others],
                weights=np.ones(6),
            )
            log_weights[k] += less.log_evidence - engine.log_evidence
            mean, std = (part[LABELLED[j]] for part in less.field())
            means.append(mean)
            stds.append(np.hypot(std, engine.noise_std))
        weights = np.exp(log_weights - log_weights.max())
        weights = weights[:, None] / weights.sum()
        by_hand = averaged(np.array(means)[:, None], np.array(stds)[:, None], weights)
        assert found.mean[j] == pytest.approx(posterior.location + spread * by_hand.mean[0])
        assert found.std[j] == pytest.approx(spread * by_hand.std[0])
        assert found.degrees[j] == pytest.approx(by_hand.degrees[0])


def coverage(known, n_draws=150, n_given=8):
    """Return the share of new numbers in 90 % intervals; all is drawn from the model itself."""
    rng, inside = np.random.default_rng(4), []
    shapes = {n: h._replace(log_std=SHAPES_LOG_STD) for n, h in hyperpriors_of(SPECTRUM).items()}
    hyperpriors = [(shapes | SCALES)[name] for name in NAMES]
    for _ in range(n_draws):
        values = [h.median * np.exp(h.log_std * rng.normal()) for h in hyperpriors]
        model = with_values(START, dict(zip(NAMES, values, strict=True)))
        prior = model.field_std**2 * series_covariance(model.prior, SPECTRUM)
        field = rng.multivariate_normal(np.zeros(40), prior, method="eigh")
        numbers = field + rng.normal() + model.noise_std * rng.normal(size=40)
        given = rng.choice(40, n_given, replace=False)
        start = dataclasses.replace(START, labelled=given, values=numbers[given])
        if known:
            start, names = learn(start, NAMES)[0], ()
        else:
            names = NAMES
        low, high = answer(start, names).interval(0.9).T
        inside.append(np.delete((low <= numbers) & (numbers <= high), given).mean())
    return np.mean(inside), np.std(inside) / np.sqrt(n_draws)


def test_intervals_of_unknown_hyperparameters_hold_what_they_say():
    found, error = coverage(known=False)
    assert abs(found - 0.9) < 3 * error


def test_the_best_hyperparameters_alone_are_too_certain():
    found, error = coverage(known=True)
    assert found < 0.9 - 3 * error
