"""Probabilities of a label with noise of its own."""

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from graphuq.results.summaries.random_label import random_label_shares


def exact(mean, k):
    others = np.delete(mean, k)
    return quad(lambda t: norm.pdf(t - mean[k]) * norm.cdf(t - others).prod(), -15, 25)[0]


def test_probabilities_are_those_of_quadrature():
    rng = np.random.default_rng(0)
    for n_classes in (2, 3, 5, 12, 26):
        mean = rng.normal(size=n_classes) * rng.choice([0.1, 1.0, 4.0])
        found = random_label_shares(0.3 * mean[None, :, None], np.array([[0.3]]), 1)[0, 0]
        expected = [exact(mean, k) for k in range(n_classes)]
        np.testing.assert_allclose(found, expected, atol=2e-5)


def test_equal_fields_share_equally_and_absent_classes_have_none():
    u = np.zeros((1, 4, 1))
    np.testing.assert_allclose(random_label_shares(u, np.ones((1, 1)), 1)[0, 0], 0.25, atol=1e-6)
    u[0, 3] = -np.inf
    found = random_label_shares(u, np.ones((1, 1)), 1)[0, 0]
    np.testing.assert_allclose(found, [1 / 3, 1 / 3, 1 / 3, 0], atol=1e-6)


def test_batches_are_means_over_their_draws():
    u = np.random.default_rng(1).normal(size=(3, 3, 8))
    one = random_label_shares(u, np.ones((3, 1)), 1)
    two = random_label_shares(u, np.ones((3, 8)), 2)
    np.testing.assert_allclose(two.mean(axis=1, keepdims=True), one)
    first = random_label_shares(u[:, :, :4], np.ones((3, 1)), 1)
    np.testing.assert_allclose(two[:, :1], first)
