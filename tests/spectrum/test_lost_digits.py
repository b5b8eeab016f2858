"""Columns whose differences are lost beside their size are refused, or answered as without it."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.where(np.arange(60) < 20, X[:, 0] > 0, np.nan)
QUICK = gq.GraphClassifier(n_neighbors=15, inference="expectation-propagation")


def test_columns_that_rounding_makes_constant_are_refused_in_words():
    with pytest.raises(InvalidInput, match="X: columns that differ by less than the rounding of"):
        QUICK.fit(X + 1e12, Y)


def test_a_large_offset_changes_nothing():
    expected = QUICK.fit(X, Y).label_distributions_.copy()
    np.testing.assert_allclose(QUICK.fit(X + 2.0**20, Y).label_distributions_, expected, atol=1e-3)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_sizes_that_cannot_be_squared_are_refused_with_both_ends(scale):
    with pytest.raises(InvalidInput, match=r"to sizes between 1e-100 and 1e\+100"):
        QUICK.fit(X * scale, Y)
