"""Soft labels against enumeration of the classes, with orthant probabilities of SciPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import covariance, orthant
from scipy.stats import norm

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.inference.collapsed_gibbs import soft_sweeps
from graphuq.inference.collapsed_gibbs.noisy_values import NoisyValues
from graphuq.likelihoods import Probit, SoftProbit

N, PAIRS, NOISE = 7, 5, 0.6
WEIGHTS = random_adjacency(N)
LABELLED, NODE = [0, 3, 5], 2
TWO = np.array([[0.9, 0.1], [0.35, 0.65], [0.0, 1.0]])
THREE = np.array([[0.7, 0.2, 0.1], [0.0, 0.4, 0.6]])
SPECTRUM = gq.laplacian_spectrum(gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=PAIRS)
PRIOR = gq.priors.InverseLaplacian()
COVARIANCE = covariance(WEIGHTS, PAIRS, None)
EP = gq.inference.ExpectationPropagation()


def posterior(q, weights=None, **parameters):
    likelihood = SoftProbit(NOISE, q, **parameters)
    labels = LABELLED[: len(q)], likelihood.most_probable
    return gq.Posterior(SPECTRUM, PRIOR, likelihood, *labels, label_weights=weights)


@pytest.fixture(scope="module")
def truth_of_two():
    """Return log p(q) and E sign(u) at the unlabelled node."""
    return enumerated([1.0, 1.0, 1.0])


def enumerated(weights):
    """Return both for labels whose noise has the variance γ²/w."""
    index = [*LABELLED, NODE]
    noisy = COVARIANCE[np.ix_(index, index)] + np.diag([*(NOISE**2 / np.array(weights)), 0.0])
    total = positive = 0.0
    for classes in itertools.product([0, 1], repeat=3):
        weight = TWO[np.arange(3), classes].prod()
        signs = 2 * np.array(classes) - 1
        total += weight * orthant(noisy[:-1, :-1], signs)
        positive += weight * orthant(noisy, [*signs, 1])
    return np.log(total), 2 * positive / total - 1


@pytest.fixture(scope="module")
def truth_of_three():
    """Return the probability that each of three fields is the largest at the unlabelled node."""
    nodes = LABELLED[:2]
    index = [*nodes, NODE]
    noisy = COVARIANCE[np.ix_(index, index)] + np.diag([NOISE**2] * 2 + [0.0])
    total = np.zeros(3)
    for classes in itertools.product(range(3), repeat=3):
        rows = np.zeros((6, 3, 3))  # differences of each node, as a map from node × class
        for j, own in enumerate(classes):
            for i, other in enumerate(k for k in range(3) if k != own):
                rows[2 * j + i, j, own], rows[2 * j + i, j, other] = 1, -1
        flat = rows.reshape(6, 9)
        matrix = flat @ np.kron(noisy, np.eye(3)) @ flat.T
        weight = THREE[[0, 1], classes[:2]].prod()
        total[classes[2]] += weight * orthant(matrix, np.ones(6)) if weight else 0.0
    return total / total.sum()


METHODS = {
    "default": (None, {}),
    "collapsed Gibbs": (gq.inference.CollapsedGibbs(), {}),
    "pCN": (gq.inference.PCN(), {"n_samples": 2000}),
    "elliptical slice": (gq.inference.EllipticalSlice(), {}),
    "elliptical slice about EP": (gq.inference.EllipticalSlice(reference=EP), {}),
    "Hamiltonian": (gq.inference.Hamiltonian(), {}),
    "independence about EP": (gq.inference.Independence(reference=EP), {}),
}


LONG = ("pCN", "elliptical slice about EP", "independence about EP")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in METHODS]
)
def test_two_classes(truth_of_two, name):
    method, lengths = METHODS[name]
    result = gq.infer(posterior(TWO), method, rng=1, **lengths)
    error = gq.results.label_mean(result)[NODE] - truth_of_two[1]
    assert abs(error) < 4.5 * gq.results.label_mcse(result)[NODE] + 1e-4
    assert gq.results.label_mcse(result)[NODE] < 0.02


@pytest.mark.parametrize("name", ["default", "collapsed Gibbs"])
def test_weights_of_soft_labels(name):
    weights = [4.0, 0.2, 1.0]
    result = gq.infer(posterior(TWO, weights), METHODS[name][0], rng=1)
    error = gq.results.label_mean(result)[NODE] - enumerated(weights)[1]
    assert abs(error) < 4.5 * gq.results.label_mcse(result)[NODE] + 1e-4
    assert gq.results.label_mcse(result)[NODE] < 0.04  # twice the bound of a probability


@pytest.mark.parametrize(
    "name",
    ["default", "collapsed Gibbs", pytest.param("elliptical slice", marks=pytest.mark.slow)],
)
def test_three_classes(truth_of_three, name):
    method, lengths = METHODS[name]
    result = gq.infer(posterior(THREE), method, rng=1, **lengths)
    error = gq.results.label_mean(result)[NODE] - truth_of_three
    assert (abs(error) < 4.5 * gq.results.label_mcse(result)[NODE] + 1e-4).all()
    assert gq.results.label_mcse(result)[NODE].max() < 0.02


def test_expectation_propagation_is_close(truth_of_two):
    result = gq.infer(posterior(TWO), EP)
    assert result.log_evidence == pytest.approx(truth_of_two[0], abs=0.03)
    assert gq.results.label_mean(result)[NODE] == pytest.approx(truth_of_two[1], abs=0.05)


@pytest.mark.slow
def test_nearly_certain_labels_that_the_graph_contradicts_have_a_fixed_point():
    """Sweeps that extrapolate stay in a cycle here; the answer is that of chains."""
    rng = np.random.default_rng(33)
    X = rng.normal(size=(150, 2))
    classes = (X[:, 0] + 0.5 * rng.normal(size=150) > 0).astype(int)
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(X, 15))
    nodes, q = rng.permutation(150)[:80], np.full((80, 2), 0.02)
    right = rng.uniform(size=80) < 0.98
    q[np.arange(80), np.where(right, classes[nodes], 1 - classes[nodes])] = 0.98
    likelihood = SoftProbit(0.2, q)
    labels = nodes, likelihood.most_probable
    of_nodes = gq.Posterior(spectrum, gq.priors.Matern(0.3, 4.0), likelihood, *labels)
    chains = gq.infer(of_nodes, n_samples=1000, rng=0)
    error = gq.results.label_mean(gq.infer(of_nodes, EP)) - gq.results.label_mean(chains)
    assert (abs(error) < 0.05 + 4.5 * gq.results.label_mcse(chains)).all()
    assert gq.results.label_mcse(chains).max() < 0.02


def test_certain_labels_are_a_probit():
    rng = np.random.default_rng(0)
    for n_classes in (2, 4):
        q = np.eye(n_classes)[rng.integers(0, n_classes, 6)]
        soft, hard = SoftProbit(0.3, q), Probit(0.3, n_classes)
        y = soft.most_probable.astype(float)
        u = rng.normal(size=(6,) if n_classes == 2 else (6, n_classes))
        with jax.enable_x64(True):
            u, y = jnp.asarray(u), jnp.asarray(y)
            found, expected = (
                jax.jit(lambda u, y, part=part: part.log_prob(u, y))(u, y) for part in (soft, hard)
            )
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert soft.link is None
    assert SoftProbit(0.3, q, random_labels=True).link[1] == 0.3


def test_moments_against_quadrature():
    q = np.array([[0.2, 0.8], [0.95, 0.05], [0.5, 0.5], [1.0, 0.0]])
    likelihood, y = SoftProbit(0.4, q), np.array([1.0, -1.0, 1.0, -1.0])
    mean, variance = np.array([-1.5, 0.7, 0.3, -0.2]), np.array([0.5, 2.0, 1.0, 0.1])
    z = np.linspace(-12, 12, 200_001)
    found, label = likelihood.tilt(mean, variance, y), likelihood.tilted_label_mean
    above, below = (likelihood.tilt(mean + e, variance, y).log_partition for e in (1e-5, -1e-5))
    np.testing.assert_allclose(found.first, (above - below) / 2e-5, atol=1e-6)
    above, below = (likelihood.tilt(mean + e, variance, y).first for e in (1e-5, -1e-5))
    np.testing.assert_allclose(found.second, (above - below) / 2e-5, atol=1e-6)
    for j in range(4):
        u = mean[j] + np.sqrt(variance[j]) * z
        share = norm.cdf(u / 0.4)
        weight = norm.pdf(z) * (q[j, 1] * share + q[j, 0] * (1 - share))
        total = np.trapezoid(weight, z)
        assert found.log_partition[j] == pytest.approx(np.log(total), abs=1e-8)
        expected = np.trapezoid(weight * np.sign(u), z) / total
        assert label(mean, variance, y)[j] == pytest.approx(expected, abs=1e-4)
    sums = [SoftProbit(g, q).tilt(mean, variance, y).log_partition.sum() for g in (0.40001, 0.4)]
    slope = likelihood.tilted_slopes(mean, variance, y)["noise_std"]
    assert slope == pytest.approx((sums[0] - sums[1]) / 1e-5, abs=1e-4)


@pytest.mark.parametrize("q", [[0.85, 0.15], [0.5, 0.2, 0.3]], ids=["two", "three"])
def test_without_graph_and_other_labels_the_class_has_the_probabilities_given(q):
    """The model's own class shares are equal, so q is the posterior of a lone soft label."""
    model = NoisyValues.of(posterior(np.array([q])))
    rng = np.random.default_rng(0)
    made = model.run(rng, model.start(rng), 20_000, 3)
    shares = np.bincount(soft_sweeps.classes_of(made)[:, 0], minlength=len(q)) / len(made)
    np.testing.assert_allclose(shares, q, atol=4.5 * 0.5 / np.sqrt(len(made) / 4))


