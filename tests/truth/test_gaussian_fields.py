"""Gaussian fields with sigmoid noise, against quadrature, optimisation and dense algebra."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_expit

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import DisconnectedGraphWarning, IncompatibleParts, InvalidInput
from graphuq.inference import ExpectationPropagation, Laplace
from graphuq.likelihoods import GaussianNoise, Logistic
from graphuq.priors import RegularizedLaplacian
from graphuq.results.diagnostics import node_rows
from graphuq.results.summaries import soft_label_mean, summarize
from graphuq.run.choose_sampler import choose_sampler, first_approximation
from graphuq.spectrum import precision


def covariance(weights, beta, sigma):
    """Return the covariance ``[β(Δ + I/σ²)]⁻¹``."""
    laplacian = np.diag(weights.sum(axis=1)) - weights
    return np.linalg.inv(beta * (laplacian + np.eye(len(weights)) / sigma**2))


@pytest.fixture(params=[2, 3, 4])
def small(request):
    """Return a graph of 12 nodes with a few labels, and its covariance in plain NumPy."""
    weights = random_adjacency(12, seed=request.param)
    labelled = np.array([1, 7, 4, 10])[: request.param]
    labels = np.array([1.0, -1.0, 1.0, 1.0])[: request.param]
    prior, likelihood = RegularizedLaplacian(0.4, 3.0), Logistic(0.8)
    graph = gq.graphs.from_adjacency(weights)
    return graph, prior, likelihood, labelled, labels, covariance(weights, 0.4, 3.0)


@pytest.fixture(params=["spectrum", "solved"])
def posterior(request, small):
    graph, prior, likelihood, labelled, labels, _ = small
    laplacian = gq.Laplacian(graph, "unnormalized")
    if request.param == "spectrum":
        laplacian = gq.laplacian_spectrum(graph, "unnormalized", graph.n_nodes)
    return gq.Posterior(laplacian, prior, likelihood, labelled, labels)


def test_laplace_is_mode_and_curvature_of_all_nodes(small, posterior):
    """Mode and curvature of Zhu et al., appendix A, agree with an optimiser over all nodes."""
    _, _, _, labelled, labels, prior = small
    inverse = np.linalg.inv(prior)

    def objective(u):
        return 0.5 * u @ inverse @ u - log_expit(1.6 * labels * u[labelled]).sum()

    def slope(u):
        out = inverse @ u
        out[labelled] -= 1.6 * labels * expit(-1.6 * labels * u[labelled])
        return out

    mode = minimize(objective, np.zeros(12), jac=slope, method="BFGS", options={"gtol": 1e-9}).x
    curvature = inverse.copy()
    p = expit(1.6 * mode[labelled])
    curvature[labelled, labelled] += 1.6**2 * p * (1 - p)
    result = gq.infer(posterior, Laplace())
    np.testing.assert_allclose(result.latent_mean, mode, atol=1e-6)
    std = np.sqrt(np.diag(np.linalg.inv(curvature)))
    np.testing.assert_allclose(result.latent_std, std, rtol=1e-6)
    # (45): −Σ log(1 + e^{−2γyt}) − ½ yᵀG⁻¹y − ½ log|G P + I|, with P = 4γ² π(1 − π).
    g, u = prior[np.ix_(labelled, labelled)], mode[labelled]
    paper = (
        log_expit(1.6 * labels * u).sum()
        - 0.5 * u @ np.linalg.solve(g, u)
        - 0.5 * np.linalg.slogdet(g * (1.6**2 * p * (1 - p)) + np.eye(len(u)))[1]
    )
    assert result.log_evidence == pytest.approx(paper, abs=1e-7)


def quadrature(g, labels, steepness, n=40):
    """Return evidence and means of u_L by a product of Gauss-Hermite rules."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    root = np.linalg.cholesky(g)
    grid = np.array(list(itertools.product(nodes, repeat=len(g))))
    mass = np.prod(list(itertools.product(weights / weights.sum(), repeat=len(g))), axis=1)
    u = grid @ root.T
    p = mass * np.exp(log_expit(2 * steepness * labels * u).sum(axis=1))
    return np.log(p.sum()), (p @ u) / p.sum()


def test_evidence_and_mean_against_quadrature(small, posterior):
    """Log evidence has an error of 2e-3, and by Laplace's method of 0.06 for each label."""
    _, _, _, labelled, labels, prior = small
    g = prior[np.ix_(labelled, labelled)]
    n = {2: 60, 3: 30, 4: 22}[len(labels)]
    evidence, mean = quadrature(g, labels, 0.8, n)
    coarse, _ = quadrature(g, labels, 0.8, n - 4)
    assert abs(evidence - coarse) < 5e-4  # the quadrature itself
    closer, near = gq.infer(posterior, ExpectationPropagation()), gq.infer(posterior, Laplace())
    assert closer.log_evidence == pytest.approx(evidence, abs=2e-3)
    assert near.log_evidence == pytest.approx(evidence, abs=0.06 * len(labels))
    np.testing.assert_allclose(closer.latent_mean[labelled], mean, atol=5e-3)
    # Means at all nodes follow from those at labelled nodes.
    rest = prior[:, labelled] @ np.linalg.solve(g, mean)
    np.testing.assert_allclose(closer.latent_mean, rest, atol=5e-3)


