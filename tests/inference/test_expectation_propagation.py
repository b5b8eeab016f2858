"""Expectation propagation against orthant probabilities, long chains, and finite differences."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import covariance, orthant, probit_label_mean, step_label_mean
from scipy.integrate import quad
from scipy.stats import norm

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.evidence.criteria import ObservedPrior
from graphuq.inference import expectation_propagation as ep
from graphuq.posterior.field import CovarianceField, SeriesField
from graphuq.posterior.target import log_likelihoods
from graphuq.results import diagnostics
from graphuq.results.diagnostics import diagnostics_from

WEIGHTS = random_adjacency(24, seed=3)
GRAPH = gq.graphs.from_adjacency(WEIGHTS)
LABELLED, LABELS = [0, 3, 7, 12, 15, 18], [1, -1, 1, -1, 1, 1]
CASES = [(12, None, 4), (12, 0.8, 4), (4, 0.9, 6), (4, None, 6)]  # (ℓ, λ̄, J): every field


def level_set(sign, y, noise_std):
    """Return the paper's exp(−|y − sign|² / 2γ²), normalised over the two labels."""
    cost = {label: np.exp(-((label - sign) ** 2) / (2 * noise_std**2)) for label in (-1, 1)}
    return cost[y] / sum(cost.values())


# p(y | sign of u) by the paper's definitions: (sign, y) → level
LEVELS = {
    repr(gq.likelihoods.LevelSet(g)): {(s, y): level_set(s, y, g) for s in (-1, 1) for y in (-1, 1)}
    for g in (0.4, 1.0)
}
LEVELS[repr(gq.likelihoods.AtomicNoise(0.9, 0.8))] = {
    (1, 1): 0.9,
    (1, -1): 0.1,
    (-1, -1): 0.8,
    (-1, 1): 0.2,
}
LEVELS[repr(gq.likelihoods.NoiseFree())] = {(1, 1): 1, (1, -1): 0, (-1, -1): 1, (-1, 1): 0}


def build(likelihood, n_eigenpairs, tail, n_labelled, laplacian="symmetric"):
    spectrum = gq.laplacian_spectrum(GRAPH, laplacian, n_eigenpairs, tail_eigenvalue=tail or False)
    labelled, labels = LABELLED[:n_labelled], LABELS[:n_labelled]
    prior = gq.priors.InverseLaplacian()
    return gq.Posterior(spectrum, prior, likelihood, labelled, labels)


