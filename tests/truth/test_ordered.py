"""Ordered classes against boxes of a multivariate normal, quadrature, grids and a long sample."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import covariance
from scipy.stats import multivariate_normal, norm

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.evidence.thresholds import learn_thresholds, thresholds_of_shares
from graphuq.inference.model_average import EachComponent
from graphuq.inference.settings import RunSettings
from graphuq.likelihoods import Ordered, Probit
from graphuq.models import Mixture, Term

N, PAIRS, NOISE = 7, 5, 0.6
CUTS = np.array([-0.7, 0.4])
WEIGHTS = random_adjacency(N)
LABELLED, LABELS, NODE = [0, 3, 5], [0, 2, 1], 2
SPECTRUM = gq.laplacian_spectrum(gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=PAIRS)
PRIOR = gq.priors.InverseLaplacian()
COVARIANCE = covariance(WEIGHTS, PAIRS, None)
EP = gq.inference.ExpectationPropagation()


def posterior(likelihood=None, prior=PRIOR):
    own = Ordered(CUTS, NOISE) if likelihood is None else likelihood
    return gq.Posterior(SPECTRUM, prior, own, LABELLED, LABELS)


def box(matrix, grades, thresholds):
    """Return P(noisy values lie in the intervals of grades), by SciPy."""
    ends = np.array([-np.inf, *thresholds, np.inf])
    grades, law = np.asarray(grades), type(multivariate_normal)(seed=0)
    return float(
        law.cdf(
            ends[grades + 1],
            np.zeros(len(grades)),
            matrix,
            lower_limit=ends[grades],
            abseps=1e-7,
            releps=1e-7,
            maxpts=400_000,
        )
    )


def exact(scale=1.0, noise=NOISE, thresholds=CUTS):
    """Return the evidence, and the probability of each grade as a label of the node."""
    index = [*LABELLED, NODE]
    noisy = scale**2 * COVARIANCE[np.ix_(index, index)] + noise**2 * np.eye(4)
    evidence = box(noisy[:3, :3], LABELS, thresholds)
    joint = [box(noisy, [*LABELS, grade], thresholds) for grade in range(3)]
    return evidence, np.array(joint) / evidence


def log_mass(lower, upper):
    """Return the log probability of an interval, by Gauss-Legendre on the logs of the density."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    x = (upper + lower) / 2 + (upper - lower) / 2 * nodes
    return np.logaddexp.reduce(norm.logpdf(x) + np.log(weights * (upper - lower) / 2))


@pytest.mark.parametrize("mean", [-30.0, -3.0, 0.1, 3.0, 30.0])
def test_log_probability_is_stable_in_both_tails(mean):
    """A grade whose interval is far away, on either side, and one of little width."""
    for thresholds in ([-1.0, 0.2], [0.1, 0.1001]):
        own = Ordered(thresholds, 0.7)
        found = own.log_prob(np.array([mean]), np.array([1.0]))[0]
        expected = log_mass(*((np.array(thresholds) - mean) / 0.7))
        assert found == pytest.approx(expected, rel=1e-9)
        above = own.log_prob(np.array([mean]), np.array([2.0]))[0]
        assert above == pytest.approx(norm.logsf((thresholds[1] - mean) / 0.7), rel=1e-12)


def cases():
    rng = np.random.default_rng(0)
    mean, variance = 3 * rng.normal(size=60), rng.uniform(0.1, 4.0, 60)
    return mean, variance, rng.integers(0, 3, 60).astype(float)


def test_tilt_is_the_integral_and_its_derivatives():
    mean, variance, grades = cases()
    own, step = Ordered(CUTS, NOISE), 1e-4
    found = own.tilt(mean, variance, grades)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    u = mean + np.sqrt(variance) * nodes[:, None]
    values = np.array([own.log_prob(row, grades) for row in u])
    integral = np.log(weights / weights.sum() @ np.exp(values))
    near = np.abs(mean) < 2  # the rule does not resolve probabilities of the far tail
    assert found.log_partition[near] == pytest.approx(integral[near], abs=1e-6)
    up, down = (own.log_partition(mean + s * step, variance, grades) for s in (1, -1))
    assert found.first == pytest.approx((up - down) / (2 * step), abs=1e-7)
    assert found.second == pytest.approx((up - 2 * found.log_partition + down) / step**2, abs=1e-5)


