"""Exact moments for every sampler, and negative controls: wrong samplers that must fail."""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.inference import Sampler
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.chains import run_chains
from graphuq.inference.kernel import Kernel
from graphuq.inference.transitions import Info, State, metropolis
from graphuq.likelihoods import Likelihood
from graphuq.posterior.field import LowRankField
from graphuq.posterior.target import Target, refer
from graphuq.utils.part import Part
from graphuq.utils.with_jax import with_dtype

ALL_KERNELS = [
    gq.inference.PCN(0.6),
    gq.inference.Hamiltonian(0.3),
    gq.inference.EllipticalSlice(),
    gq.inference.ExactHamiltonian(),
    gq.inference.ParallelTempering(gq.inference.EllipticalSlice(), n_replicas=3),
    gq.inference.Independence(),
    gq.inference.SequentialIndependence(),
    gq.inference.TemperedHamiltonian(),
    gq.inference.ReflectiveHamiltonian(),
]


def by_length(kernels):
    """Return parameters of tests; kernels with replicas are slow, as they take long to compile."""
    long = gq.inference.ParallelTempering
    return [pytest.param(k, marks=pytest.mark.slow) if isinstance(k, long) else k for k in kernels]


FOR_SMOOTH = by_length(kernel for kernel in ALL_KERNELS if not kernel.requires_step)
FOR_STEPS = by_length(kernel for kernel in ALL_KERNELS if not kernel.requires_gradient)
FOR_CERTAIN = by_length(
    kernel
    for kernel in ALL_KERNELS
    if not (kernel.requires_gradient or isinstance(kernel, gq.inference.TemperedHamiltonian))
)


ABSTRACT = Sampler, Kernel, gq.inference.IndependenceSampler


class LogLinear(Likelihood):
    """Likelihood log p = a·u, for which the posterior is exactly N(a, 1)."""

    slope: float = 1.5
    has_gradient: ClassVar[bool] = True

    def log_prob(self, u, y):
        return self.slope * u


class Undefined(Likelihood):
    """Likelihood that is NaN for u < 0."""

    has_gradient: ClassVar[bool] = False

    def log_prob(self, u, y):
        return jnp.where(u < 0, jnp.nan, 0.0)


class InJax(gq.inference.ExactHamiltonian):
    """Exact trajectories in JAX, as in `MetropolisWithinGibbs` and for multiclass models."""

    def moves(self, target, dtype):
        return None


class FreeInJax(InJax):
    """Negative control: crosses every wall without a loss of energy, in JAX."""

    def prepare(self, target):
        walls = super().prepare(target)
        return eqx.tree_at(lambda w: w.rise, walls, jnp.zeros_like(walls.rise))


class FreeOfCharge(gq.inference.ExactHamiltonian):
    """Negative control: crosses every wall without a loss of energy."""

    def walls(self, target, dtype):
        walls = super().walls(target, dtype)
        return walls._replace(rise=np.zeros_like(walls.rise))


class PullsTwice(gq.inference.ReflectiveHamiltonian):
    """Negative control: uses a wrong density between walls."""

    def prepare(self, target):
        walls = super().prepare(target)
        return eqx.tree_at(lambda w: w.root, walls, 1.4 * walls.root)


class NoBracket(gq.inference.EllipticalSlice):
    """Negative control: accepts the first angle for any likelihood."""

    def step(self, key, state, target):
        return super().step(key, state._replace(log_likelihood=-jnp.inf), target)


class NoContraction(gq.inference.PCN):
    """Negative control: omits the factor √(1 − β²)."""

    def step(self, key, state, target):
        key_move, key_accept = jax.random.split(key)
        white = state.white + self.step_size * jax.random.normal(
            key_move, state.white.shape, state.white.dtype
        )
        return metropolis(key_accept, state, State(white, target.log_likelihood(white)))


class SwapsFreely(gq.inference.ParallelTempering):
    """Negative control: always swaps the two replicas of highest power."""

    def step(self, key, state, target):
        state, info = super().step(key, state, target)
        swapped = State(*(leaf[jnp.array([0, 2, 1])] for leaf in state))
        return swapped, info


class AlwaysAccepts(gq.inference.PCN):
    """Negative control: ignores the likelihood."""

    def step(self, key, state, target):
        noise = jax.random.normal(key, state.white.shape, state.white.dtype)
        white = jnp.sqrt(1 - self.step_size**2) * state.white + self.step_size * noise
        one = jnp.ones_like(state.log_likelihood)
        return State(white, target.log_likelihood(white)), Info(one, one > 0)


class CountsNoPrior(gq.inference.Independence):
    """Negative control: weights proposals as if all came from the Gaussian."""

    def proposals(self, *arguments):
        propose = super().proposals(*arguments)

        def made(rng, n):
            proposed = propose(rng, n)
            return proposed._replace(log_weight=proposed.log_ratio)

        return made