@pytest.mark.parametrize(("n_eigenpairs", "tail", "n_labelled"), CASES)
@pytest.mark.parametrize("laplacian", ["symmetric", "random-walk"])
def test_conditioning_on_sites_is_gaussian_conditioning(n_eigenpairs, tail, n_labelled, laplacian):
    """The field given Gaussian observations agrees with the textbook formula on all N nodes."""
    likelihood = gq.likelihoods.Probit(0.4)
    posterior = build(likelihood, n_eigenpairs, tail, n_labelled, laplacian)
    rng = np.random.default_rng(0)
    tau, nu = rng.uniform(0.5, 2, n_labelled), rng.normal(size=n_labelled)
    found = posterior.field.condition(tau, nu)
    with jax.enable_x64(True):  # the form that `MAP` uses
        compiled = posterior.field.condition(jnp.asarray(tau), jnp.asarray(nu))
    for in_numpy, in_jax in zip(found, compiled, strict=True):
        np.testing.assert_allclose(in_numpy, in_jax, atol=1e-10)
    prior = covariance(WEIGHTS, n_eigenpairs, tail, laplacian)
    labelled = posterior.labelled
    block = prior[np.ix_(labelled, labelled)]
    gain = np.linalg.solve(block + np.diag(1 / tau), prior[labelled]).T
    mean, cov = gain @ (nu / tau), prior - gain @ prior[labelled]
    np.testing.assert_allclose(found.mean, mean[labelled], atol=1e-9)
    np.testing.assert_allclose(found.variance, np.diag(cov)[labelled], atol=1e-9)
    # ∫ N(u; 0, G) exp(νu − τu²/2): a Gaussian density in ν/τ, without its own constant.
    y, noisy = nu / tau, block + np.diag(1 / tau)
    log_norm = 0.5 * (nu @ y) - 0.5 * (
        y @ np.linalg.solve(noisy, y) + np.linalg.slogdet(noisy)[1] + np.log(tau).sum()
    )
    assert float(found.log_normalizer) == pytest.approx(log_norm, abs=1e-9)
    rows = np.setdiff1d(np.arange(24), labelled)
    q, scale = posterior.spectrum.eigenvectors[rows], posterior.spectrum.node_scale[rows]
    loadings = q @ posterior.field.coefficient_map
    np.testing.assert_allclose(
        scale * (loadings @ np.asarray(found.white_mean)), mean[rows], atol=1e-8
    )
    spread = ((loadings @ np.asarray(found.white_covariance)) * loadings).sum(axis=1)
    np.testing.assert_allclose(
        scale**2 * (posterior.field.conditional_std(q) ** 2 + spread),
        np.diag(cov)[rows],
        atol=1e-8,
    )


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(("n_eigenpairs", "tail", "n_labelled"), CASES[:3])
@pytest.mark.parametrize(
    "likelihood",
    [
        gq.likelihoods.Probit(0.4),
        pytest.param(gq.likelihoods.LevelSet(1.0), marks=pytest.mark.slow),
        pytest.param(gq.likelihoods.LevelSet(0.4), marks=pytest.mark.slow),
        gq.likelihoods.AtomicNoise(0.9, 0.8),
        gq.likelihoods.NoiseFree(),
    ],
    ids=repr,
)
def test_label_means_and_evidence(likelihood, n_eigenpairs, tail, n_labelled):
    """Label means are exact within 0.01, and the log evidence within 0.003."""
    posterior = build(likelihood, n_eigenpairs, tail, n_labelled)
    result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    prior = covariance(WEIGHTS, n_eigenpairs, tail)
    labelled, labels = LABELLED[:n_labelled], LABELS[:n_labelled]
    nodes = [1, 3, 5, 20, 23]  # node 3 is labelled
    block = prior[np.ix_(labelled, labelled)]
    if likelihood.has_gradient:
        noise = likelihood.noise_std
        truth = [probit_label_mean(prior, labelled, labels, noise, node) for node in nodes]
        evidence = orthant(block + noise**2 * np.eye(n_labelled), labels)
    else:
        levels = LEVELS[repr(likelihood)]
        truth = [step_label_mean(prior, labelled, labels, levels, node) for node in nodes]
        evidence = sum(
            np.prod([levels[s, y] for s, y in zip(signs, labels, strict=True)])
            * orthant(block, signs)
            for signs in itertools.product([-1, 1], repeat=n_labelled)
        )
    np.testing.assert_allclose(gq.results.label_mean(result)[nodes], truth, atol=0.01)
    assert result.log_evidence == pytest.approx(np.log(evidence), abs=0.003)