def test_labels_of_the_evidence_are_fractions():
    found = gq.maximize_evidence(posterior(TWO), ["noise_std"], hyperprior=False)
    values = []
    for noise_std in (0.7, 1.0, 1.4):
        likelihood = SoftProbit(found.values["noise_std"] * noise_std, TWO)
        parts = SPECTRUM, PRIOR, likelihood, LABELLED, likelihood.most_probable
        values.append(gq.infer(gq.Posterior(*parts), EP).log_evidence)
    assert values[1] == pytest.approx(found.log_evidence, abs=1e-4)
    assert max(values) < values[1] + 1e-3  # the search stops where it gains less


def test_refusals():
    for method in ("exact-hamiltonian", "sequential-independence", "tempered-hamiltonian"):
        with pytest.raises(IncompatibleParts, match="needs a likelihood of two levels"):
            gq.infer(posterior(TWO), method)
    with pytest.raises(IncompatibleParts, match="soft labels of two classes only"):
        gq.infer(posterior(THREE), EP)
    result = gq.infer(posterior(TWO), EP)
    with pytest.raises(IncompatibleParts, match="labels that are certain, and these are soft"):
        gq.leave_one_out(result)
    with pytest.raises(InvalidInput, match=r"3 soft labels of 4 labelled nodes; .* fit again"):
        result.posterior.relabelled([1], [1])
    with pytest.raises(InvalidInput, match=r"pass likelihood\.most_probable"):
        gq.Posterior(SPECTRUM, PRIOR, SoftProbit(NOISE, TWO), LABELLED, [1, 1, 1])
    with pytest.raises(InvalidInput, match=r"probabilities: \[0.5, 0.6\] in row 1"):
        SoftProbit(NOISE, [[0, 1], [0.5, 0.6]])
    with pytest.raises(InvalidInput, match=r"probabilities: shape \(2,\)"):
        SoftProbit(NOISE, [0.5, 0.5])


def test_a_result_is_stored(tmp_path):
    result = gq.infer(posterior(THREE, random_labels=True), n_samples=200, rng=0)
    result.save(tmp_path / "r.nc")
    again = gq.load(tmp_path / "r.nc")
    np.testing.assert_array_equal(gq.results.label_mean(again), gq.results.label_mean(result))
    np.testing.assert_array_equal(again.posterior.likelihood.probabilities, THREE)
