"""Mixtures of priors: their components are the priors and blocks that they are made of."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.models import Mixture, Term

MOONS = gq.datasets.two_moons(80, n_features=2, noise_std=0.08)
BASIS = gq.Basis.of(gq.graphs.knn_graph(MOONS.features), n_eigenpairs=20)
MATERNS = [
    gq.priors.Matern(0.1, 4.0),
    gq.priors.Matern(0.5, 2.0, include_constant=True),
    gq.priors.Matern(0.5, 2.0),
]
OTHERS = [gq.priors.Diffusion(2.0), gq.priors.InverseCosine(), gq.priors.Matern(truncation=7)]
SCALES = [5.0, 2.0, 0.3, 1.0, 4.0, 0.5]
PRIOR = Mixture(
    [Term(scale, prior) for scale, prior in zip(SCALES, MATERNS + OTHERS, strict=True)],
    gq.Categorical([1 / 6] * 6),
)


@pytest.mark.parametrize("m", range(6))
def test_components_are_the_priors_times_their_scales(m):
    expected = SCALES[m] * (MATERNS + OTHERS)[m].spectral_std(BASIS).modes
    found = PRIOR.only(m).spectral_std(BASIS).modes
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(PRIOR.modes(BASIS).stds[m], found)


def test_draws_name_the_numbers_of_their_component():
    mixed = Mixture(
        [Term(5.0, MATERNS[0]), Term(2.0, MATERNS[1]), Term(3.0, block="exponential")],
        gq.Categorical([0.2, 0.3, 0.5]),
    )
    found = mixed.named_draws({"component": np.array([[0, 1], [2, 0]]), "other": np.zeros(1)})
    assert set(found) == {"other", "tau", "alpha", "scale", "include_constant", "on_features"}
    np.testing.assert_array_equal(found["tau"], [[0.1, 0.5], [np.nan, 0.1]])
    np.testing.assert_array_equal(found["alpha"], [[4, 2], [np.nan, 4]])
    np.testing.assert_array_equal(found["scale"], [[5, 2], [3, 5]])
    np.testing.assert_array_equal(found["include_constant"], [[False, True], [False, False]])
    np.testing.assert_array_equal(found["on_features"], [[False, False], [True, False]])
    assert "on_features" not in PRIOR.named_draws({"component": np.zeros((1, 1))})


def test_a_component_has_its_posterior():
    labels = [0, 1, 2], [1, -1, 1]
    whole = gq.Posterior(BASIS, PRIOR, gq.likelihoods.Probit(1.0), *labels)
    assert whole.is_weighted
    for m in range(6):
        one = whole.component(m)
        assert not one.is_weighted
        expected = SCALES[m] * (MATERNS + OTHERS)[m].spectral_std(BASIS).modes
        np.testing.assert_allclose(one.std.modes, expected, rtol=1e-10, atol=1e-12)


def test_bad_parts_are_refused():
    matern = gq.priors.Matern()
    with pytest.raises(InvalidInput, match="scale: 0"):
        Term(0.0, matern)
    with pytest.raises(InvalidInput, match="prior: None of the block 'eigenpairs'"):
        Term(1.0)
    with pytest.raises(IncompatibleParts, match="'exponential' has functions and no eigenvalues"):
        Mixture([Term(1.0, matern, block="exponential")]).modes(BASIS)
    with pytest.raises(InvalidInput, match="learnt hyperparameters"):
        Term(1.0, gq.priors.Matern(tau=gq.LogUniform(0.1, 1.0)))
    with pytest.raises(InvalidInput, match="components"):
        Mixture([])
    with pytest.raises(InvalidInput, match="components"):
        Mixture([[]])
    with pytest.raises(InvalidInput, match="component: 1"):
        Mixture([Term(1.0, matern)], component=1)
    with pytest.raises(InvalidInput, match="component: Categorical"):
        Mixture([Term(1.0, matern)], gq.Categorical([0.5, 0.5]))
    with pytest.raises(InvalidInput, match="probabilities"):
        gq.Categorical([0.5])
    with pytest.raises(IncompatibleParts, match="no function of the eigenvalue"):
        PRIOR.log_variances(np.ones(3))


def test_a_term_on_a_second_graph_is_the_prior_on_its_spectrum():
    second = BASIS.blocks[-1].spectrum
    terms = Term(3.0, MATERNS[0], "whitened graph"), Term(2.0, MATERNS[2], "whitened graph")
    stds = Mixture([*terms, terms, Term(1.0, MATERNS[0])]).modes(BASIS).stds
    own = BASIS.columns_of("whitened graph")
    for std, term in zip(stds, terms, strict=False):
        expected = term.scale * term.prior.spectral_std(second).modes
        np.testing.assert_allclose(std[own], expected, rtol=1e-10, atol=1e-12)
        assert not np.delete(std, np.arange(own.start, own.stop)).any()
    np.testing.assert_allclose(stds[2] ** 2, (stds[:2] ** 2).sum(axis=0))  # a sum of both
    assert not stds[3, own].any()
    assert "of the whitened graph" in repr(terms[0])


def test_components_name_their_blocks():
    prior = Mixture([Term(1.0, MATERNS[0]), (Term(1.0, MATERNS[0]), Term(2.0, block="powers"))])
    assert prior.blocks == ["eigenpairs", "eigenpairs + powers"]
    assert prior.on_features.tolist() == [False, False]