def gaussian(mean, covariance):
    """Return a reference Gaussian with the given moments."""
    unused = dict.fromkeys(GaussianApproximation._fields)
    seen = {"white_mean": np.array(mean), "white_covariance": np.array(covariance)}
    return GaussianApproximation(**(unused | seen))


# In the half-plane that the label favours, and narrower than any posterior of these tests.
NARROW = gaussian([0.4, 0.3], [[0.4, 0.1], [0.1, 0.3]])


def moments(kernel, likelihood, reference=None):
    """Return mean and mean square of u over 64 chains, and their standard errors."""
    field = LowRankField(np.array([[0.6, 0.8]]), np.ones((1, 2)), np.ones(1), 0.0)
    target = Target(field, likelihood, np.ones(1))
    lengths = {"n_samples": 500, "n_chains": 64, "n_warmup": 500, "thin": 10, "rng": 11}
    if isinstance(kernel, Kernel) and reference is not None:
        referred, rotation = refer(target, reference.white_mean, reference.white_covariance)
        draws = run_chains(referred, kernel, **lengths)
        white = np.asarray(referred.to_target(draws.white)) @ rotation.T
        draws = dataclasses.replace(draws, white=white)
    elif isinstance(kernel, Kernel):
        draws = run_chains(target, kernel, **lengths)
    elif isinstance(kernel, gq.inference.IndependenceSampler):
        draws = kernel.sample(target, reference, **(lengths | {"thin": 50}))
    else:
        draws = kernel.sample(target, **(lengths | {"thin": 1}))
    u = draws.white @ [0.6, 0.8]
    chain = np.stack([u.mean(axis=1), (u**2).mean(axis=1)])
    return chain.mean(axis=1), chain.std(axis=1, ddof=1) / 8


def agrees(kernel, likelihood, truth, reference=None):
    estimate, error = moments(kernel, likelihood, reference)
    precise = error.max() < 0.08
    return precise and np.all(np.abs(estimate - truth) < 4 * error)


def holds_for_tilt(kernel):
    return agrees(kernel, LogLinear(1.5), [1.5, 1 + 1.5**2])


def holds_for_step(kernel, reference=None):
    # b = 0.8 right of zero and a = 0.3 left of it: the mean is 2 φ(0) (b − a) / (a + b).
    mean = np.sqrt(2 / np.pi) * (0.8 - 0.3) / (0.8 + 0.3)
    return agrees(kernel, gq.likelihoods.AtomicNoise(p=0.8, q=0.7), [mean, 1.0], reference)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("kernel", FOR_SMOOTH, ids=repr)
def test_tilted_normal(kernel):
    assert holds_for_tilt(kernel)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("kernel", [*FOR_STEPS, InJax()], ids=repr)
def test_step(kernel):
    assert holds_for_step(kernel)


@pytest.mark.parametrize(
    "kernel", [gq.inference.ExactHamiltonian(max_events=51), InJax(max_events=51)]
)
def test_step_without_stored_scalar_products(kernel, monkeypatch):
    """Rows of F Fᵀ are computed on demand; max_events=51 forces a new compilation."""
    monkeypatch.setattr("graphuq.inference.exact_hamiltonian.trajectories.GRAM_LABELS", 0)
    monkeypatch.setattr("graphuq.inference.exact_hamiltonian.sampler.GRAM_LABELS", 0)
    assert holds_for_step(kernel)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("kernel", [*FOR_CERTAIN, InJax()], ids=repr)
def test_half_normal(kernel):
    assert agrees(kernel, gq.likelihoods.NoiseFree(), [np.sqrt(2 / np.pi), 1.0])


@pytest.mark.parametrize(
    "kernel",
    [
        NoContraction(0.6),
        AlwaysAccepts(0.6),
        NoBracket(),
        pytest.param(
            SwapsFreely(gq.inference.EllipticalSlice(), n_replicas=3), marks=pytest.mark.slow
        ),
    ],
    ids=repr,
)
def test_wrong_kernels_are_detected(kernel):
    assert not holds_for_tilt(kernel)


@pytest.mark.parametrize("share", [0.05, pytest.param(0.5, marks=pytest.mark.slow)])
def test_independence_about_a_narrow_gaussian(share):
    """A reference far too narrow needs proposals from the prior to reach the tails."""
    assert holds_for_step(gq.inference.Independence(share), NARROW)
    assert not holds_for_step(CountsNoPrior(share), NARROW)


