"""Variables of a table, and columns of 0 and 1 that are one category together."""

import numpy as np
import pytest
from scipy import sparse

import graphuq as gq
from graphuq.graphs.principal import PrincipalComponents
from graphuq.graphs.variables import Variables, categories, variables_of

RNG = np.random.default_rng(0)
NUMBER = RNG.normal(size=300)
CODES = RNG.choice(5, size=300, p=[0.4, 0.3, 0.2, 0.05, 0.05])
CATEGORY = np.eye(5)[CODES]
YES = RNG.random(300) < 0.2
BOTH = np.column_stack([YES, ~YES]).astype(float)


def found(X):
    """Return the variables of rows, and the first and last column of each category."""
    components = PrincipalComponents(X)
    runs = categories(components.moments, X.min(axis=0), X.max(axis=0))
    return variables_of(components), [(run.start, run.stop) for run in runs]


def test_columns_of_one_category_are_one_variable():
    X = np.column_stack([NUMBER, CATEGORY, BOTH, YES, np.full(300, 3.0)])
    variables, runs = found(X)
    assert runs == [(1, 6), (6, 8)]
    assert variables.numbers.tolist() == [0, 1, 1, 1, 1, 1, 2, 2, 3, -1]
    assert variables.n_variables == 4
    assert variables.scales[0] == pytest.approx(NUMBER.std())
    assert np.isinf(variables.scales[-1])


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), ([3.0, 0.1, 7.0, 1e-3, 1e3], 50.0)])
def test_units_do_not_hide_a_category(scale, shift):
    variables, runs = found(CATEGORY * scale + shift)
    assert runs == [(0, 5)]
    apart = (CATEGORY[:, None] != CATEGORY[None]) * (np.ones(5) * scale / variables.scales)
    differ = CODES[:, None] != CODES[None]
    expected = differ / np.sqrt(differ.mean() / 2)
    np.testing.assert_allclose(apart.sum(axis=2), expected, rtol=1e-9)


def test_a_yes_or_no_counts_the_same_as_one_column_and_as_two():
    one, two = found(np.column_stack([NUMBER, YES]))[0], found(np.column_stack([NUMBER, BOTH]))[0]
    np.testing.assert_allclose(two.scales[1:], 2 * one.scales[1])


def one_row_changed(values):
    rows = CATEGORY.copy()
    rows[7] = values
    return rows


@pytest.mark.parametrize(
    "X",
    [
        one_row_changed([1, 1, 0, 0, 0]),
        one_row_changed([0, 0, 0, 0, 0]),
        one_row_changed([0.5, 0.5, 0, 0, 0]),
        CATEGORY[:, 1:],
        CATEGORY[:, ::2],
        RNG.integers(0, 2, size=(300, 6)).astype(float),
        np.column_stack([YES, YES]).astype(float),
    ],
)
def test_other_columns_of_few_values_are_variables_of_their_own(X):
    variables, runs = found(X)
    assert runs == []
    np.testing.assert_allclose(variables.scales, X.std(axis=0))


def test_categories_of_ten_million_rows_are_told_from_a_single_exception():
    counts = np.array([6_000_000, 4_000_000])
    for exceptions in (0, 1):  # rows with both values
        n = counts.sum()
        shares = (counts + [0, exceptions]) / n
        covariance = np.diag(shares * (1 - shares))
        covariance[0, 1] = covariance[1, 0] = exceptions / n - shares.prod()
        moments = PrincipalComponents(BOTH).moments._replace(centre=shares, covariance=covariance)
        assert len(categories(moments, np.zeros(2), np.ones(2))) == 1 - exceptions


def test_sparse_and_very_wide_features_have_no_variables():
    assert variables_of(PrincipalComponents(sparse.csr_array(CATEGORY))) is None
    assert variables_of(PrincipalComponents(RNG.normal(size=(5, 1001)))) is None


def test_a_category_counts_as_much_as_a_number_to_exponential_functions():
    X = np.column_stack([NUMBER[:80], CATEGORY[:80]])
    scales = Variables.of(PrincipalComponents(X).moments, X.min(axis=0), X.max(axis=0)).scales
    distances = (abs(X[:, None] - X[None]) / scales).sum(axis=2)
    mean = distances.sum() / (80 * 79)
    values = gq.ExponentialFunctions(X).values
    np.testing.assert_allclose(values @ values.T, np.exp(-distances / (2 * mean)), atol=1e-4)


def test_a_table_of_many_values_has_exponential_functions():
    """60 categories of four values are 240 columns, and 60 variables."""
    cells = RNG.integers(0, 4, size=(300, 60))
    basis = gq.Basis.of(gq.graphs.knn_graph(np.eye(4)[cells].reshape(300, -1)))
    assert basis.has("exponential")
    assert not gq.Basis.of(gq.graphs.knn_graph(RNG.normal(size=(300, 240)))).has("exponential")
