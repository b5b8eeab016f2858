"""Functions that serve NumPy and JAX arrays give the same numbers for both."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from graphuq.utils.arrays import (
    Array,
    array_namespace,
    double_precision,
    mapped,
    special_functions,
    without_gradient,
)


def test_the_library_follows_the_array():
    for values in (np.ones(2), 1.0, np.float64(1.0), [1.0]):
        assert array_namespace(values) is np
        assert special_functions(values) is scipy.special
    assert array_namespace(jnp.ones(2)) is jnp
    assert special_functions(jnp.ones(2)) is jax.scipy.special
    assert jax.jit(lambda x: jnp.asarray(array_namespace(x) is jnp))(np.ones(2))
    assert isinstance(np.ones(2), Array)
    assert isinstance(jnp.ones(2), Array)
    assert not isinstance([1.0], Array)


@pytest.mark.parametrize("together", [True, False])
def test_mapped_stacks_what_a_function_gives(together):
    x, y = np.arange(6.0).reshape(3, 2), np.arange(3.0)
    expected = np.stack([row * factor for row, factor in zip(x, y, strict=True)])
    assert isinstance(mapped(np.multiply, x, y), np.ndarray)
    np.testing.assert_array_equal(mapped(np.multiply, x, y, together=together), expected)
    found = mapped(lambda row, factor: row * factor, jnp.asarray(x), y, together=together)
    assert isinstance(found, jax.Array)
    np.testing.assert_array_equal(found, expected)


def test_constants_of_derivatives_have_none():
    assert jax.grad(lambda x: without_gradient(x) * x)(3.0) == 3.0
    assert without_gradient(3.0) == 3.0


def test_double_precision_reaches_parts_that_are_written_in_jax():
    assert jnp.asarray(np.ones(2)).dtype == np.float32
    with double_precision():
        assert jnp.asarray(np.ones(2)).dtype == np.float64
