"""Contract of every prior: E|u|² = N on any graph, and finite standard deviations."""

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import linalg, sparse

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.priors import Prior
from graphuq.utils.with_jax import with_dtype

ALL_PRIORS = [
    gq.priors.InverseLaplacian(),
    gq.priors.InverseLaplacian(include_constant=True),
    gq.priors.Matern(),
    gq.priors.Matern(tau=0.7, alpha=8.0, include_constant=True),
    gq.priors.Matern(tau=0.0, alpha=1.5),
    gq.priors.Diffusion(time=3.0),
    gq.priors.Diffusion(time=400.0, include_constant=True),
    gq.priors.RandomWalk(n_steps=5.0, include_constant=True),
    gq.priors.InverseCosine(),
    gq.priors.EigenScales(0.5, 2.0, scales=np.linspace(0.5, 2.0, 20)),
    gq.priors.LearnedSpectrum(slopes=np.array([0.0, 1.0, 3.0, 8.0]), n_knots=4),
]
NORMALIZED_ONLY = (gq.priors.RandomWalk, gq.priors.InverseCosine)


def graphs():
    yield gq.graphs.from_adjacency(random_adjacency(20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blocks = [random_adjacency(8, seed=s) for s in range(3)]
        yield gq.graphs.from_adjacency(
            sparse.block_diag([*map(sparse.csr_array, blocks)], format="csr")
        )


@pytest.mark.parametrize("prior", ALL_PRIORS, ids=repr)
@pytest.mark.parametrize("laplacian", ["symmetric", "unnormalized", "random-walk"])
@pytest.mark.parametrize("tail", [False, True, "mean", 0.5])
@pytest.mark.parametrize("n_eigenpairs", [6, 20])
def test_mean_square_is_one_per_node(prior, laplacian, tail, n_eigenpairs):
    if isinstance(prior, gq.priors.EigenScales):
        prior = dataclasses.replace(prior, scales=prior.scales[:n_eigenpairs])
    for graph in graphs():
        spectrum = gq.laplacian_spectrum(graph, laplacian, n_eigenpairs, tail_eigenvalue=tail)
        largest = max(spectrum.eigenvalues.max(), spectrum.tail_eigenvalue or 0.0)
        if isinstance(prior, NORMALIZED_ONLY) and largest > 2:
            with pytest.raises(IncompatibleParts, match="defined for eigenvalues up to 2"):
                prior.spectral_std(spectrum)
            continue
        std = prior.spectral_std(spectrum)
        q, scale = spectrum.eigenvectors, spectrum.node_scale[:, None]
        covariance = (
            scale * ((q * std.modes**2) @ q.T + std.tail**2 * (np.eye(len(q)) - q @ q.T)) * scale.T
        )
        assert np.trace(covariance) == pytest.approx(graph.n_nodes)
        assert np.isfinite(std.modes).all()
        assert (std.modes >= 0).all()


@pytest.mark.slow
def test_gradients_stay_finite_where_deviations_underflow():
    """Gradients stay finite for large α, where deviations underflow in single precision."""
    graph = gq.graphs.from_adjacency(random_adjacency(20))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=12)
    prior = gq.priors.Matern(tau=gq.LogUniform(0.001, 3.0), alpha=gq.LogUniform(0.5, 300.0))
    labels = np.array([1, -1])
    posterior = gq.Posterior(spectrum, prior, gq.likelihoods.Probit(0.1), np.arange(2), labels)
    target = with_dtype(posterior.target, jnp.float32)
    white = jnp.ones(target.dimension, jnp.float32).at[-2:].set(jnp.asarray([-2.0, 2.5]))
    assert float(target.std(white)[1:].min()) == 0.0  # without the constant, not in the prior
    assert np.isfinite(jax.grad(target.log_likelihood)(white)).all()


def test_matern_is_a_power_of_the_shifted_spectrum():
    graph = gq.graphs.from_adjacency(random_adjacency(20))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=12)
    std = gq.priors.Matern(tau=0.6, alpha=3.0, truncation=8, include_constant=True).spectral_std(
        spectrum
    )
    expected = (spectrum.eigenvalues[:8] + 0.36) ** -1.5
    np.testing.assert_allclose(std.modes[:8] / std.modes[0], expected / expected[0])
    assert not std.modes[8:].any()


KERNELS = [  # and the matrix function of the Laplacian that each stands for
    (gq.priors.Diffusion(time=1.7, include_constant=True), lambda L: linalg.expm(-1.7 * L)),
    (
        gq.priors.RandomWalk(n_steps=3, include_constant=True),
        lambda L: np.linalg.matrix_power(2 * np.eye(len(L)) - L, 3),
    ),
    (gq.priors.InverseCosine(include_constant=True), lambda L: linalg.cosm(np.pi / 4 * L)),
]


@pytest.mark.parametrize(("prior", "kernel"), KERNELS, ids=["diffusion", "walk", "cosine"])
def test_kernels_are_functions_of_the_laplacian(prior, kernel):
    for graph in graphs():
        spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=graph.n_nodes)
        std, q = prior.spectral_std(spectrum), spectrum.eigenvectors
        covariance = (q * std.modes**2) @ q.T
        expected = kernel(gq.Laplacian(graph).dense())
        expected *= graph.n_nodes / np.trace(expected)
        np.testing.assert_allclose(covariance, expected, atol=1e-9)


