"""R-hat and effective sample sizes are equal to those of ArviZ."""

import numpy as np
import pytest

from graphuq.errors import InvalidInput
from graphuq.results.arviz_data import import_arviz
from graphuq.results.convergence import convergence, convergence_of
from graphuq.results.diagnostics import worst_case


def _autoregressive(n_functionals, n_chains, n_samples):
    """Return chains from alternating to nearly constant, some with few or tied values."""
    noise = np.random.default_rng(0).normal(size=(n_functionals, n_chains, n_samples))
    values, phi = np.empty_like(noise), np.linspace(-0.9, 0.99, n_functionals)[:, None]
    values[..., 0] = noise[..., 0]
    for t in range(1, n_samples):
        values[..., t] = phi * values[..., t - 1] + np.sqrt(1 - phi**2) * noise[..., t]
    values[3] = np.round(values[3])
    values[4] = np.round(values[4], 1)
    values[5] = np.sign(values[5])
    values[6, 0] += 1
    return values


@pytest.mark.parametrize("shape", [(2, 4), (4, 7), (1, 50), (8, 100), (32, 151)])
def test_numbers_are_those_of_arviz(shape):
    arviz = import_arviz()
    values = _autoregressive(12, *shape)

    def reference(draws):
        bulk = float(arviz.ess(draws, method="bulk"))
        few = len(np.unique(draws)) < 20
        tail = bulk if few else float(arviz.ess(draws, method="tail", prob=(0.05, 0.95)))
        return float(arviz.rhat(draws)) if len(draws) > 1 else np.nan, bulk, tail

    expected = np.array([reference(draws) for draws in values])
    np.testing.assert_allclose(convergence(values), expected, rtol=1e-10)


def test_blocks_change_nothing(monkeypatch):
    values = _autoregressive(12, 4, 60)
    whole = convergence(values)
    monkeypatch.setattr("graphuq.results.convergence.BLOCK_ELEMENTS", 500)
    np.testing.assert_array_equal(convergence(values), whole)


def test_a_missing_value_gives_nan():
    values = _autoregressive(7, 4, 60)
    values[2, 1, 3] = np.nan
    table = convergence(values)
    assert np.isnan(table[2]).all()
    assert np.isfinite(np.delete(table, 2, axis=0)).all()


def test_an_undefined_functional_is_not_a_constant():
    values = _autoregressive(7, 4, 60)
    values[2, 1, 3] = np.nan
    names = {str(k): v for k, v in enumerate(values)} | {"include_constant": np.ones((4, 60))}
    table = convergence_of(names)
    assert "include_constant" not in table
    assert all(np.isnan(number) for number in worst_case(table))


@pytest.mark.parametrize("other", [np.zeros(5), np.zeros((2, 6)), np.zeros((2, 5, 1))])
def test_draws_of_another_shape_are_refused(other):
    with pytest.raises(InvalidInput, match="functionals: 'b' has shape"):
        convergence_of({"a": np.arange(10.0).reshape(2, 5), "b": other})