def test_derivatives_in_thresholds_and_noise():
    mean, variance, grades = cases()
    own, step = Ordered(CUTS, NOISE), 1e-6
    slopes = own.threshold_slopes(mean, variance, grades)
    for k in range(2):
        moved = np.eye(2)[k] * step
        up, down = (
            Ordered(CUTS + s * moved, NOISE).log_partition(mean, variance, grades).sum()
            for s in (1, -1)
        )
        assert slopes[k] == pytest.approx((up - down) / (2 * step), rel=1e-6)
    up, down = (
        Ordered(CUTS, NOISE + s * step).log_partition(mean, variance, grades).sum() for s in (1, -1)
    )
    slope = own.tilted_slopes(mean, variance, grades)["noise_std"]
    assert slope == pytest.approx((up - down) / (2 * step), rel=1e-6)


def test_jax_and_numpy_agree():
    mean, _, grades = cases()
    own = Ordered(CUTS, NOISE)
    with jax.enable_x64(True):
        u, y = jnp.asarray(mean), jnp.asarray(grades)
        value = np.asarray(own.log_prob(u, y))
        slope = np.asarray(jax.grad(lambda u: own.log_prob(u, y).sum())(u))
    assert value == pytest.approx(own.log_prob(mean, grades), rel=1e-12)
    assert slope == pytest.approx(own.tilt(mean, np.zeros_like(mean), grades).first, rel=1e-9)


def test_label_mean_of_the_field_is_an_integral():
    mean, variance, grades = np.array([0.3, -1.0]), np.array([1.0, 0.4]), np.array([1.0, 2.0])
    own = Ordered(CUTS, NOISE)
    u = np.linspace(-12, 12, 48_001)
    for k in range(2):
        logs = own.log_prob(u, np.full_like(u, grades[k])) + norm.logpdf(
            u, mean[k], np.sqrt(variance[k])
        )
        mass = np.exp(logs)
        expected = (np.sign(u) * mass).sum() / mass.sum()
        found = own.tilted_label_mean(mean, variance, grades)[k]
        assert found == pytest.approx(expected, abs=1e-6)


def test_two_grades_are_the_probit():
    signs = [-1, 1, 1]
    probit = gq.Posterior(SPECTRUM, PRIOR, Probit(NOISE, random_labels=True), LABELLED, signs)
    two = gq.Posterior(SPECTRUM, PRIOR, Ordered([0.0], NOISE), LABELLED, [0, 1, 1])
    usual, found = gq.infer(probit, EP), gq.infer(two, EP)
    assert found.probabilities == pytest.approx(usual.probabilities, abs=1e-12)
    assert found.log_evidence == pytest.approx(usual.log_evidence, abs=1e-12)
    assert found.latent_mean == pytest.approx(usual.latent_mean, abs=1e-12)
    one, other = (gq.results.leave_one_out(r) for r in (usual, found))
    assert other.of_label == pytest.approx(one.of_label, abs=1e-10)
    assert other.of_class == pytest.approx(one.of_class, abs=1e-10)


def test_expectation_propagation_is_near_the_boxes():
    evidence, shares = exact()
    found = gq.infer(posterior(), EP)
    assert found.probabilities[NODE] == pytest.approx(shares, abs=0.005)
    assert found.log_evidence == pytest.approx(np.log(evidence), abs=0.01)
    assert found.probabilities.sum(axis=1) == pytest.approx(np.ones(N), abs=1e-12)


