"""Functions of the features at rows that are no nodes, against their formulas."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

import graphuq as gq
from graphuq.spectrum import Functions, new_rows
from graphuq.spectrum.new_rows import functions_of_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4)) @ RNG.normal(size=(4, 4)) * [1.0, 1e3, 1e-3, 1.0] + [0, 5, 0, 0]
NODES, OTHERS = X[:80], X[80:]
MEAN, STD = NODES.mean(axis=0), NODES.std(axis=0)


@pytest.mark.parametrize(
    ("kind", "power", "standard"),
    [(gq.PowerFunctions, 17, False), (gq.WhitenedLinear, None, True), (gq.ThirdPower, 3, True)],
)
def test_linear_blocks_are_linear_at_other_rows(kind, power, standard):
    """The covariance of a new row with the nodes is that of the block's formula."""
    scale = STD if standard else np.ones(4)
    nodes, others = (NODES - MEAN) / scale, (OTHERS - MEAN) / scale
    moments = nodes.T @ nodes / len(nodes)
    floor = 0.01 * np.trace(moments) / 4 * np.eye(4)
    middle = np.linalg.inv(moments + floor)
    if power is not None:
        middle = np.linalg.matrix_power(moments / np.linalg.norm(moments), power - 1)
    expected = 1 + others @ middle @ nodes.T * 80 / np.trace(nodes @ middle @ nodes.T)
    block = kind(NODES)
    found = functions_of_rows(block.features, [block])[block.name].at(OTHERS)
    np.testing.assert_allclose(found @ block.values.T, expected, atol=1e-4 * expected.max())


def test_exponential_functions_have_their_covariance_with_the_nodes():
    """All of up to 100 nodes are landmarks, so that it is exact."""
    block = gq.ExponentialFunctions(NODES)
    found = functions_of_rows(NODES, [block])["exponential"].at(OTHERS)
    distances = cdist(NODES / STD, NODES / STD, "cityblock")
    rate = 0.5 / distances[~np.eye(80, dtype=bool)].mean()
    expected = np.exp(-rate * cdist(OTHERS / STD, NODES / STD, "cityblock"))
    np.testing.assert_allclose(found @ block.values.T, expected, atol=1e-6)


def test_values_of_a_file_are_enough():
    blocks = [gq.WhitenedLinear(NODES), gq.ExponentialFunctions(NODES)]
    stored = [Functions(block.name, block.values) for block in blocks]
    first, second = functions_of_rows(NODES, blocks), functions_of_rows(NODES, stored)
    for name in ("whitened linear", "exponential"):
        np.testing.assert_allclose(first[name].at(OTHERS), second[name].at(OTHERS), atol=1e-9)


def test_what_is_no_function_of_the_features_is_left_out():
    rough = Functions("own", np.random.default_rng(1).normal(size=(80, 3)))
    assert functions_of_rows(NODES, [rough]) == {}
    fewer = Functions("own", gq.WhitenedLinear(NODES).values[:70])
    assert functions_of_rows(NODES, [fewer]) == {}
    assert functions_of_rows(NODES, [gq.WhitenedGraph(NODES)]) == {}


def test_more_features_than_rows(monkeypatch):
    """Ten rows in 1,200 columns: other rows are seen in the span of the ten."""
    wide = np.random.default_rng(1).normal(size=(12, 1200))
    block = gq.PowerFunctions(wide[:10])
    found = functions_of_rows(block.features, [block])["powers"]
    np.testing.assert_allclose(found.at(wide[:10]), block.values, atol=1e-6)
    between = wide[[0, 1]].mean(axis=0)
    np.testing.assert_allclose(found.at(between[None]), block.values[:2].mean(axis=0)[None])
    monkeypatch.setattr(new_rows, "MAX_SIDE", 9)
    assert functions_of_rows(block.features, [block]) == {}


def test_columns_that_are_constant_and_sparse_rows():
    rows = np.abs(NODES) * (NODES > MEAN)
    rows[:, 1] = 0.0
    given = sparse.csr_array(rows)
    block = gq.WhitenedLinear(given)
    found = functions_of_rows(block.features, [block])["whitened linear"]
    np.testing.assert_allclose(found.at(rows), block.values, atol=1e-8)
    moved = rows + [0.0, 7.0, 0.0, 0.0]  # says nothing in the fit
    np.testing.assert_allclose(found.at(moved), block.values, atol=1e-8)