@pytest.mark.slow
def test_against_a_long_chain_with_many_labels():
    """The error of expectation propagation on two moons with 60 labels, measured by chains."""
    moons = gq.datasets.two_moons(300, n_features=2, noise_std=0.15, rng=0)
    graph = gq.graphs.knn_graph(moons.features, 10)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=40)
    posterior = gq.Posterior(
        spectrum,
        gq.priors.InverseLaplacian(),
        gq.likelihoods.Probit(0.3),
        np.arange(60),
        moons.signs(1)[:60],
    )
    fast = gq.infer(posterior, gq.inference.ExpectationPropagation())
    slow = gq.infer(posterior, gq.inference.PCN(), n_samples=3000, thin=50, n_warmup=5000, rng=0)
    assert gq.results.label_mcse(slow).max() < 0.03
    assert np.abs(gq.results.label_mean(fast) - gq.results.label_mean(slow)).mean() < 0.01
    np.testing.assert_allclose(fast.latent_std, slow.latent_std, rtol=0.15)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "likelihood",
    [
        gq.likelihoods.Probit(0.4),
        gq.likelihoods.LevelSet(0.8),
        gq.likelihoods.AtomicNoise(0.7, 0.9),
    ],
)
def test_log_partition_against_quadrature(likelihood):
    mean, variance = np.array([0.3, -1.2, 2.0]), np.array([0.5, 2.0, 0.1])
    y = np.array([1.0, 1.0, -1.0])
    with jax.enable_x64(True):
        arrays = jnp.asarray(mean), jnp.asarray(variance), jnp.asarray(y)
        closed = np.asarray(likelihood.log_partition(*arrays))
        default = np.asarray(gq.likelihoods.Likelihood.log_partition(likelihood, *arrays))

        def integrand(u, j):
            p = np.exp(float(likelihood.log_prob(jnp.asarray([u]), arrays[2][j : j + 1])[0]))
            return p * norm.pdf(u, mean[j], np.sqrt(variance[j]))

        truth = [
            np.log(
                sum(
                    quad(integrand, a, b, args=(j,), limit=200)[0]
                    for a, b in (
                        (mean[j] - 9 * np.sqrt(variance[j]), 0.0),
                        (0.0, mean[j] + 9 * np.sqrt(variance[j])),
                    )
                )
            )
            for j in range(3)
        ]
    np.testing.assert_allclose(closed, truth, rtol=1e-6)
    # Gauss-Hermite quadrature is exact for smooth likelihoods; its error at a step is about 5 %.
    np.testing.assert_allclose(default, truth, atol=1e-4 if likelihood.has_gradient else 0.1)


@pytest.mark.slow_after(4)
@pytest.mark.parametrize(
    "likelihood",
    [
        gq.likelihoods.Probit(0.4),
        gq.likelihoods.Probit(1e-3),
        gq.likelihoods.GaussianNoise(0.5),
        gq.likelihoods.LevelSet(0.8),
        gq.likelihoods.AtomicNoise(0.7, 0.9),
        gq.likelihoods.NoiseFree(),
        gq.likelihoods.Logistic(0.7),
    ],
    ids=repr,
)
def test_tilted_moments_and_label_means(likelihood):
    """Closed forms agree with automatic differentiation, and label means with a fine grid."""
    mean = np.array([0.3, -1.2, 2.0, 0.9, -4.0, 0.0])
    variance = np.array([0.5, 2.0, 0.1, 1.0, 0.2, 1.0])
    y = np.array([1.0, 1.0, -1.0, -1.0, 1.0, 1.0])
    found = likelihood.tilt(mean, variance, y)
    default = gq.likelihoods.Likelihood.tilt(likelihood, mean, variance, y)
    for own, automatic in zip(found, default, strict=True):
        np.testing.assert_allclose(own, automatic, rtol=1e-8, atol=1e-10)
    slopes = likelihood.tilted_slopes(mean, variance, y)
    automatic = gq.likelihoods.Likelihood.tilted_slopes(likelihood, mean, variance, y)
    assert slopes == pytest.approx(automatic, rel=1e-8)
    z = (np.arange(-200_000, 200_000) + 0.5) / 20_000  # zero is not on the grid
    for j in range(len(y)):
        u = np.sort(np.append(mean[j] + np.sqrt(variance[j]) * z, 0.0))
        middle, width = (u[1:] + u[:-1]) / 2, np.diff(u)
        with jax.enable_x64(True):
            log_prob = likelihood.log_prob(jnp.asarray(middle), jnp.full(len(middle), y[j]))
        log_weights = np.asarray(log_prob) - (middle - mean[j]) ** 2 / (2 * variance[j])
        weights = np.exp(log_weights - log_weights.max()) * width
        truth = weights @ np.sign(middle) / weights.sum()
        assert likelihood.tilted_label_mean(mean, variance, y)[j] == pytest.approx(truth, abs=1e-6)


