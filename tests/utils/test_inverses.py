"""Inverses of matrices."""

import numpy as np
import pytest

from graphuq.utils.inverses import inverse_of, inverses, lower_inverses


@pytest.mark.parametrize("shape", [(5, 5), (3, 7, 7), (2, 3, 1, 1), (0, 4, 4)])
def test_they_are_those_of_numpy(shape):
    root = np.random.default_rng(0).normal(size=shape)
    matrices = root @ np.swapaxes(root, -1, -2) + np.eye(shape[-1])
    kept = matrices.copy()
    np.testing.assert_allclose(inverses(matrices), np.linalg.inv(matrices), atol=1e-12)
    np.testing.assert_array_equal(matrices, kept)
    lower = np.linalg.cholesky(matrices)
    np.testing.assert_allclose(lower_inverses(lower), np.linalg.inv(lower), atol=1e-12)


def test_an_inverse_needs_the_lower_triangle_alone():
    root = np.random.default_rng(1).normal(size=(6, 6))
    matrix = root @ root.T + np.eye(6)
    found, log_determinant = inverse_of(np.tril(matrix) + np.triu(np.full((6, 6), 7.0), 1))
    np.testing.assert_allclose(found, np.linalg.inv(matrix), atol=1e-12)
    assert log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1])


def test_a_matrix_that_is_not_positive_definite_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        inverses(np.diag([1.0, -1.0]))
