"""Few variables of a table, by the evidence of labels."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import multivariate_normal

from graphuq.evidence.few_variables import (
    NOISE,
    RATES,
    _log_prior,
    evidence_of,
    few_variables,
)

RNG = np.random.default_rng(0)
POINTS = RNG.random((24, 6))
DIFFERENCES = 3 * np.abs(POINTS.T[:, :, None] - POINTS.T[:, None, :])  # 1 on average


@pytest.mark.parametrize("n_classes", [2, 3])
def test_evidence_is_that_of_gaussians(n_classes):
    """K − 1 contrasts of the indicators, orthonormal, each have the covariance of the field."""
    classes = np.arange(24) % n_classes
    columns = np.eye(n_classes)[classes] - np.bincount(classes) / 24
    columns /= np.sqrt((columns**2).mean())
    share = (n_classes - 1) / n_classes
    evidence = evidence_of(classes)

    def direct(v, rate):
        covariance = np.exp(-rate * DIFFERENCES[v]) + NOISE * np.eye(24)
        gaussian = multivariate_normal(np.zeros(24), covariance)
        return share * sum(gaussian.logpdf(column) for column in columns.T)

    found = evidence(DIFFERENCES[0], 0.5) - evidence(DIFFERENCES[3], 8.0)
    assert found == pytest.approx(direct(0, 0.5) - direct(3, 8.0))


@pytest.mark.parametrize("true", [[2], [0, 4]])
def test_the_best_set_of_all_is_found(true):
    classes = (POINTS[:, true] > 0.5).sum(axis=1) % 2
    found = few_variables(DIFFERENCES, classes)
    evidence = evidence_of(classes)
    scores = {
        (some, rate): evidence(DIFFERENCES[list(some)].mean(axis=0), rate)
        - np.log(6 * comb(6, size) * len(RATES))
        for size in range(1, 6)
        for some in combinations(range(6), size)
        for rate in RATES
    }
    best, rate = max(scores, key=scores.get)
    assert (tuple(found.chosen.tolist()), found.rate) == (best, rate)
    assert found.chosen.tolist() == true
    assert found.log_prior == pytest.approx(-np.log(6 * comb(6, len(true)) * len(RATES)))


def test_prior_probabilities_of_all_sets_and_rates_add_up_to_one():
    shares = [comb(6, size) * len(RATES) * np.exp(_log_prior(size, 6)) for size in range(1, 7)]
    np.testing.assert_allclose(shares, 1 / 6)


def test_labels_of_nothing_pay_for_what_they_find():
    """The best of 60 variables for random labels: its probability stays that of one in many."""
    gains = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        points, classes = rng.random((60, 30)), np.arange(30) % 2
        differences = 3 * np.abs(points[:, :, None] - points[:, None, :])
        found = few_variables(differences, classes)
        evidence = evidence_of(classes)
        chosen = evidence(differences[found.chosen].mean(axis=0), found.rate)
        gains.append(chosen + found.log_prior - evidence(differences.mean(axis=0), 0.5))
    assert np.mean(np.array(gains) > 0) < 0.2