def test_a_bipartite_graph_has_a_mode_without_variance():
    """A path has λ = 2, where both kernels are zero, and its logarithm stays finite."""
    path = np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1)
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(path), n_eigenpairs=6)
    for prior in (gq.priors.RandomWalk(3, True), gq.priors.InverseCosine(True)):
        std = prior.spectral_std(spectrum)
        assert std.modes[-1] < 1e-6
        assert np.isfinite(prior.log_std_of(prior.modes(spectrum)).modes).all()


@pytest.mark.parametrize("prior", [gq.priors.Diffusion, gq.priors.RandomWalk])
def test_kernels_refuse(prior):
    with pytest.raises(InvalidInput, match="0 is out of range; use"):
        prior(0)


@pytest.mark.parametrize("tail", [False, 0.5])
def test_matern_contains_the_inverse_laplacian(tail):
    for graph in graphs():
        spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=8, tail_eigenvalue=tail)
        found = gq.priors.Matern(tau=0.0, alpha=1.0).spectral_std(spectrum)
        expected = gq.priors.InverseLaplacian().spectral_std(spectrum)
        np.testing.assert_allclose(found.modes, expected.modes)
        assert found.tail == pytest.approx(expected.tail)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tau": -1.0}, "tau: -1.0 is out of range; use τ >= 0"),
        ({"tau": 0.0, "include_constant": True}, "infinite variance"),
        ({"alpha": 0.0}, "alpha: 0.0 is out of range; use α > 0"),
        ({"truncation": 1}, "truncation: 1"),
    ],
)
def test_matern_refuses(options, message):
    with pytest.raises(InvalidInput, match=message):
        gq.priors.Matern(**options)


def test_matern_refuses_a_cut_series_with_a_tail():
    graph = gq.graphs.from_adjacency(random_adjacency(20))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=12, tail_eigenvalue=True)
    with pytest.raises(IncompatibleParts, match="truncation=8 of 12 eigenpairs and a tail"):
        gq.priors.Matern(truncation=8).spectral_std(spectrum)


def test_eigen_scales_and_modes_must_match():
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(random_adjacency(20)), n_eigenpairs=9)
    with pytest.raises(IncompatibleParts, match="8 scales and 9 eigenpairs"):
        gq.priors.EigenScales(scales=np.ones(8)).spectral_std(spectrum)


def test_learned_spectrum_decreases_and_holds_power_laws():
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(random_adjacency(20)), n_eigenpairs=9)
    slopes = np.random.default_rng(0).gamma(0.5, 8.0, 8)
    std = gq.priors.LearnedSpectrum(slopes).spectral_std(spectrum)
    assert (np.diff(std.modes[1:]) <= 0).all()
    power = gq.priors.LearnedSpectrum(np.full(8, 3.0)).spectral_std(spectrum)
    matern = gq.priors.Matern(tau=0.0, alpha=3.0).spectral_std(spectrum)
    np.testing.assert_allclose(power.modes, matern.modes, rtol=1e-9)


def three_matern_terms():
    """Return a term of each of three priors, of which the second has a constant."""
    return [
        gq.models.Term(3.0, gq.priors.Matern(tau=0.2, alpha=4.0)),
        gq.models.Term(1.0, gq.priors.Matern(tau=1.0, alpha=2.0, include_constant=True)),
        gq.models.Term(2.0, gq.priors.Matern(tau=0.5, alpha=3.0)),
    ]


def test_all_components_of_a_mixture_at_once():
    terms = three_matern_terms()
    prior = gq.models.Mixture(terms)
    for graph in graphs():
        spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=9)
        modes = prior.modes(spectrum)
        own = [term.scale * term.prior.spectral_std(spectrum).modes for term in terms]
        np.testing.assert_allclose(modes.stds, own, rtol=1e-12)
        expected = [prior.only(m).std_of(modes).modes for m in range(3)]
        np.testing.assert_allclose(modes.stds, expected, rtol=1e-12)


def test_components_on_features_at_once():
    smooth, _, rough = three_matern_terms()
    prior = gq.models.Mixture([smooth, gq.models.Term(1.0, block="exponential"), rough])
    for graph in graphs():
        rows = np.random.default_rng(0).normal(size=(graph.n_nodes, 2))
        spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=9)
        basis = gq.Basis(spectrum, (gq.ExponentialFunctions(rows),))
        modes = prior.modes(basis)
        stds, own = modes.stds, basis.columns_of("exponential")
        assert (own.start, own.stop) == (9, basis.n_columns)
        assert (stds[1, :9] == 0).all()
        assert (stds[[0, 2], 9:] == 0).all()
        np.testing.assert_allclose((stds**2) @ basis.energy / graph.n_nodes, [9, 1, 4], rtol=1e-9)
        for m in range(3):
            component = prior.only(m)
            np.testing.assert_allclose(stds[m], component.std_of(modes).modes, rtol=1e-12)
            present = stds[m] > 0
            logs = np.asarray(component.log_std_of(modes).modes)
            np.testing.assert_allclose(logs[present], np.log(stds[m][present]), rtol=1e-9)
            assert (logs[~present] == 0).all()


def test_every_exported_prior_is_tested():
    exported = {
        value
        for name in gq.priors.__all__
        for value in [getattr(gq.priors, name)]
        if issubclass(value, Prior) and value is not Prior
    }
    # These are not normalised, as their scale is a parameter; other tests check them.
    apart = {gq.priors.RandomSeries, gq.priors.RegularizedLaplacian}
    assert exported == {type(prior) for prior in ALL_PRIORS} | apart