def test_probabilities_are_integrals_of_the_sigmoid(small, posterior):
    result = gq.infer(posterior, Laplace())
    for node in (0, 5):
        m, s = result.latent_mean[node], result.latent_std[node]
        truth = mpmath.quad(
            lambda u, m=m, s=s: mpmath.npdf(u, m, s) / (1 + mpmath.exp(-1.6 * u)),
            [m - 12 * s, m, m + 12 * s],
        )
        assert gq.results.soft_label_mean(result)[node] == pytest.approx(float(truth), abs=1e-10)
        assert result.probabilities[node, 1] == pytest.approx(float(truth), abs=3e-8)
        assert abs(float(truth) - expit(1.6 * m)) > 1e-4  # not the sigmoid of the mode


def test_probabilities_of_draws_are_the_same_integrals(small, posterior):
    """A mixture of normal cdfs agrees with the likelihood, also with a control variate."""
    result = gq.infer(posterior, n_samples=400, n_chains=4)
    plain = dataclasses.replace(result.answer, reference=None)
    rows, link = node_rows(posterior), posterior.likelihood.link
    by_mixture = summarize(plain, posterior.field, rows, link).label_mean
    by_likelihood = soft_label_mean(plain, posterior.field, rows, posterior.likelihood)
    np.testing.assert_allclose(by_mixture, 2 * by_likelihood - 1, atol=1e-6)
    truth = gq.infer(posterior, ExpectationPropagation())
    # 0.01 allows for the error of expectation propagation, at most 5e-3 in u in the test above.
    error = 4 * gq.results.label_mcse(result) + 0.01
    assert (abs(gq.results.label_mean(result) - gq.results.label_mean(truth)) < error).all()


@pytest.mark.parametrize(
    ("mean", "std"), [(0.3, 0.05), (-2.0, 3.0), (5.0, 67.0), (-8.0, 1.0), (-30.0, 0.5), (40.0, 3.0)]
)
@pytest.mark.parametrize("steepness", [0.5, 1.0, 5.0])
def test_integral_of_the_sigmoid(mean, std, steepness):
    """The integral is exact for a steep sigmoid, which 64 Gauss-Hermite nodes miss."""
    shift = mean + 2 * steepness * std**2
    points = [x + k * std for x in (mean, shift) for k in (-12, -3, 0, 3, 12)]
    points = sorted({*points, 0.0, -5 / steepness, 5 / steepness})
    with mpmath.workdps(30):
        truth = mpmath.log(
            mpmath.quad(
                lambda u: mpmath.npdf(u, mean, std) / (1 + mpmath.exp(-2 * steepness * u)), points
            )
        )
    with jax.enable_x64(True):
        ones = jnp.ones(1)
        found = Logistic(steepness).log_partition(mean * ones, std**2 * ones, ones)
    assert float(found[0]) == pytest.approx(float(truth), rel=2e-8, abs=1e-14)


@pytest.mark.slow_after(1)
def test_gaussian_noise_is_exact_conditioning(small, posterior):
    _, _, _, labelled, labels, prior = small
    seen = gq.Posterior(
        gq.Laplacian(small[0], "unnormalized"), small[1], GaussianNoise(0.3), labelled, labels
    )
    gain = prior[:, labelled] @ np.linalg.inv(
        prior[np.ix_(labelled, labelled)] + 0.09 * np.eye(len(labels))
    )
    mean, spread = gain @ labels, prior - gain @ prior[labelled]
    together = prior[np.ix_(labelled, labelled)] + 0.09 * np.eye(len(labels))
    evidence = -0.5 * (
        labels @ np.linalg.solve(together, labels) + np.linalg.slogdet(2 * np.pi * together)[1]
    )
    for method in (Laplace(), ExpectationPropagation()):
        result = gq.infer(seen, method)
        np.testing.assert_allclose(result.latent_mean, mean, atol=1e-7)
        np.testing.assert_allclose(result.latent_std, np.sqrt(np.diag(spread)), rtol=1e-6)
        assert result.log_evidence == pytest.approx(evidence, abs=1e-7)