def test_expected_acceptance_is_that_of_chains():
    field = LowRankField(np.array([[0.6, 0.8]]), np.ones((1, 2)), np.ones(1), 0.0)
    target = Target(field, gq.likelihoods.AtomicNoise(p=0.8, q=0.7), np.ones(1))
    sampler = gq.inference.Independence()
    expected = sampler.expected_acceptance(target, NARROW, 20_000)
    lengths = {"n_samples": 500, "n_chains": 64, "n_warmup": 100, "thin": 1}
    found = sampler.sample(target, NARROW, rng=3, **lengths).acceptance.mean(axis=1)
    assert abs(expected - found.mean()) < 4 * np.hypot(found.std(ddof=1) / 8, 0.5 / 20_000**0.5)


def test_expected_acceptance_without_a_valid_proposal():
    """The expected acceptance is zero if all proposals contradict the label."""
    field = LowRankField(np.array([[1.0, 0.0]]), np.ones((1, 2)), np.ones(1), 0.0)
    target = Target(field, gq.likelihoods.NoiseFree(), np.ones(1))
    far = gaussian([-40.0, 0.0], 0.01 * np.eye(2))
    assert gq.inference.Independence(1e-9).expected_acceptance(target, far, 500) == 0.0


def test_a_longer_independence_run_begins_like_a_shorter_one():
    field = LowRankField(np.array([[0.6, 0.8]]), np.ones((1, 2)), np.ones(1), 0.0)
    target = Target(field, gq.likelihoods.Probit(0.3), np.ones(1))
    lengths = {"n_chains": 4, "n_warmup": 60, "thin": 3, "rng": -5}
    sampler = gq.inference.Independence()
    short = sampler.sample(target, NARROW, n_samples=70, **lengths)
    long = sampler.sample(target, NARROW, n_samples=120, **lengths)
    np.testing.assert_array_equal(short.white, long.white[:, :70])
    np.testing.assert_array_equal(short.log_ratio, long.log_ratio[:, :70])
    assert short.n_warmup == 100  # whole blocks
    stopped = sampler.sample(target, NARROW, n_samples=500, stop=lambda draws: "enough", **lengths)
    assert (stopped.n_samples, stopped.stopped_by) == (100, "enough")


@pytest.mark.parametrize("kernel", [FreeOfCharge(), FreeInJax()], ids=repr)
def test_walls_without_loss_of_energy_are_detected(kernel):
    assert not holds_for_step(kernel)


@pytest.mark.slow
def test_reflections_about_a_narrow_gaussian():
    assert holds_for_step(gq.inference.ReflectiveHamiltonian(), NARROW)
    assert not holds_for_step(PullsTwice(), NARROW)


@pytest.mark.slow
def test_trajectories_that_meet_too_many_walls_are_rejected():
    """Trajectories between the two walls of a cone end after one event and are rejected."""
    field = LowRankField(np.array([[1.0, 0.0], [-1.0, 0.1]]), np.ones((1, 2)), np.ones(1), 0.0)
    target = Target(field, gq.likelihoods.NoiseFree(), np.ones(2))
    lengths = {"n_samples": 50, "n_chains": 2, "n_warmup": 0, "thin": 1}
    long = gq.inference.ReflectiveHamiltonian(1.0, length=200.0, max_events=1)
    assert run_chains(target, long, **lengths).acceptance.max() == 0
    assert run_chains(target, gq.inference.ReflectiveHamiltonian(), **lengths).acceptance.min() > 0


@pytest.mark.slow
@pytest.mark.parametrize("kernel", FOR_SMOOTH, ids=repr)
def test_undefined_likelihood_is_never_entered(kernel):
    estimate, error = moments(kernel, Undefined())  # half normal: mean √(2/π), mean square 1
    assert np.all(np.abs(estimate - [np.sqrt(2 / np.pi), 1.0]) < 4 * error + 1e-3)


@pytest.mark.parametrize(
    "sampler", [gq.inference.ExactHamiltonian, gq.inference.TemperedHamiltonian]
)
def test_kernels_without_reference(sampler):
    with pytest.raises(InvalidInput, match="reference: ExpectationPropagation"):
        sampler(reference=gq.inference.ExpectationPropagation())


def tempering(kernel=None, **settings):
    return gq.inference.ParallelTempering(kernel or gq.inference.EllipticalSlice(), **settings)