class JaxNoise(gq.likelihoods.StepLikelihood):
    """A likelihood of the user, written in JAX only."""

    p: float = 0.9

    def log_levels(self, y):
        return jnp.full_like(y, jnp.log(self.p)), jnp.full_like(y, jnp.log(1 - self.p))


def test_levels_from_jax_keep_double_precision():
    own, same = JaxNoise(0.9), gq.likelihoods.AtomicNoise(0.9, 0.9)
    fits = [
        gq.inference.ExpectationPropagation(tolerance=1e-9).fit(
            build(law, 12, None, 6).plain_target
        )
        for law in (own, same)
    ]
    np.testing.assert_allclose(fits[0].white_mean, fits[1].white_mean, atol=1e-12)
    np.testing.assert_allclose(fits[0].labelled_label_mean, fits[1].labelled_label_mean, atol=1e-12)


def test_gradient_of_the_evidence():
    """The gradient at fixed sites agrees with finite differences of the whole fixed point."""
    posterior = build(gq.likelihoods.Probit(0.4), 12, None, 4)

    def at(noise_std):
        likelihood = gq.likelihoods.Probit(noise_std)
        target = eqx.tree_at(lambda t: t.likelihood, posterior.target, likelihood)
        return gq.inference.ExpectationPropagation(tolerance=1e-12).fit(target)

    step = 1e-4
    numerical = (at(0.4 + step).log_evidence - at(0.4 - step).log_evidence) / (2 * step)
    target = ObservedPrior(
        CovarianceField(posterior.field.factor @ posterior.field.factor.T),
        posterior.likelihood,
        posterior.observed_labels,
    )
    found = ep.iterate_sites(target, 1.0, 500, 1e-12)
    slopes = ep.likelihood_slopes(target, found)
    assert slopes["noise_std"] == pytest.approx(numerical, rel=1e-5)


@pytest.mark.parametrize("n_labelled", [4, 10])  # fewer than modes, and more
@pytest.mark.parametrize("tail", [0.0, 0.7])
@pytest.mark.parametrize(
    "likelihood", [gq.likelihoods.Probit(0.4), gq.likelihoods.LevelSet(1.0)], ids=repr
)
def test_gradient_of_the_evidence_in_the_field(likelihood, tail, n_labelled):
    """Gradients in covariance, spectral deviations and tail agree with finite differences."""
    rng = np.random.default_rng(2)
    rows = np.linalg.qr(rng.normal(size=(24, 6)))[0][:n_labelled] * 2
    scale, modes = rng.uniform(0.5, 2, n_labelled), rng.uniform(0.5, 2, 6)
    labels = np.where(rng.uniform(size=n_labelled) < 0.5, 1.0, -1.0)

    def settled(field):
        target = ObservedPrior(field, likelihood, labels)
        found = ep.iterate_sites(target, 1.0, 2000, 1e-12)
        assert found.change <= 1e-12
        return target, found

    def value(changes):
        field = SeriesField(rows, scale, modes + changes[:6], tail + changes[6])
        return ep.log_evidence(*settled(field))

    by_modes, by_tail = ep.field_slopes(*settled(SeriesField(rows, scale, modes, tail)))
    steps = 1e-5 * np.eye(7)
    numerical = [(value(step) - value(-step)) / 2e-5 for step in steps]
    np.testing.assert_allclose([*by_modes, by_tail], numerical, rtol=1e-5, atol=1e-7)

    prior = (rows * (modes**2 - tail**2)) @ rows.T + tail**2 * np.eye(n_labelled)
    prior = scale[:, None] * prior * scale
    by_covariance = ep.field_slopes(*settled(CovarianceField(prior)))
    change = np.outer(scale, scale) * (rows @ rows.T)
    sides = [ep.log_evidence(*settled(CovarianceField(prior + h * change))) for h in (1e-5, -1e-5)]
    assert (by_covariance * change).sum() == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-5)


