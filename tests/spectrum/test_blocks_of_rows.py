"""Functions of the features that are made from several blocks of rows."""

import numpy as np
import pytest
from scipy import sparse

from graphuq.graphs.features import row_blocks
from graphuq.spectrum import QuadraticFunctions

WIDTH = 100_000  # so wide that a block has few rows


@pytest.mark.parametrize("n_nodes", [90, 300])
def test_functions_of_several_blocks_are_a_root_of_the_covariance(n_nodes):
    """``(1 + x·x')²`` of rows of mean squared length one; rows have unequal lengths."""
    assert len(list(row_blocks(n_nodes, WIDTH))) > 1
    few = np.random.default_rng(0).normal(size=(n_nodes, 3))
    few *= np.linspace(0.2, 2, n_nodes)[:, None]
    places = np.tile([5, 70, WIDTH - 1], n_nodes)
    ends = np.arange(0, few.size + 1, 3)
    rows = sparse.csr_array((few.ravel(), places, ends), shape=(n_nodes, WIDTH))
    found = QuadraticFunctions(rows).values
    expected = (1 + few @ few.T / (few**2).sum(axis=1).mean()) ** 2
    np.testing.assert_allclose(found @ found.T, expected, atol=1e-4 * expected.max())