def test_limit_is_the_harmonic_function(small):
    """The limit σ → ∞ without noise is harmonic (Zhu et al., appendix A)."""
    graph, _, _, labelled, labels, _ = small
    harmonic = gq.harmonic_function(graph, labelled, labels)
    weights = graph.weights.toarray() if sparse.issparse(graph.weights) else graph.weights
    free = np.setdiff1d(np.arange(12), labelled)
    laplacian = np.diag(graph.degrees) - weights
    by_hand = np.linalg.solve(
        laplacian[np.ix_(free, free)], weights[np.ix_(free, labelled)] @ labels
    )
    np.testing.assert_allclose(harmonic[free], by_hand, atol=1e-12)
    np.testing.assert_array_equal(harmonic[labelled], labels)
    errors = []
    for sigma in (10.0, 1e2, 1e3):
        posterior = gq.Posterior(
            gq.Laplacian(graph, "unnormalized"),
            RegularizedLaplacian(1.0, sigma),
            GaussianNoise(1e-5),
            labelled,
            labels,
        )
        mean = gq.infer(posterior, ExpectationPropagation()).latent_mean
        errors.append(abs(mean - harmonic).max())
    # The error falls as 1/σ² until rounding (1e-7 of a covariance of 1e6).
    assert errors[0] > 30 * errors[1]
    assert errors[2] < 1e-5


@pytest.fixture
def parted():
    """Return a graph of three components, one of them without labels, and its labels."""
    rng = np.random.default_rng(3)
    parts = [
        gq.graphs.knn_graph(rng.normal(size=(200, 4)), 6, "unweighted").weights for _ in range(3)
    ]
    with pytest.warns(DisconnectedGraphWarning):
        graph = gq.graphs.from_adjacency(sparse.block_diag([*map(sparse.csr_array, parts)]).tocsr())
    return graph, np.r_[0:6, 200:206], np.r_[np.ones(6), -np.ones(3), np.ones(3)]


@pytest.mark.parametrize("laplacian", ["unnormalized", "symmetric", "random-walk"])
def test_conjugate_gradients_and_draws(parted, laplacian, monkeypatch):
    """Means agree within 1e-7, deviations within the error of 200 draws."""
    graph, labelled, labels = parted
    prior, likelihood = RegularizedLaplacian(0.1, 1000.0), Logistic()
    operator = gq.Laplacian(graph, laplacian)
    exact = gq.infer(gq.Posterior(operator, prior, likelihood, labelled, labels), Laplace())
    assert exact.settings["solver"] == "cholesky"
    monkeypatch.setattr(precision, "DENSE_UP_TO", 10)
    found = gq.infer(gq.Posterior(operator, prior, likelihood, labelled, labels), Laplace())
    assert found.settings["solver"] == "conjugate gradients"
    np.testing.assert_allclose(found.latent_mean, exact.latent_mean, atol=1e-7)
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=1e-6)
    ratio = found.latent_std[graph.components < 2] / exact.latent_std[graph.components < 2]
    error = found.settings["deviation_error"]
    assert 0.002 < error < 0.05
    assert np.sqrt(((ratio - 1) ** 2).mean()) < 2 * error
    assert abs(ratio.mean() - 1) < error
    assert not found.latent_mean[graph.components == 2].any()


def test_harmonic_function_by_conjugate_gradients(parted, monkeypatch):
    graph, labelled, labels = parted
    with pytest.warns(DisconnectedGraphWarning, match="200 node"):
        exact = gq.harmonic_function(graph, labelled, np.stack([labels, -labels], axis=1))
    monkeypatch.setattr("graphuq.spectrum.harmonic.DENSE_UP_TO", 10)
    with pytest.warns(DisconnectedGraphWarning):
        found = gq.harmonic_function(graph, labelled, np.stack([labels, -labels], axis=1))
    np.testing.assert_allclose(found, exact, atol=1e-8)


def test_solved_posterior_is_saved_and_changed(small, posterior, tmp_path):
    result = gq.infer(posterior, Laplace())
    result.save(tmp_path / "fit.nc")
    loaded = gq.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(
        gq.results.soft_label_mean(loaded), gq.results.soft_label_mean(result)
    )
    np.testing.assert_allclose(gq.credible_interval(loaded), gq.credible_interval(result))
    changed = RegularizedLaplacian(0.7, 3.0)
    basis = loaded.posterior.spectrum
    assert type(basis) is type(result.posterior.spectrum)
    np.testing.assert_array_equal(basis.basis, result.posterior.spectrum.basis)
    if basis.has_eigenpairs:
        return
    assert not isinstance(basis, gq.Spectrum)
    assert "covariance columns" in repr(result.posterior)
    # The file holds no graph, from which columns of another prior could be computed.
    with pytest.raises(IncompatibleParts, match="columns of a covariance"):
        gq.infer(dataclasses.replace(loaded.posterior, prior=changed), Laplace())
    anew = dataclasses.replace(result.posterior, prior=changed)
    graph, _, likelihood, labelled, labels, _ = small
    direct = gq.Posterior(
        gq.Laplacian(graph, "unnormalized"), changed, likelihood, labelled, labels
    )
    np.testing.assert_array_equal(anew.spectrum.factor, direct.spectrum.factor)


