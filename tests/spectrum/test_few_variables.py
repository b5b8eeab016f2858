"""Exponential functions of a few variables of a table."""

import numpy as np

import graphuq as gq
from graphuq.graphs.principal import PrincipalComponents
from graphuq.graphs.variables import variables_of
from graphuq.spectrum.few_variables import differences, mean_differences, scales_of_few
from graphuq.spectrum.new_rows import functions_of_rows

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(90, 3)) * [1.0, 50.0, 0.01]
CODES = RNG.integers(0, 4, size=90)
X = np.column_stack([NUMBERS[:, :1], np.eye(4)[CODES], NUMBERS[:, 1:], np.ones(90)])
VARIABLES = variables_of(PrincipalComponents(X))
CHOSEN = np.array([1, 2])  # the category and the second number


def scales(rate=2.0):
    return scales_of_few(VARIABLES, mean_differences(X, VARIABLES), CHOSEN, rate)


def test_covariance_is_that_of_the_mean_over_chosen_variables():
    number = np.abs(X[:, None, 5] - X[None, :, 5])
    category = (CODES[:, None] != CODES[None]).astype(float)
    means = [m.sum() / (90 * 89) for m in (number, category)]
    expected = np.exp(-2.0 * (number / means[0] + category / means[1]) / 2)
    values = gq.FunctionsOfFew(X, scales()).values
    np.testing.assert_allclose(values @ values.T, expected, atol=1e-4)


def test_differences_of_variables_add_up_to_the_distance():
    among = differences(X, VARIABLES)
    assert among.shape == (4, 90, 90)
    np.testing.assert_allclose(among[1], (CODES[:, None] != CODES[None]) * among[1].max())
    distance = (np.abs(X[:, None] - X[None]) / VARIABLES.scales).sum(axis=2)
    np.testing.assert_allclose(among.sum(axis=0), distance)


def test_new_rows_have_their_own_values_and_other_columns_have_no_say():
    block = gq.FunctionsOfFew(X[:70], scales())
    own = functions_of_rows(X[:70], [block])["few variables"]
    np.testing.assert_allclose(own.at(X[:70]), block.values)
    others = X[70:].copy()
    others[:, [0, 6, 7]] += 1e3
    np.testing.assert_allclose(own.at(others), own.at(X[70:]))
    of_number = np.exp(-(np.abs(X[70:, None] - X[None, :70]) / scales()).sum(axis=2))
    np.testing.assert_allclose(own.at(X[70:]) @ block.values.T, of_number, atol=1e-4)


def test_files_keep_what_new_rows_need():
    basis = gq.Basis.of(gq.graphs.knn_graph(X), n_eigenpairs=20)
    block = gq.FunctionsOfFew(X, scales())
    stored = gq.Basis(basis.spectrum, (*basis.blocks, block)).to_dataset()
    again = gq.Basis.from_dataset(stored).blocks[-1]
    assert again.name == "few variables"
    np.testing.assert_array_equal(again.scales, block.scales)
    own = functions_of_rows(X, [again])["few variables"]
    np.testing.assert_allclose(own.at(X[:5] + 0.1), block_at(X[:5] + 0.1))


def block_at(rows):
    return functions_of_rows(X, [gq.FunctionsOfFew(X, scales())])["few variables"].at(rows)
