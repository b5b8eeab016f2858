"""Grids: the closed form against a factorisation, and transforms against products."""

import dataclasses

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import InvalidInput
from graphuq.spectrum import Laplacian, ProductBasis

GRIDS = [((7,), False), ((8,), True), ((3, 4), False), ((4, 5), (True, False)), ((2, 3, 4), False)]


@pytest.mark.parametrize(("shape", "periodic"), GRIDS)
def test_pairs_are_those_of_the_laplacian(shape, periodic):
    graph = gq.graphs.grid_graph(shape, periodic)
    n = graph.n_nodes
    spectrum = gq.laplacian_spectrum(graph, "unnormalized", n)
    dense = gq.laplacian_spectrum(graph, "unnormalized", n, solver="dense")
    assert isinstance(spectrum.eigenvectors, ProductBasis)
    assert spectrum.settings["solver"] == "closed-form"
    np.testing.assert_allclose(spectrum.eigenvalues, dense.eigenvalues, atol=1e-12)
    q = np.asarray(spectrum.eigenvectors)
    np.testing.assert_allclose(q.T @ q, np.eye(n), atol=1e-12)
    residual = Laplacian(graph, "unnormalized") @ q - spectrum.eigenvalues * q
    np.testing.assert_allclose(residual, 0, atol=1e-12)


@pytest.mark.parametrize("few_waves", [0, 128])  # by transforms, and by tables
@pytest.mark.parametrize(("shape", "periodic"), GRIDS)
def test_it_stands_where_an_array_would(shape, periodic, few_waves, monkeypatch):
    monkeypatch.setattr(gq.spectrum.closed_form, "FEW_WAVES", few_waves)
    basis = gq.laplacian_spectrum(
        gq.graphs.grid_graph(shape, periodic), "unnormalized", 6
    ).eigenvectors
    q, rng = np.asarray(basis), np.random.default_rng(0)
    x, z = rng.normal(size=(6, 3)), rng.normal(size=(len(q), 3))
    np.testing.assert_allclose(basis @ x, q @ x, atol=1e-12)
    np.testing.assert_allclose(basis @ x[:, 0], q @ x[:, 0], atol=1e-12)
    np.testing.assert_allclose(basis.T @ z, q.T @ z, atol=1e-12)
    np.testing.assert_allclose(basis[:, :4].T @ z, q[:, :4].T @ z, atol=1e-12)
    assert basis.shape == q.shape
    for key in (
        [1, 3], slice(2, 5), 4, ([1, 3], slice(0, 2)), (slice(None), 2), (slice(None), [0, 3]),
        (slice(1, 3), [0, 2]), np.arange(len(q)) % 2 == 0,
    ):  # fmt: skip
        np.testing.assert_allclose(np.asarray(basis[key]), q[key], atol=1e-15)


def test_long_axes_are_not_tabled(monkeypatch):
    basis = gq.laplacian_spectrum(gq.graphs.path_graph(50), "unnormalized", 9).eigenvectors
    tabled = basis[[0, 30, 49]]
    monkeypatch.setattr(gq.spectrum.closed_form, "MAX_TABLED", 10)
    np.testing.assert_allclose(basis[[0, 30, 49]], tabled, atol=1e-13)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_transforms_give_the_same_draws_as_products():
    lazy = gq.laplacian_spectrum(gq.graphs.path_graph(12), "unnormalized")
    tabled = dataclasses.replace(lazy, eigenvectors=np.asarray(lazy.eigenvectors))
    draws = []
    for spectrum in (lazy, tabled):
        prior, likelihood = gq.priors.RandomSeries(), gq.likelihoods.Probit(1.0)
        labels = np.where(np.arange(9) < 5, 1, -1)
        posterior = gq.Posterior(spectrum, prior, likelihood, np.arange(9), labels)
        method = gq.inference.ReversibleJump(form="plain")
        result = gq.infer(posterior, method, n_samples=50, n_chains=2)
        draws.append(gq.results.latent_draws(result, [0, 11]))
        assert np.isfinite(gq.credible_interval(result)).all()
    np.testing.assert_allclose(*draws, atol=1e-8)


def test_other_methods_take_it_too(tmp_path):
    spectrum = gq.laplacian_spectrum(gq.graphs.grid_graph((6, 5)), "unnormalized", 12)
    posterior = gq.Posterior(
        spectrum, gq.priors.Matern(), gq.likelihoods.Probit(0.5), [0, 29], [1, -1]
    )
    result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    result.save(tmp_path / "fit.nc")
    found = gq.load(tmp_path / "fit.nc")
    assert isinstance(found.posterior.spectrum.eigenvectors, ProductBasis)
    np.testing.assert_array_equal(gq.results.label_mean(found), gq.results.label_mean(result))
    spectrum.save(tmp_path / "spectrum.npz")
    again = gq.load_spectrum(tmp_path / "spectrum.npz").eigenvectors
    np.testing.assert_array_equal(np.asarray(again), np.asarray(spectrum.eigenvectors))


def test_the_closed_form_is_refused_where_there_is_none():
    for graph, laplacian in (
        (gq.graphs.path_graph(5), "symmetric"),
        (gq.graphs.from_adjacency(np.ones((4, 4)) - np.eye(4)), "unnormalized"),
    ):
        with pytest.raises(InvalidInput, match="closed-form"):
            gq.laplacian_spectrum(graph, laplacian, solver="closed-form")
