"""Shares of classes in groups of nodes, where their distribution has a closed form."""

import numpy as np
import pytest
from scipy.stats import binom

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.results.errors_left import N_DRAWS
from known_fields import independent_nodes, nodes_with_one_field

group_shares = gq.results.group_shares


@pytest.mark.parametrize("n_nodes", [42, 1502])
def test_independent_nodes_have_binomial_shares(n_nodes):
    """A fifth of the nodes have either class with probability 1/2, the others are certain."""
    rng = np.random.default_rng(0)
    n = n_nodes - 2
    uncertain = np.append([False, False], rng.permutation(n) < n // 5)
    result = independent_nodes(np.where(uncertain, 0.0, 6.0))
    groups = np.where(np.arange(n_nodes) < 2, None, "all")
    shares = group_shares(result, groups)
    assert shares.groups.tolist() == ["all"]
    assert shares.counts.tolist() == [n]
    law = binom(uncertain.sum(), 0.5)
    certain = n - uncertain.sum()
    assert shares.expected[0, 1] == pytest.approx((certain + law.mean()) / n, abs=1e-3)
    # Both classes: a count of the uncertain nodes, between the quantiles of its law. Of a large
    # group a third is drawn, whose share has three times the variance.
    spread = 1.0 if n_nodes == 42 else np.sqrt(n / 500)
    width = (shares.upper - shares.lower)[0] * n
    std = width / (2 * 1.645)
    error = law.std() * spread * np.sqrt(2 / N_DRAWS) * 2  # of a quantile
    assert np.all(abs(std - law.std() * spread) < 4 * error + 0.5)  # counts are whole


def test_nodes_that_have_one_class_together():
    """Nodes with one field have all the same class, so the share is 0 or 1."""
    result = nodes_with_one_field([-1.0, 1.0, 1.0])
    shares = group_shares(result, np.where(np.arange(42) < 3, np.nan, 1.0), 0.9)
    np.testing.assert_allclose(shares.expected.sum(), 1)
    p = result.probabilities[10]
    np.testing.assert_allclose(shares.expected[0], p, rtol=1e-3)
    assert p.min() > 0.05  # else the interval has one end only
    np.testing.assert_allclose(shares.lower, 0, atol=0.02)
    np.testing.assert_allclose(shares.upper, 1, atol=0.02)
    narrow = np.sqrt(p[0] * p[1] / 39)  # as if nodes were independent
    assert (shares.upper - shares.lower > 3 * narrow).all()


def test_several_classes_and_groups():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(3), 30)
    X = 2.5 * np.eye(3)[codes] + rng.normal(size=(90, 3))
    y = np.where(np.arange(90) % 10 == 0, codes, -1)
    fitted = gq.GraphClassifier(inference="expectation-propagation").fit(X, y)
    groups = np.array(["left", "right"])[(X[:, 0] > 1).astype(int)]
    shares = group_shares(fitted.result_, groups, 0.8)
    for g, name in enumerate(["left", "right"]):
        own = fitted.label_distributions_[groups == name]
        np.testing.assert_allclose(shares.expected[g], own.mean(axis=0))
    table = shares.to_dataframe()
    assert list(table) == ["group", "class", "n_rows", "share", "lower", "upper"]
    by_class = table.pivot(index="group", columns="class", values="share")
    assert by_class.columns.tolist() == fitted.classes_.tolist()
    np.testing.assert_array_equal(by_class.loc[["left", "right"]], shares.expected)
    wide = group_shares(fitted.result_, groups, 0.99)
    assert (wide.lower <= shares.lower).all()
    assert (wide.upper >= shares.upper).all()
    alone = group_shares(fitted.result_, np.arange(90))
    np.testing.assert_allclose(alone.expected, fitted.label_distributions_)


def test_what_has_no_shares():
    result = nodes_with_one_field([-1.0, 1.0])
    with pytest.raises(InvalidInput, match=r"groups: shape \(3,\) for 42 nodes"):
        group_shares(result, [1, 2, 3])
    with pytest.raises(InvalidInput, match="groups: no node is in one"):
        group_shares(result, [None] * 42)
    with pytest.raises(InvalidInput, match="probability: 1"):
        group_shares(result, np.zeros(42), 1)
    point = gq.GraphClassifier(model="fixed", inference="map")
    point.fit(np.random.default_rng(0).normal(size=(20, 2)), [0, 1] + [-1] * 18)
    with pytest.raises(IncompatibleParts, match="point without draws"):
        group_shares(point.result_, np.zeros(20))