def test_a_long_importance_sample_has_the_boxes():
    """Draws of EP's Gaussian, weighed exactly: no error but that of Monte Carlo."""
    _, shares = exact()
    found = gq.infer(posterior(), gq.inference.Independence(reference=EP), n_samples=4000)
    error = np.maximum(found.mcse[NODE], 1e-4)
    assert (np.abs(found.probabilities[NODE] - shares) < 4 * error).all()
    assert found.mcse[NODE].max() < 0.01
    assert found.latent_mean == pytest.approx(gq.infer(posterior(), EP).latent_mean, abs=0.05)


def test_leaving_a_label_out_is_a_fit_without_it():
    found = gq.results.leave_one_out(gq.infer(posterior(), EP))
    index = [LABELLED[0], LABELLED[2], LABELLED[1]]  # the second label is left out
    noisy = COVARIANCE[np.ix_(index, index)] + NOISE**2 * np.eye(3)
    grades = [LABELS[0], LABELS[2]]
    joint = np.array([box(noisy, [*grades, k], CUTS) for k in range(3)])
    assert found.of_label[1] == pytest.approx(joint / joint.sum(), abs=0.01)
    assert found.of_class[1] == pytest.approx(joint / joint.sum(), abs=0.01)


def mixture():
    """Two components of different scales, and the noise of each."""
    terms = [Term(1.0, PRIOR), Term(0.2, PRIOR)]
    return Mixture(terms, gq.Categorical([0.3, 0.7])), np.array([NOISE, 1.2])


def test_average_weighs_components_by_the_boxes():
    prior, noise = mixture()
    found = gq.infer(posterior(Ordered(CUTS, noise), prior))
    assert isinstance(found.answer, gq.inference.GaussianMixture)
    parts = [exact(1.0, NOISE), exact(0.2, 1.2)]
    weights = np.array([0.3 * parts[0][0], 0.7 * parts[1][0]])
    assert found.log_evidence == pytest.approx(np.log(weights.sum()), abs=0.01)
    weights /= weights.sum()
    assert found.answer.weights == pytest.approx(weights, abs=0.005)
    shares = weights[0] * parts[0][1] + weights[1] * parts[1][1]
    assert found.probabilities[NODE] == pytest.approx(shares, abs=0.005)


def test_average_takes_no_sampler():
    prior, noise = mixture()
    weighted = posterior(Ordered(CUTS, noise), prior)
    for method in ("pcn", "model-average", "collapsed-gibbs"):
        with pytest.raises(IncompatibleParts, match="Probit of fixed noise"):
            gq.infer(weighted, method, n_samples=50)
    with pytest.raises(IncompatibleParts, match="point"):
        EachComponent(gq.inference.MAP()).run(weighted, RunSettings())


def test_noise_of_components_needs_a_mixture():
    with pytest.raises(IncompatibleParts, match="needs a mixture"):
        gq.infer(posterior(Ordered(CUTS, [0.5, 0.6])), EP)


def test_learnt_thresholds_have_the_largest_evidence():
    """No other thresholds of a grid have more evidence times prior density, by the boxes."""
    found = learn_thresholds(posterior())
    index = np.array(LABELLED)
    noisy = COVARIANCE[np.ix_(index, index)] + NOISE**2 * np.eye(3)

    def value(b):
        shares = np.diff(norm.cdf(np.array([-np.inf, *b, np.inf]) / np.hypot(NOISE, 1.0)))
        return np.log(box(noisy, LABELS, b)) + np.log(shares).sum()

    grid = [(a, a + d) for a in np.linspace(-1.5, 0.8, 12) for d in np.linspace(0.2, 2.2, 11)]
    best = max(grid, key=value)
    assert value(found) > value(best) - 0.01
    assert found == pytest.approx(np.array(best), abs=0.25)