def test_anderson_steps_save_sweeps(monkeypatch):
    """Anderson's steps reach the fixed point of damped ones in at most half as many sweeps."""
    rng = np.random.default_rng(1)
    graph = gq.graphs.knn_graph(rng.normal(size=(200, 2)), 8)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=80)
    labels = np.where(spectrum.eigenvectors[:60, 1] > 0, 1, -1)
    posterior = gq.Posterior(
        spectrum, gq.priors.Matern(0.3, 2.0), gq.likelihoods.Probit(0.1), np.arange(60), labels
    )

    def settled():
        found = ep.iterate_sites(posterior.plain_target, 1.0, 400, 1e-10)
        return found.given.mean, found.n_sweeps

    mean, n_sweeps = settled()
    monkeypatch.setattr(ep, "_anderson_step", lambda now, past, weights, damping, plain: plain)
    plain, n_plain = settled()
    np.testing.assert_allclose(mean, plain, atol=1e-8)
    assert n_sweeps <= n_plain / 2


def test_survives_a_file_and_has_no_draws(tmp_path):
    posterior = build(gq.likelihoods.Probit(0.4), 12, 0.8, 4)
    result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    result.save(tmp_path / "ep.nc")
    again = gq.load(tmp_path / "ep.nc")
    np.testing.assert_array_equal(gq.results.label_mean(again), gq.results.label_mean(result))
    np.testing.assert_array_equal(
        gq.credible_interval(again, 0.9), gq.credible_interval(result, 0.9)
    )
    assert again.log_evidence == result.log_evidence
    assert again.diagnostics == result.diagnostics
    assert "approximation" in repr(again)
    with pytest.raises(IncompatibleParts, match="has no draws"):
        gq.results.draws(result)
    gq.write_report(result, tmp_path / "report.html")
    assert "has converged" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("likelihood", "n_eigenpairs", "tail", "n_labelled", "words"),
    [
        (gq.likelihoods.Probit(1.0), 12, None, 4, "close to the posterior"),
        (gq.likelihoods.Probit(0.02), 12, None, 8, "probabilities may be wrong by up to"),
        (gq.likelihoods.Probit(0.4), 4, 0.8, 8, "its distance from the posterior is unknown"),
    ],
    ids=["close", "off", "tail"],
)
def test_the_verdict_reports_the_distance_from_the_posterior(
    likelihood, n_eigenpairs, tail, n_labelled, words
):
    posterior = build(likelihood, n_eigenpairs, tail, n_labelled)
    found = gq.infer(posterior, gq.inference.ExpectationPropagation()).diagnostics
    assert words in found.verdict
    assert (found.acceptance is None) == (tail is not None)
    if found.acceptance is not None:  # the acceptance of a chain with these proposals
        sampler = gq.inference.Independence(reference=gq.inference.ExpectationPropagation())
        chains = gq.infer(posterior, sampler, n_samples=500, n_chains=32, thin=30)
        by_chain = chains.answer.acceptance.mean(axis=1)
        error = np.hypot(by_chain.std(ddof=1) / np.sqrt(32), 0.5 / np.sqrt(1600))
        assert abs(found.acceptance - by_chain.mean()) < 4 * error


def test_an_iteration_that_does_not_converge_is_an_error():
    posterior = build(gq.likelihoods.Probit(0.01), 12, None, 4)
    with pytest.raises(InvalidInput, match="did not converge within 1 sweeps"):
        gq.infer(posterior, gq.inference.ExpectationPropagation(max_sweeps=1))


def test_improper_sites_do_not_converge():
    """Sites of another target, with which a search may start, can be improper."""
    target = build(gq.likelihoods.LevelSet(0.8), 4, None, 6).plain_target
    found = ep.iterate_sites(target, 1.0, 500, 1e-5, initial_sites=np.full((2, 6), -1e3))
    assert found.n_sweeps == 0
    assert found.change == np.inf
    shaky = np.stack([np.full(6, -0.1), np.zeros(6)])  # proper, with negative precisions
    found, settled = (ep.iterate_sites(target, 0.2, 500, 1e-8, near) for near in (shaky, None))
    np.testing.assert_allclose(found.sites, settled.sites, atol=1e-4)