def test_unsupported_tempering_is_refused():
    approximation = gq.inference.ExpectationPropagation()
    for kernel in (
        gq.inference.ExactHamiltonian(),
        gq.inference.Hamiltonian(reference=approximation),
    ):
        with pytest.raises(IncompatibleParts):
            tempering(kernel)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gq.inference.ExactHamiltonian(2.0), "step_size: 2.0"),
        (lambda: gq.inference.ExactHamiltonian(max_events=0), "max_events: 0"),
        (lambda: gq.inference.ReflectiveHamiltonian(2.0), "step_size: 2.0"),
        (lambda: gq.inference.ReflectiveHamiltonian(length=0.0), "length: 0.0"),
        (lambda: gq.inference.ReflectiveHamiltonian(max_events=0), "max_events: 0"),
        (lambda: gq.inference.EllipticalSlice(4.0), "step_size: 4.0"),
        (lambda: gq.inference.EllipticalSlice(max_trials=0), "max_trials: 0"),
        (lambda: gq.inference.Independence(0.0), "share: 0.0"),
        (lambda: gq.inference.TemperedHamiltonian(flattest=0.0), "flattest: 0.0"),
        (lambda: gq.inference.TemperedHamiltonian(n_replicas=0), "n_replicas: 0"),
        (lambda: tempering(n_replicas=1), "n_replicas: 1"),
        (lambda: tempering(exponent=0.0), "exponent: 0.0"),
        (lambda: tempering(step_size=2.0), "step_size: 2.0"),
        (lambda: gq.likelihoods.GinzburgLandau(epsilon=0.0), "epsilon: 0.0"),
        (lambda: gq.likelihoods.GinzburgLandau(noise_std=-1.0), "noise_std: -1.0"),
        (lambda: gq.likelihoods.AtomicNoise(p=1.1), "p: 1.1"),
        (lambda: gq.likelihoods.AtomicNoise(p=0.0), "p: 0"),
        (lambda: gq.likelihoods.AtomicNoise(p=0.4, q=0.5), "evidence against its own class"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_every_exported_sampler_is_tested():
    exported = {
        value
        for name in gq.inference.__all__
        for value in [getattr(gq.inference, name)]
        if isinstance(value, type) and issubclass(value, Sampler) and value not in ABSTRACT
    }
    # Samplers of fields and hyperparameters: tests/truth/test_hierarchical.py and
    # test_random_series.py. Samplers of the probit alone: tests/inference/.
    apart = {
        gq.inference.AnnotatorGibbs,
        gq.inference.CollapsedGibbs,
        gq.inference.MetropolisWithinGibbs,
        gq.inference.ModelAverage,
        gq.inference.ReversibleJump,
    }
    assert exported - apart == {type(k) for k in ALL_KERNELS}


def test_a_new_step_size_compiles_nothing_new(posterior):
    """A kernel is traced once for all step sizes."""
    traces = []

    class Counted(gq.inference.PCN):
        def step(self, key, state, target):
            traces.append(1)
            return super().step(key, state, target)

    for step_size in (0.2, 0.4, 0.8):
        run_chains(
            posterior.target, Counted(step_size), n_samples=50, n_chains=2, n_warmup=0, thin=2
        )
    assert len(traces) == 1
    assert isinstance(Counted(0.2), Part)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_chain_on_a_wall_stays_on_its_side(n_classes):
    """A chain that rounding puts beyond an impassable wall stays on the right side."""
    rng = np.random.default_rng(0)
    graph = gq.graphs.knn_graph(rng.normal(size=(40, 2)), 6)
    labels = np.arange(6) % 3 if n_classes == 3 else np.array([1, -1, 1, -1, 1, 1])
    posterior = gq.Posterior(
        gq.laplacian_spectrum(graph, n_eigenpairs=12),
        gq.priors.Matern(),
        gq.likelihoods.NoiseFree(n_classes),
        np.arange(6),
        labels,
    )
    kernel = gq.inference.ExactHamiltonian()
    walls = kernel.prepare(with_dtype(posterior.target, jnp.float32))

    def margin(white):
        return walls.margins(walls.at_labelled(white))[0].ravel()[-1]

    white = walls.target.start(jax.random.key(1))
    assert walls.log_likelihood(white) == 0
    # Move onto the wall, where the margin is zero, and slightly beyond it.
    normal = jax.grad(margin)(white)
    white = white - (1 + 1e-6) * margin(white) / (normal @ normal) * normal
    assert walls.log_likelihood(white) == -np.inf
    on_wall = State(white, jnp.zeros(()))
    keys = jax.random.split(jax.random.key(2), 200)
    values = jax.vmap(lambda key: kernel.step(key, on_wall, walls)[0].log_likelihood)(keys)
    np.testing.assert_array_equal(values, 0.0)
    if n_classes == 2:
        moves = kernel.moves(walls.target, np.float32)
        chains = jax.tree.map(lambda leaf: np.array([leaf] * 200), on_wall)
        rngs = [np.random.default_rng(c) for c in range(200)]
        flown, arrived = moves(rngs, chains, np.pi / 2, 1)
        np.testing.assert_array_equal(flown.log_likelihood, 0.0)
        assert arrived.all()
