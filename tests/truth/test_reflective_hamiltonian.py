"""Reflections about expectation propagation: many labels restrict few modes to a thin cone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import graphuq as gq
from graphuq.errors import IncompatibleParts
from graphuq.inference import ReflectiveHamiltonian
from graphuq.inference.chains import run_chains
from graphuq.inference.exact_hamiltonian import sampler as exact_hamiltonian
from graphuq.posterior.target import refer
from graphuq.run import choose_sampler
from graphuq.utils.with_jax import with_dtype

MODES = 3
SAMPLER = ReflectiveHamiltonian(reference=gq.inference.ExpectationPropagation())
NODES = np.arange(400)


def build(likelihood):
    """Return a posterior of three modes with 300 labels."""
    graph = gq.graphs.path_graph(len(NODES))
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=MODES + 1)
    rng = np.random.default_rng(3)
    labelled = rng.choice(NODES, 300, replace=False)
    signs = np.sign(spectrum.eigenvectors[0, 1:])  # which are arbitrary, and decide on the walls
    u = spectrum.eigenvectors[:, 1:] @ (signs * np.array([1.0, 0.6, 0.8]))
    labels = np.where(u[labelled] >= 0, 1, -1)
    return gq.Posterior(spectrum, gq.priors.InverseLaplacian(), likelihood, labelled, labels)


def truth(posterior):
    """Return label means by importance sampling about the cone, and a bound on their error."""
    rng, field = np.random.default_rng(0), posterior.field
    fitted = gq.inference.ExpectationPropagation().fit(posterior.target)
    root = 2 * np.linalg.cholesky(fitted.white_covariance)
    coefficients = field.coefficient_map.T @ posterior.spectrum.eigenvectors.T
    right, wrong = map(np.asarray, posterior.likelihood.log_levels(posterior.labels))
    total, sums = np.zeros(2), np.zeros(len(NODES))
    for _ in range(60):
        z = rng.normal(size=(20_000, MODES))
        x = fitted.white_mean + z @ root.T
        agree = (x @ field.factor.T >= 0) == (posterior.labels > 0)
        value = np.where(agree, right, wrong).sum(axis=1)
        value += norm.logpdf(x).sum(axis=1) - norm.logpdf(z).sum(axis=1)
        near = value > value.max() - 40
        weight = np.exp(value[near])
        total += np.array([weight.sum(), (weight**2).sum()])
        sums += weight @ np.where(x[near] @ coefficients >= 0, 1.0, -1.0)
    return sums / total[0], np.sqrt(total[1]) / total[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "likelihood",
    [
        pytest.param(gq.likelihoods.NoiseFree(), marks=pytest.mark.slow),
        gq.likelihoods.LevelSet(0.1),
        pytest.param(gq.likelihoods.LevelSet(0.6), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_label_means(likelihood):
    posterior = build(likelihood)
    lengths = {"n_samples": 1000, "n_chains": 8, "rng": 2}
    result = gq.infer(posterior, SAMPLER, **lengths)
    assert result.diagnostics.rhat < 1.01
    assert result.diagnostics.label_mcse < 0.03
    assert result.diagnostics.acceptance > 0.6  # lower if a wall takes too little energy
    means, error = truth(posterior)
    off = np.abs(gq.results.label_mean(result) - means)
    assert np.all(off <= 4 * np.hypot(gq.results.label_mcse(result), error) + 1e-4)


@pytest.mark.slow
def test_reflections_are_chosen_if_many_walls_are_expected():
    posterior = build(gq.likelihoods.LevelSet(0.1))
    fitted = gq.inference.ExpectationPropagation().fit(posterior.target)
    assert type(choose_sampler.choose_sampler(posterior, fitted)) is ReflectiveHamiltonian
    draws = gq.infer(posterior, SAMPLER, n_samples=400).answer
    met = [
        walls_met(white, k, posterior)
        for k, white in enumerate(draws.white[:2, ::40].reshape(-1, MODES))
    ]
    assert 0.5 < np.mean(met) / choose_sampler.expected_walls(posterior, fitted) < 2
    soft = build(gq.likelihoods.AtomicNoise(0.6, 0.6))
    fitted = gq.inference.ExpectationPropagation().fit(soft.target)
    assert type(choose_sampler.choose_sampler(soft, fitted)) is not ReflectiveHamiltonian


def walls_met(white, seed, posterior):
    """Return the number of walls met in a quarter turn of `ExactHamiltonian`."""
    with jax.enable_x64(True):
        return _walls_met(jnp.asarray(white), seed, posterior)


def _walls_met(white, seed, posterior):
    walls = exact_hamiltonian.WalledTarget.of(with_dtype(posterior.target, jnp.float64))
    momentum = jax.random.normal(jax.random.key(seed), (MODES,))
    u, velocity = walls.at_labelled(white), walls.at_labelled(momentum)
    side = jnp.where(u >= 0, 1.0, -1.0)
    flight = exact_hamiltonian._TrajectoryState(white, momentum, u, velocity, side, jnp.pi / 2, 0)
    flown = jax.lax.while_loop(
        lambda flight: flight.remaining > 0,
        lambda flight: exact_hamiltonian._to_next_wall(flight, walls),
        jax.tree.map(jnp.asarray, flight),
    )
    return int(flown.n_events)


@pytest.mark.slow
def test_chains_start_where_labels_fit():
    """Starts are nearer to the mean than draws of the Gaussian, most of which break a label."""
    posterior = build(gq.likelihoods.NoiseFree())
    fitted = gq.inference.ExpectationPropagation().fit(posterior.target)
    referred, _ = refer(posterior.target, fitted.white_mean, fitted.white_covariance)
    keys = jax.random.split(jax.random.key(0), 100)
    with jax.enable_x64(True):
        starts = jax.vmap(referred.start)(keys)
        assert np.isfinite(jax.vmap(referred.log_likelihood)(starts)).all()
        plain = jax.vmap(lambda key: jax.random.normal(key, (MODES,)))(keys)
        assert not np.isfinite(jax.vmap(referred.log_likelihood)(plain)).all()
    assert len(np.unique(starts[:, 0])) == 100


@pytest.mark.slow
def test_a_chain_that_starts_where_labels_are_impossible_finds_the_cone():
    posterior = build(gq.likelihoods.NoiseFree())

    class Lost(type(posterior.target)):
        def start(self, key):
            return jnp.array([3.0, 3.0, -3.0])

    lost = Lost(posterior.target.field, posterior.likelihood, posterior.target.labels)
    with jax.enable_x64(True):
        assert lost.log_likelihood(lost.start(None)) == -np.inf
    found = run_chains(
        lost, ReflectiveHamiltonian(), n_samples=10, n_chains=2, n_warmup=200, thin=1
    )
    assert np.isfinite(found.log_likelihood[:, -1]).all()


def test_unsupported_likelihoods_are_refused():
    smooth = build(gq.likelihoods.Logistic())
    with pytest.raises(IncompatibleParts, match="levels"):
        gq.infer(smooth, SAMPLER)
    several = gq.Posterior(
        smooth.spectrum,
        smooth.prior,
        gq.likelihoods.LevelSet(0.5, n_classes=3),
        smooth.labelled,
        np.arange(300) % 3,
    )
    with pytest.raises(IncompatibleParts, match="use ExactHamiltonian"):
        gq.infer(several, SAMPLER)


@pytest.mark.slow
def test_probit_is_sampled_with_its_noise():
    """Label means are those of `ExactHamiltonian`, which is tested against closed forms."""
    spectrum = gq.laplacian_spectrum(
        gq.graphs.from_adjacency(np.array([[0.0, 1.0], [1.0, 0.0]])), n_eigenpairs=2
    )
    posterior = gq.Posterior(
        spectrum, gq.priors.InverseLaplacian(), gq.likelihoods.Probit(0.5), [0, 1], [1, -1]
    )
    expected = gq.infer(posterior, gq.inference.ExactHamiltonian(), n_samples=2000, rng=1)
    found = gq.infer(posterior, ReflectiveHamiltonian(), n_samples=1000, rng=2)
    error = np.hypot(gq.results.label_mcse(found), gq.results.label_mcse(expected))
    assert error.max() < 0.02
    assert (
        np.abs(gq.results.label_mean(found) - gq.results.label_mean(expected)) < 4 * error
    ).all()
