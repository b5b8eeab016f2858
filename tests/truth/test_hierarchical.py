"""Learnt hyperparameters against quadrature over them, with orthant probabilities for the labels.

Orthant probabilities of three labels are known in closed form, so only the chains are random.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logsumexp

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts
from graphuq.inference import (
    PCN,
    EllipticalSlice,
    ExactHamiltonian,
    Hamiltonian,
    MetropolisWithinGibbs,
)
from graphuq.inference.transitions import State
from graphuq.posterior.field import TailAtLabelled, coefficient_field_with_tail
from graphuq.utils.with_jax import with_dtype

N_NODES, N_PAIRS = 14, 9
WEIGHTS = random_adjacency(N_NODES, seed=4)
LABELLED, LABELS = [6, 8, 11], [1, -1, 1]  # an informative triple
TAU = gq.LogUniform(0.05, 2.0)
ALPHA = gq.Gamma(2.0, 0.5)
TRUNCATION = gq.DiscreteUniform(2, N_PAIRS)
NOISE = gq.Uniform(0.05, 2.0)


def orthant(covariance, signs):
    """Return P(signs * x > 0) of three normals, 1/8 + Σ asin ρ / 4π.

    Covariances have the shape (..., 3, 3).
    """
    deviations = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    rho = covariance / (deviations[..., :, None] * deviations[..., None, :])
    rho = np.clip(rho * np.outer(signs, signs), -1, 1)
    return 1 / 8 + sum(np.arcsin(rho[..., a, b]) for a, b in ((0, 1), (0, 2), (1, 2))) / (4 * np.pi)


@functools.cache
def eigenpairs():
    degrees = WEIGHTS.sum(axis=1)
    values, vectors = np.linalg.eigh(
        np.eye(N_NODES) - WEIGHTS / np.sqrt(np.outer(degrees, degrees))
    )
    return values[:N_PAIRS], vectors[:, :N_PAIRS]


def evidence(prior, gamma, likelihood):
    """Return P(labels | τ, α, M, γ) for prior covariances at the labelled nodes."""
    if likelihood == "probit":
        return orthant(prior + gamma[..., None, None] ** 2 * np.eye(3), LABELS)
    wrong = expit(-2 / gamma**2)
    total = 0.0
    for signs in itertools.product([-1, 1], repeat=3):
        n_wrong = (np.array(signs) != LABELS).sum()
        total = total + wrong**n_wrong * (1 - wrong) ** (3 - n_wrong) * orthant(prior, signs)
    return total


def grid(law, n):
    """Return nodes and weights of a distribution: Gauss-Legendre in its normal scores."""
    z, weights = np.polynomial.legendre.leggauss(n)
    return law.frozen.ppf(stats.norm.cdf(5 * z)), weights * stats.norm.pdf(5 * z)


@functools.cache
def truth(likelihood):
    """Return E τ, E α, E γ and P(M ≤ 4), given the labels."""
    values, q = eigenpairs()
    (tau, a), (alpha, b), (gamma, c) = grid(TAU, 24), grid(ALPHA, 24), grid(NOISE, 16)
    tau, alpha, gamma = tau[:, None, None], alpha[None, :, None], gamma[None, None, :]
    quadrature = a[:, None, None] * b[None, :, None] * c[None, None, :]
    total = np.zeros(5)
    for m in range(2, N_PAIRS + 1):
        variances = (values[1:m] + tau[..., None] ** 2) ** -alpha[..., None]
        variances *= N_NODES / variances.sum(axis=-1, keepdims=True)  # E|u|² = N
        rows = q[LABELLED][:, 1:m]
        prior = (rows * variances[..., None, :]) @ rows.T
        weight = quadrature * evidence(prior, gamma, likelihood)
        for k, value in enumerate((1.0, tau, alpha, gamma, float(m <= 4))):
            total[k] += (weight * value).sum()
    return total[1:] / total[0]


def posterior(likelihood):
    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=N_PAIRS)
    prior = gq.priors.Matern(tau=TAU, alpha=ALPHA, truncation=TRUNCATION)
    kind = gq.likelihoods.Probit if likelihood == "probit" else gq.likelihoods.LevelSet
    return gq.Posterior(spectrum, prior, kind(noise_std=NOISE), LABELLED, LABELS)


def estimate(posterior, kernel):
    """Return estimates by sampling, and their errors from 64 independent chains."""
    result = gq.infer(posterior, kernel, n_samples=200, n_chains=64, n_warmup=500, thin=8, rng=2)
    found = result.hyperparameters
    functionals = [found["tau"], found["alpha"], found["noise_std"], found["truncation"] <= 4]
    chains = np.stack([values.mean(axis=1) for values in functionals])
    return chains.mean(axis=1), chains.std(axis=1, ddof=1) / 8


class SkipsThePrior(MetropolisWithinGibbs):
    """Negative control: hyperparameters are proposed from a narrower distribution, uncorrected."""

    def step(self, key, state, target):
        state, info = super().step(key, state, target)
        begin = target.learnt[0].begin
        return state._replace(white=state.white.at[begin:].multiply(0.8)), info


PAIRS = [
    pytest.param("probit", MetropolisWithinGibbs(PCN()), marks=pytest.mark.slow),
    pytest.param(
        "probit", MetropolisWithinGibbs(Hamiltonian(), joint=True), marks=pytest.mark.slow
    ),
    pytest.param("probit", MetropolisWithinGibbs(EllipticalSlice()), marks=pytest.mark.slow),
    pytest.param("probit", EllipticalSlice(), marks=pytest.mark.slow),
    pytest.param("probit", MetropolisWithinGibbs(PCN(), interweave=False), marks=pytest.mark.slow),
    pytest.param("level set", MetropolisWithinGibbs(PCN()), marks=pytest.mark.slow),
    pytest.param("level set", MetropolisWithinGibbs(ExactHamiltonian()), marks=pytest.mark.slow),
    pytest.param(
        "level set", MetropolisWithinGibbs(EllipticalSlice(), joint=True), marks=pytest.mark.slow
    ),
]


@pytest.mark.parametrize(("likelihood", "kernel"), PAIRS, ids=repr)
def test_hyperparameters_against_quadrature(likelihood, kernel):
    expected = truth(likelihood)
    found, error = estimate(posterior(likelihood), kernel)
    assert np.all(error < [0.02, 0.08, 0.02, 0.02])
    assert np.all(np.abs(found - expected) < 4 * error)


@pytest.mark.slow
def test_a_wrong_kernel_is_detected():
    found, error = estimate(posterior("probit"), SkipsThePrior(PCN()))
    assert np.any(np.abs(found - truth("probit")) > 6 * error)


def test_labels_inform_hyperparameters():
    """Posterior and prior means differ; otherwise the tests above would only check the prior."""
    law = [TAU.frozen.mean(), ALPHA.frozen.mean(), NOISE.frozen.mean(), 3 / 8]
    assert np.all(np.abs(truth("probit") - law) > [0.05, 0.4, 0.05, 0.09])


def simulated_spectrum(prior, n, rng):
    """Return relative variances of the modes from q_1 on, drawn from the prior, shape (n, 8)."""
    values = eigenpairs()[0][1:]
    if isinstance(prior, gq.priors.EigenScales):
        return rng.uniform(0.2, 1.8, (n, len(values))) ** 2 * (values + 0.25) ** -2.0
    ends = np.linspace(np.log(1e-4), np.log(2), 9)
    heights = np.zeros((n, 9))
    heights[:, 1:] = -np.cumsum(rng.gamma(0.5, 8.0, (n, 8)) * np.diff(ends), axis=1)
    logs = np.stack([np.interp(np.log(values), ends, row) for row in heights])
    return np.exp(logs - logs.max(axis=1, keepdims=True))


@pytest.mark.parametrize(
    "prior",
    [
        pytest.param(gq.priors.EigenScales(0.5, 2.0), marks=pytest.mark.slow),
        pytest.param(gq.priors.LearnedSpectrum(), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_label_means_under_learnt_spectra(prior):
    """Label means agree with prior draws of spectrum and field, weighted by the likelihood."""
    n, gamma, node = 200_000, 0.7, 3
    rng = np.random.default_rng(1)
    variances = simulated_spectrum(prior, n, rng)
    rows = eigenpairs()[1][[*LABELLED, node], 1:]
    scale = np.sqrt(N_NODES / variances.sum(axis=1, keepdims=True))
    u = (scale * np.sqrt(variances) * rng.normal(size=variances.shape)) @ rows.T
    weights = stats.norm.cdf(LABELS * u[:, :3] / gamma).prod(axis=1)
    expected = weights @ np.sign(u) / weights.sum()
    residuals = weights[:, None] * (np.sign(u) - expected)
    simulation_error = np.sqrt((residuals**2).sum(axis=0)) / weights.sum()

    spectrum = gq.laplacian_spectrum(gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=N_PAIRS)
    model = gq.Posterior(spectrum, prior, gq.likelihoods.Probit(gamma), LABELLED, LABELS)
    result = gq.infer(model, n_samples=1000, n_chains=16, thin=5, rng=3)
    nodes = [*LABELLED, node]
    error = np.hypot(gq.results.label_mcse(result)[nodes], simulation_error)
    assert error.max() < 0.03
    assert np.all(np.abs(gq.results.label_mean(result)[nodes] - expected) < 4 * error)


@functools.cache
def with_tail(n_classes):
    """Return a posterior whose spectrum has a tail; of three classes, each has its own prior."""
    spectrum = gq.laplacian_spectrum(
        gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=N_PAIRS, tail_eigenvalue=True
    )
    prior = gq.priors.Matern(tau=TAU, alpha=ALPHA)
    if n_classes == 2:
        return gq.Posterior(spectrum, prior, gq.likelihoods.Probit(NOISE), LABELLED, LABELS)
    softmax = gq.likelihoods.Softmax(noise_std=0.5, n_classes=n_classes)
    return gq.Posterior(spectrum, prior, softmax, LABELLED, [0, 1, 2], per_class=True)


def simulated_with_tail(n, rng):
    """Return draws of τ, and of u at all nodes, from the prior."""
    values, q = eigenpairs()
    tau, alpha = (law.frozen.rvs(size=n, random_state=rng) for law in (TAU, ALPHA))
    spectrum = with_tail(2).spectrum
    eigenvalues = np.append(values[1:], spectrum.tail_eigenvalue)
    variances = (eigenvalues + tau[:, None] ** 2) ** -alpha[:, None]
    counts = np.append(np.ones(N_PAIRS - 1), N_NODES - N_PAIRS)
    std = np.sqrt(variances * N_NODES / (variances @ counts)[:, None])
    rest = rng.normal(size=(n, N_NODES))
    rest -= (rest @ q) @ q.T
    return tau, (std[:, :-1] * rng.normal(size=(n, N_PAIRS - 1))) @ q[:, 1:].T + std[:, -1:] * rest


def expectation(weights, values):
    """Return the weighted mean of each column, and its simulation error."""
    mean = weights @ values / weights.sum()
    residuals = weights[:, None] * (values - mean)
    return mean, np.sqrt((residuals**2).sum(axis=0)) / weights.sum()


@pytest.mark.slow
def test_a_tail_whose_prior_is_learnt():
    """Means agree with prior draws of hyperparameters and field, weighted by the likelihood."""
    n, rng = 400_000, np.random.default_rng(1)
    tau, u = simulated_with_tail(n, rng)
    gamma = NOISE.frozen.rvs(size=n, random_state=rng)
    margins = LABELS * u[:, LABELLED] / gamma[:, None]
    weights = stats.norm.cdf(margins).prod(axis=1)
    result = gq.infer(with_tail(2), n_samples=800, n_chains=32, thin=5, rng=3)
    learnt = result.hyperparameters

    label, error = expectation(weights, np.sign(u))
    error = np.hypot(gq.results.label_mcse(result), error)
    assert error.max() < 0.02
    assert np.all(np.abs(gq.results.label_mean(result) - label) < 4 * error)
    for name, truth in (("tau", tau), ("noise_std", gamma)):
        mean, error = expectation(weights, truth[:, None])
        chains = learnt[name].mean(axis=1)
        error = np.hypot(error, chains.std(ddof=1) / np.sqrt(len(chains)))
        assert np.all(np.abs(chains.mean() - mean) < 4 * error)
    # Moments of u, by summaries and by draws completed at each node, whose error is larger.
    drawn = gq.results.latent_draws(result, np.arange(N_NODES)).reshape(N_NODES, 32, -1)
    summed = result.latent_mean, result.latent_mean**2 + result.latent_std**2
    for power in (1, 2):
        mean, error = expectation(weights, u**power)
        chains = (drawn**power).mean(axis=2)
        error = np.hypot(error, chains.std(axis=1, ddof=1) / np.sqrt(32))
        assert np.all(np.abs(chains.mean(axis=1) - mean) < 4 * error)
        assert np.all(np.abs(summed[power - 1] - mean) < 4 * error)


@pytest.mark.slow
def test_a_tail_of_each_class_whose_prior_is_learnt():
    n, rng = 200_000, np.random.default_rng(2)
    u = np.stack([simulated_with_tail(n, rng)[1] for _ in range(3)], axis=2)
    sharp = u[:, LABELLED] * (np.pi / np.sqrt(6) / 0.5)
    chances = np.exp(sharp - logsumexp(sharp, axis=2, keepdims=True))
    weights = chances[:, [0, 1, 2], [0, 1, 2]].prod(axis=1)
    result = gq.infer(with_tail(3), n_samples=600, n_chains=16, thin=5, rng=4)
    assert result.answer.tail_std.shape == (16, 600, 3)
    for k in range(3):
        share, error = expectation(weights, (u.argmax(axis=2) == k).astype(float))
        error = np.hypot(gq.results.label_mcse(result)[:, k], error)
        assert error.max() < 0.02
        assert np.all(np.abs(result.probabilities[:, k] - share) < 4 * error)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_moves_with_the_field_held_hold_the_tail_too(n_classes):
    """The log likelihood that a step returns, without recomputing it, is that of its end."""
    with jax.enable_x64(True):
        target = with_dtype(with_tail(n_classes).target, jnp.float64)
        kernel = MetropolisWithinGibbs(PCN(), repeats=3).bind(target)
        kernel = with_dtype(kernel, jnp.float64)

        def end(key):
            key_start, key_step = jax.random.split(key)
            white = target.start(key_start)
            start = State(white, target.log_likelihood(white))
            state, info = kernel.step(key_step, start, target)
            moved = info.accepted[-1]  # a move with the field held, of the last hyperparameter
            return state.log_likelihood, target.log_likelihood(state.white), moved

        left, anew, moved = jax.vmap(end)(jax.random.split(jax.random.key(0), 50))
    assert moved.any()
    np.testing.assert_allclose(left, anew, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")  # two short chains
def test_label_means_of_a_tail_that_underflows(monkeypatch):
    """The tail is zero in single precision, in which means over many nodes are computed."""
    monkeypatch.setattr("graphuq.results.summaries.binary.MANY_ELEMENTS", 0)
    prior = gq.priors.Matern(tau=0.05, alpha=gq.Uniform(150.0, 200.0))
    spectrum = with_tail(2).spectrum
    model = gq.Posterior(spectrum, prior, gq.likelihoods.Probit(0.5), LABELLED, LABELS)
    result = gq.infer(model, n_samples=20, n_chains=2, n_warmup=20, precision="float32", rng=0)
    assert result.answer.tail_std.astype(np.float32).min() == 0
    signs = np.sign(gq.results.latent_draws(result, np.arange(N_NODES)))
    np.testing.assert_allclose(gq.results.label_mean(result), signs.mean(axis=1), atol=1e-6)


@pytest.mark.slow
def test_label_means_of_a_learnt_tail():
    """Label means given each draw agree with means over completed draws, within their noise."""
    spectrum = with_tail(2).spectrum
    prior, likelihood = gq.priors.Matern(tau=TAU), gq.likelihoods.Logistic()
    model = gq.Posterior(spectrum, prior, likelihood, LABELLED, LABELS)
    result = gq.infer(model, n_samples=500, n_chains=16, thin=5, rng=1)
    labels = np.tanh(gq.results.latent_draws(result, np.arange(N_NODES)))
    error = labels.std(axis=1) / np.sqrt(labels.shape[1])
    assert np.all(np.abs(gq.results.label_mean(result) - labels.mean(axis=1)) < 4 * error)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")  # two short chains
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_learnt_tail_is_stored(n_classes, tmp_path):
    result = gq.infer(with_tail(n_classes), n_samples=20, n_chains=2, n_warmup=20, rng=0)
    result.save(tmp_path / "result.nc")
    again = gq.load(tmp_path / "result.nc")
    np.testing.assert_array_equal(again.answer.tail_std, result.answer.tail_std)
    nodes = np.arange(N_NODES)
    np.testing.assert_array_equal(
        gq.results.latent_draws(again, nodes), gq.results.latent_draws(result, nodes)
    )
    np.testing.assert_array_equal(
        gq.credible_interval(again, 0.9), gq.credible_interval(result, 0.9)
    )


@pytest.mark.parametrize("n_labels", [3, 12])  # fewer than eigenpairs, and more
def test_the_tail_given_a_draw_has_the_prior_covariance(n_labels):
    """A draw u from the prior has covariance ``Q s² Qᵀ + s̄² (I − Q Qᵀ)``."""
    spectrum = with_tail(2).spectrum
    q, scale = spectrum.eigenvectors, spectrum.node_scale
    nodes = np.random.default_rng(5).permutation(N_NODES)[:n_labels]
    field = coefficient_field_with_tail(spectrum, nodes)
    s, s_tail = np.linspace(0.5, 2.0, N_PAIRS), 0.7
    std = np.append(s, np.full(n_labels, s_tail))
    loadings = field.loadings(q)
    rest = s_tail * field.conditional_std(q, loadings)
    rest[nodes] = 0.0
    loadings = scale[:, None] * loadings
    loadings[nodes] = field.labelled_loadings
    found = (loadings * std**2) @ loadings.T
    expected = (q * s**2) @ q.T + s_tail**2 * (np.eye(N_NODES) - q @ q.T)
    expected *= np.outer(scale, scale)
    np.testing.assert_allclose(np.diag(found) + (scale * rest) ** 2, np.diag(expected), atol=1e-12)
    # Covariances with labelled nodes follow from the mean given the draw alone.
    np.testing.assert_allclose(found[nodes], expected[nodes], atol=1e-12)


def test_a_tail_of_many_labels_is_refused():
    with pytest.raises(IncompatibleParts, match="at most 2000 nodes"):
        TailAtLabelled.of(np.zeros((2001, 3)))


def test_what_cannot_be_learnt_is_refused():
    spectrum = gq.laplacian_spectrum(
        gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=N_PAIRS, tail_eigenvalue=True
    )
    prior = gq.priors.Matern(tau=TAU)
    learnt = posterior("probit")
    with pytest.raises(IncompatibleParts, match="learns no hyperparameter"):
        gq.infer(learnt, gq.inference.ExpectationPropagation())
    with pytest.raises(IncompatibleParts, match="cannot keep its reference"):
        gq.infer(learnt, PCN(reference=gq.inference.ExpectationPropagation()))
    with pytest.raises(IncompatibleParts, match="joint=True"):
        gq.infer(learnt, ExactHamiltonian())
    with pytest.raises(IncompatibleParts, match="is learnt and has no single value"):
        prior.spectral_std(spectrum)
    wide = gq.priors.Matern(truncation=gq.DiscreteUniform(2, 40))
    with pytest.raises(IncompatibleParts, match="there are 9 eigenpairs"):
        wide.modes(learnt.spectrum)
