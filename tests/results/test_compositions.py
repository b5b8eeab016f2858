"""Compositions of groups, where all labels and concentrations can be enumerated."""

import itertools

import numpy as np
import pytest
from scipy.special import expit, gammaln, ndtri
from scipy.stats import binom

import graphuq as gq
from graphuq.errors import InvalidInput
from graphuq.results.compositions import CONCENTRATIONS, compositions, in_groups
from known_fields import independent_nodes, nodes_with_one_field


def enumerated(p, of_group):
    """Return the probabilities of all nodes given all others, from every labelling and every κ."""
    mean, found, total = p.mean(axis=0), np.zeros(p.shape), 0.0
    for labels in itertools.product(range(p.shape[1]), repeat=len(p)):
        labels, n_groups = np.array(labels), of_group.max() + 1
        counts = np.array([
            [((of_group == g) & (labels == k)).sum() for k in range(p.shape[1])]
            for g in range(n_groups)
        ])  # fmt: skip
        a = CONCENTRATIONS[:, None, None] * mean
        logs = (gammaln(a + counts) - gammaln(a)).sum(axis=(1, 2))
        whole = CONCENTRATIONS[:, None]
        logs += (gammaln(whole) - gammaln(whole + counts.sum(axis=1))).sum(axis=1)
        weight = np.exp(logs).sum() * (p / mean)[np.arange(len(p)), labels].prod()
        found[np.arange(len(p)), labels] += weight
        total += weight
    return found / total


def test_probabilities_in_groups_are_those_of_all_labellings():
    p = np.array([
        [0.9, 0.05, 0.05], [0.8, 0.1, 0.1], [0.4, 0.5, 0.1],
        [0.1, 0.2, 0.7], [0.3, 0.4, 0.3], [0.02, 0.08, 0.9],
    ])  # fmt: skip
    of_group, n_draws = np.repeat([0, 1], 3), 8_000
    ratios = compositions(p, of_group, n_draws, np.random.default_rng(0))
    found = np.array([in_groups(p, ratio, of_group) for ratio in ratios])
    batches = found.reshape(50, -1, *p.shape).mean(axis=1)  # of draws that follow each other
    error = batches.std(axis=0, ddof=1) / np.sqrt(50)
    assert error.max() < 0.01
    exact = enumerated(p, of_group)
    assert abs(exact - p).max() > 0.03  # else groups would be of no use
    assert (abs(found.mean(axis=0) - exact) < 4 * error + 1e-6).all()


def test_groups_that_do_not_differ_change_little():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.5, 0.5], 4000)
    of_group = rng.integers(20, size=4000)
    ratios = compositions(p, of_group, 200, rng)
    moved = np.mean([in_groups(p, ratio, of_group) for ratio in ratios], axis=0)
    assert abs(moved - p).max() < 0.02


def test_shares_of_groups_that_the_model_does_not_see():
    """Nodes of features x ~ N(±1, 1) in groups of unknown composition; p is known exactly."""
    rng = np.random.default_rng(1)
    shares = np.tile([0.1, 0.9, 0.3, 0.7], 8)  # mean 1/2
    groups = np.repeat(np.arange(len(shares)), 50)
    truth = rng.random(len(groups)) < shares[groups]
    x = np.where(truth, 1.0, -1.0) + rng.normal(size=len(groups))
    p = expit(2 * x)  # of the second class, given x alone
    result = independent_nodes(np.append([0.0, 0.0], ndtri(p)))
    names = np.append([None, None], groups)
    alone = gq.results.group_shares(result, names)
    found = gq.results.group_shares(result, names, unseen=1.0)
    exact = np.array([truth[groups == g].mean() for g in range(len(shares))])
    np.testing.assert_allclose(alone.expected[:, 1], result_means(result, groups), atol=1e-12)
    errors = [np.sqrt(((got.expected[:, 1] - exact) ** 2).mean()) for got in (alone, found)]
    assert errors[1] < 0.5 * errors[0]
    held = [(got.lower[:, 1] <= exact) & (exact <= got.upper[:, 1]) for got in (alone, found)]
    law = binom(len(shares), 0.9)  # patches are independent given shares and κ
    assert law.cdf(held[0].sum()) < 1e-6
    assert law.cdf(held[1].sum()) > 1e-3
    np.testing.assert_allclose(found.expected.sum(axis=1), 1.0)
    half = gq.results.group_shares(result, names, unseen=0.5).expected
    np.testing.assert_allclose(half, (alone.expected + found.expected) / 2, atol=0.03)


def result_means(result, groups):
    p = result.probabilities[2:, 1]
    return np.array([p[groups == g].mean() for g in np.unique(groups)])


def test_what_is_no_probability_is_refused():
    result = nodes_with_one_field([-1.0, 1.0])
    with pytest.raises(InvalidInput, match=r"unseen: 1\.5"):
        gq.results.group_shares(result, np.zeros(42), unseen=1.5)