@pytest.mark.slow
def test_multiclass_on_covariance_columns():
    graph = gq.graphs.from_adjacency(random_adjacency(30))
    labelled, labels = np.arange(6), np.array([0, 1, 2, 0, 1, 2])
    by_columns, by_series = (
        gq.infer(
            gq.Posterior(
                basis,
                RegularizedLaplacian(0.5, 2.0),
                gq.likelihoods.Softmax(1.0, 3),
                labelled,
                labels,
            ),
            gq.inference.Laplace(),
        )
        for basis in (
            gq.Laplacian(graph, "unnormalized"),
            gq.laplacian_spectrum(graph, "unnormalized", 30),
        )
    )
    at, there = by_columns.answer, by_series.answer
    np.testing.assert_allclose(at.labelled_mean, there.labelled_mean, atol=1e-8)
    np.testing.assert_allclose(at.labelled_variance, there.labelled_variance, rtol=1e-7)
    # Means of other nodes are from 4,000 draws of the Gaussian.
    np.testing.assert_allclose(by_columns.latent_mean, by_series.latent_mean, atol=0.06)


def test_models_without_covariance_columns_are_refused(small):
    graph, prior, likelihood, labelled, labels, _ = small
    operator = gq.Laplacian(graph, "unnormalized")
    with pytest.raises(IncompatibleParts, match="no power of the Laplacian"):
        gq.Posterior(operator, gq.priors.Diffusion(), likelihood, labelled, labels)
    with pytest.raises(IncompatibleParts, match="need eigenpairs"):
        gq.Posterior(
            operator, RegularizedLaplacian(gq.Uniform(0.1, 1)), likelihood, labelled, labels
        )
    with pytest.raises(IncompatibleParts, match="need eigenpairs"):
        gq.Posterior(operator, prior, gq.likelihoods.GinzburgLandau(), labelled, labels)
    for bad in (
        lambda: RegularizedLaplacian(beta=0.0),
        lambda: RegularizedLaplacian(sigma=-1.0),
        lambda: Logistic(0.0),
        lambda: GaussianNoise(0.0),
        lambda: gq.harmonic_function(graph, [0, 40], [1, -1]),
        lambda: gq.harmonic_function(graph, [0, 0], [1, -1]),
        lambda: gq.harmonic_function(graph, [0], [np.nan]),
        lambda: gq.harmonic_function(graph, [], []),
    ):
        with pytest.raises(InvalidInput):
            bad()


@pytest.mark.slow
def test_regularized_laplacian_has_learnt_hyperparameters():
    """β and σ have hyperpriors and are sampled with the field."""
    graph = gq.graphs.from_adjacency(random_adjacency(20))
    spectrum = gq.laplacian_spectrum(graph, "unnormalized", 12)
    prior = RegularizedLaplacian(gq.LogUniform(0.05, 5.0), gq.LogUniform(0.5, 50.0))
    posterior = gq.Posterior(spectrum, prior, Logistic(), np.arange(4), [1, -1, 1, -1])
    result = gq.infer(posterior, n_samples=200, n_chains=4)
    assert set(result.hyperparameters) == {"beta", "sigma"}
    assert (result.hyperparameters["beta"] > 0.05).all()


@pytest.mark.slow
def test_default_sampler_where_the_gaussian_is_far_off():
    """The posterior of u in a component with one label is steep at 0 and flat up to σ."""
    parts = [random_adjacency(12, seed=k) for k in range(3)]
    with pytest.warns(DisconnectedGraphWarning):
        graph = gq.graphs.from_adjacency(sparse.block_diag([*map(sparse.csr_array, parts)]).tocsr())
    posterior = gq.Posterior(
        gq.Laplacian(graph, "unnormalized"),
        RegularizedLaplacian(0.1, 1000.0),
        Logistic(),
        np.r_[0, 12:16, 24:30],
        np.r_[1, -1, -1, 1, -1, 1, 1, 1, -1, 1, 1],
    )
    gaussian = first_approximation(posterior)
    chosen = choose_sampler(posterior, gaussian)
    assert isinstance(chosen, gq.inference.EllipticalSlice | gq.inference.Independence)
    result = gq.infer(posterior, n_samples=1500, n_chains=16)
    assert result.diagnostics.rhat < 1.02
    # With one label in the component, u is very nearly N(0, s²) weighted by a step.
    s = np.sqrt(posterior.spectrum.factor[0] @ posterior.spectrum.factor[0])
    draws = gq.results.latent_draws(result, np.array([0]))[0]
    error = draws.std() / np.sqrt(result.diagnostics.ess_bulk)
    assert abs(draws.mean() - s * np.sqrt(2 / np.pi)) < 4 * error