def test_learnt_thresholds_are_those_of_many_labels():
    """With many labels on a known field, thresholds come back."""
    rng, n = np.random.default_rng(0), 400
    graph = gq.graphs.knn_graph(np.linspace(0, 1, n)[:, None], n_neighbors=10)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=20)
    prior, true = gq.priors.Matern(0.2, 3.0), np.array([-0.5, 0.3, 0.9])
    u = spectrum.eigenvectors @ (prior.spectral_std(spectrum).modes * rng.normal(size=20))
    grades = np.searchsorted(true, u + 0.5 * rng.normal(size=n))
    first = thresholds_of_shares(np.bincount(grades, minlength=4), np.hypot(0.5, 1.0))
    known = gq.Posterior(spectrum, prior, Ordered(first, 0.5), np.arange(n), grades)
    found = learn_thresholds(known)
    # The constant of the field is 0 here, so that nothing but noise of 400 labels is left.
    assert found == pytest.approx(true, abs=0.25)
    again = learn_thresholds([known, known], [0.0, 0.0])
    assert again == pytest.approx(found, abs=1e-3)


def test_a_grade_without_labels_keeps_a_share():
    own = gq.Posterior(SPECTRUM, PRIOR, Ordered([-0.5, 0.5], NOISE), [0, 3], [0, 2])
    lower, upper = learn_thresholds(own)
    assert upper - lower > 0.2
    assert gq.infer(own, EP).probabilities[:, 1].min() > 0.01


def test_rescaled_likelihood_is_that_of_the_scaled_field():
    mean, _, grades = cases()
    own = Ordered(CUTS, NOISE)
    assert own.rescaled(3.0).log_prob(3 * mean, grades) == pytest.approx(
        own.log_prob(mean, grades), abs=1e-12
    )


@pytest.mark.parametrize(
    ("parameters", "argument"),
    [
        ({"thresholds": [0.5, 0.5]}, "thresholds"),
        ({"thresholds": [1.0, -1.0]}, "thresholds"),
        ({"thresholds": [0.0, np.inf]}, "thresholds"),
        ({"thresholds": []}, "thresholds"),
        ({"thresholds": 0.0}, "thresholds"),
        ({"thresholds": "low"}, "thresholds"),
        ({"thresholds": [[0.0], [1.0, 2.0]]}, "thresholds"),
        ({"thresholds": [0.0], "noise_std": 0.0}, "noise_std"),
        ({"thresholds": [0.0], "noise_std": gq.LogUniform(0.1, 1)}, "noise_std"),
        ({"thresholds": [0.0], "noise_std": [[0.1]]}, "noise_std"),
    ],
)
def test_wrong_numbers_are_refused(parameters, argument):
    with pytest.raises(InvalidInput, match=argument):
        Ordered(**parameters)


def test_labels_are_codes_and_have_no_weights_or_prior_mean():
    with pytest.raises(InvalidInput, match="0 to 2"):
        gq.Posterior(SPECTRUM, PRIOR, Ordered(CUTS), [0, 3], [-1, 1])
    given = {"spectrum": SPECTRUM, "prior": PRIOR, "likelihood": Ordered(CUTS)}
    with pytest.raises(IncompatibleParts, match="prior mean"):
        gq.Posterior(**given, labelled=[0, 3], labels=[0, 2], prior_mean=0.5)
    with pytest.raises(IncompatibleParts, match="takes no weights"):
        gq.Posterior(**given, labelled=[0, 3], labels=[0, 2], label_weights=[1.0, 2.0])
    with pytest.raises(IncompatibleParts, match="has no thresholds"):
        learn_thresholds(gq.Posterior(SPECTRUM, PRIOR, Probit(), [0, 3], [-1, 1]))


def test_saved_result_is_the_same(tmp_path):
    prior, noise = mixture()
    found = gq.infer(posterior(Ordered(CUTS, noise), prior))
    found.save(tmp_path / "grades.nc")
    again = gq.load(tmp_path / "grades.nc")
    assert again.probabilities.tolist() == found.probabilities.tolist()
    assert again.posterior.likelihood == found.posterior.likelihood
    at = gq.results.latent_numbers.at_rows(again, SPECTRUM.eigenvectors[[NODE]], np.ones(1))
    assert at.probabilities[0] == pytest.approx(found.probabilities[NODE], abs=1e-12)
    assert dataclasses.is_dataclass(again)
