"""Scores of the rules, against numbers computed from their definitions, one row at a time."""

import dataclasses

import numpy as np
import pytest
from pools import moved, random_pool, softmax
from scipy import stats

from graphuq.acquisition import (
    RULES,
    Entropy,
    ExpectedErrorReduction,
    Margin,
    ModelChange,
    MutualInformation,
    Random,
    Rule,
    SigmaOptimality,
    StochasticMargin,
    VarianceReduction,
    VOptimality,
)
from graphuq.acquisition.pool import SHARPNESS
from graphuq.errors import InvalidInput


@pytest.mark.parametrize("name", RULES)
def test_scores_are_one_number_for_each_candidate(name):
    rule = RULES[name]()
    assert isinstance(rule, Rule)
    for n_classes in (2, 4):
        pool = random_pool(n_classes=n_classes)
        scores = rule.scores(pool)
        assert scores.shape == pool.rows.shape
        assert np.isfinite(scores).all()


def test_margin_and_entropy():
    pool = random_pool()
    ordered = np.sort(pool.probabilities, axis=1)
    np.testing.assert_allclose(Margin().scores(pool), 1 - ordered[:, -1] + ordered[:, -2])
    np.testing.assert_allclose(Entropy().scores(pool), stats.entropy(pool.probabilities, axis=1))


def test_random_scores_differ_from_call_to_call():
    pool = random_pool()
    rule = Random()
    assert (rule.scores(pool) != rule.scores(pool)).all()


@pytest.mark.parametrize("power", [0, 2])
def test_stochastic_margin_draws_in_proportion(power):
    """Frequencies of 4,000 draws, by a chi-square test of level 0.001."""
    pool, rule = random_pool(), StochasticMargin(power)
    counts = np.bincount([rule.scores(pool).argmax() for _ in range(4000)], minlength=12)
    chances = pool.n_represented * Margin().scores(pool) ** power
    expected = 4000 * chances / chances.sum()
    assert expected.min() > 5
    assert ((counts - expected) ** 2 / expected).sum() < stats.chi2.isf(0.001, 11)
    assert np.abs(counts - 4000 / 12).max() > 100  # a uniform sample would not pass
    with pytest.raises(InvalidInput, match="0 or more"):
        StochasticMargin(-1)


def test_mutual_information_is_that_of_many_draws():
    """The field of each class at a candidate is drawn 200,000 times."""
    pool, rng = random_pool(n_rows=5, noise_std=0.8), np.random.default_rng(1)
    expected = []
    for c in range(5):
        mean = np.log(pool.probabilities[c]) / pool.sharpness[c]
        spread = np.sqrt(pool.covariance[c, c])
        u = mean + spread * rng.normal(size=(200_000, 3))
        p = softmax(SHARPNESS / 0.8 * u)
        logs = np.log(p, where=p > 0, out=np.zeros_like(p))
        marginal = p.mean(axis=0)
        expected.append(-(marginal * np.log(marginal)).sum() + (p * logs).sum(axis=1).mean())
    np.testing.assert_allclose(MutualInformation().scores(pool), expected, atol=0.03)


def test_mutual_information_falls_with_the_noise_and_without_it_is_the_entropy():
    scores = [MutualInformation().scores(random_pool(noise_std=g)).mean() for g in (0.1, 1, 10)]
    assert scores[0] > 1.5 * scores[1] > 3 * scores[2] > 0
    pool = dataclasses.replace(random_pool(noise_std=0.0), probabilities=np.full((12, 3), 1 / 3))
    np.testing.assert_allclose(MutualInformation().scores(pool), np.log(3), atol=0.01)


@pytest.mark.parametrize(
    ("rule", "total"), [(VOptimality(), np.trace), (SigmaOptimality(), np.sum)]
)
def test_optimality_is_the_variance_lost_by_conditioning(rule, total):
    """The covariance of all rows is inverted, gains the precision of one, and is inverted."""
    pool = random_pool()
    n_rows, n_all = pool.cross_covariance.shape
    before = random_covariance(pool)
    expected = []
    for c in range(n_rows):
        precision = np.linalg.inv(before)
        precision[c, c] += 1 / 0.4**2
        expected.append(total(before) - total(np.linalg.inv(precision)))
    assert n_all == n_rows + 5
    np.testing.assert_allclose(rule.scores(pool), expected)


def random_covariance(pool):
    """Return the covariance of all rows of `random_pool`, made again."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(17, 6))
    covariance = root @ root.T + 0.1 * np.eye(17)
    np.testing.assert_allclose(covariance[:12], pool.cross_covariance)
    return covariance


def test_variance_reduction_is_the_mean_square_of_small_moves():
    pool = random_pool(scale=1e-3, noise_std=1.0)
    expected = []
    for c in range(12):
        squares = [
            ((moved(pool, c, y, known=False) - pool.target_probabilities) ** 2).sum()
            * pool.probabilities[c, y]
            for y in range(3)
        ]
        expected.append(sum(squares))
    np.testing.assert_allclose(VarianceReduction().scores(pool), expected, rtol=1e-3)


def test_expected_errors_after_every_label_of_every_candidate():
    pool = random_pool()
    expected = []
    for c in range(12):
        shares = pool.probabilities[c] * (pool.probabilities[c] >= 0.02)
        errors = [(1 - moved(pool, c, y).max(axis=1)).mean() for y in range(3)]
        expected.append(-(shares * errors).sum() / shares.sum())
    np.testing.assert_allclose(ExpectedErrorReduction().scores(pool), expected)


def test_expected_error_reduction_looks_at_the_most_influential_of_many():
    pool = random_pool(n_rows=300)
    scores = ExpectedErrorReduction().scores(pool)
    looked_at = np.isfinite(scores)
    influence = VarianceReduction().scores(pool)
    assert looked_at.sum() == 100
    assert influence[looked_at].min() >= influence[~looked_at].max()


def test_model_change_is_the_least_move_of_the_mean_field():
    pool = random_pool()
    expected = []
    for c in range(12):
        changes = []
        for y in range(3):
            pull = pool.sharpness[c] * ((np.arange(3) == y) - pool.probabilities[c])
            changes.append(np.linalg.norm(np.outer(pool.cross_covariance[c], pull)))
        expected.append(min(changes))
    np.testing.assert_allclose(ModelChange().scores(pool), expected)