def test_components_without_labels_keep_the_prior():
    from scipy import sparse

    from graphuq.errors import DisconnectedGraphWarning

    blocks = [random_adjacency(12, seed=s) for s in range(2)]
    with pytest.warns(DisconnectedGraphWarning):
        graph = gq.graphs.from_adjacency(
            sparse.block_diag([*map(sparse.csr_array, blocks)], format="csr")
        )
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=10)
    posterior = gq.Posterior(
        spectrum, gq.priors.InverseLaplacian(), gq.likelihoods.Probit(0.3), [0, 5], [1, -1]
    )
    result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    np.testing.assert_allclose(gq.results.label_mean(result)[12:], 0, atol=1e-12)
    assert (result.latent_std[12:] > 0.05).all()


@pytest.mark.parametrize(
    "likelihood",
    [
        gq.likelihoods.Probit(0.3),
        gq.likelihoods.Logistic(),
        gq.likelihoods.GaussianNoise(0.5),
        gq.likelihoods.LevelSet(0.8),
        gq.likelihoods.AtomicNoise(0.9, 0.8),
    ],
    ids=repr,
)
def test_few_points_are_computed_by_numpy(likelihood):
    """NumPy's log likelihoods equal those of the compiled program."""
    target = build(likelihood, 12, None, 6).plain_target
    white = np.random.default_rng(0).normal(size=(3, 7, target.dimension))
    compiled = log_likelihoods(target, white, few=0)
    np.testing.assert_allclose(log_likelihoods(target, white), compiled, rtol=1e-12)
    single = log_likelihoods(target, white, "float32", few=0)
    np.testing.assert_allclose(single, compiled, rtol=1e-4)
    assert compiled.shape == (3, 7)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_start_saves_sweeps_and_moves_nothing(n_classes):
    codes = np.arange(24) % n_classes
    labels = codes if n_classes > 2 else 2 * codes - 1
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(np.arange(60.0)[:, None], 6))

    def posterior(n):
        likelihood = gq.likelihoods.Probit(0.5, n_classes)
        labelled = np.arange(0, 48, 2)[:n]
        return gq.Posterior(spectrum, gq.priors.Matern(), likelihood, labelled, labels[:n])

    before = gq.infer(posterior(22), "expectation-propagation").answer
    cold = gq.infer(posterior(24), "expectation-propagation")
    warm = gq.infer(posterior(24), "expectation-propagation", start=before)
    assert warm.answer.n_iterations < cold.answer.n_iterations
    np.testing.assert_allclose(warm.latent_mean, cold.latent_mean, atol=1e-4)
    np.testing.assert_allclose(warm.latent_std, cold.latent_std, atol=1e-4)
    again = gq.infer(posterior(24), "expectation-propagation", start=cold.answer)
    assert again.answer.n_iterations <= 3  # the sites of an answer are its fixed point
    with pytest.raises(InvalidInput, match="start"):
        gq.infer(posterior(24), "pcn", start=before)


def test_the_error_is_estimated_when_it_is_asked_for(monkeypatch):
    asked = []
    estimate = diagnostics.approximation_error
    monkeypatch.setattr(
        diagnostics, "approximation_error", lambda *a: asked.append(1) or estimate(*a)
    )
    target = build(gq.likelihoods.Probit(0.3), 12, None, 6)
    result = gq.infer(target, "expectation-propagation")
    assert not asked
    first = result.diagnostics.acceptance
    assert 0 < first <= 1
    assert result.diagnostics.acceptance == first
    assert len(asked) == 1
    assert diagnostics_from(result.diagnostics.to_plain()).acceptance == first
