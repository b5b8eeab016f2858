"""Weights of labels against probabilities without them, and through the estimator."""

import numpy as np
import pytest
import sklearn
from reference import orthant
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput

LABELLED, WEIGHTS, NOISE = np.array([1, 4, 7]), np.array([1.0, 0.05, 0.3]), 0.5
SPECTRUM = gq.laplacian_spectrum(gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2))
PRIOR = gq.priors.Matern(tau=0.3, alpha=1.5)
MOONS = gq.datasets.two_moons(120, n_features=2, noise_std=0.05, rng=1)
AVERAGE = gq.inference.ModelAverage(fields="gibbs")
LEVEL_SET = gq.models.LargestEvidence(likelihood="level-set")
NUMBERS = gq.models.LargestEvidence(likelihood="gaussian")
pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
METHODS = [
    "collapsed-gibbs",
    "exact-hamiltonian",
    "hamiltonian",
    "sequential-independence",
    "elliptical-slice",
]


def prior_covariance():
    q = np.asarray(SPECTRUM.eigenvectors) * PRIOR.spectral_std(SPECTRUM).modes
    return q @ q.T


def posterior(labels, n_classes=2, weights=WEIGHTS, **options):
    likelihood = gq.likelihoods.Probit(NOISE, n_classes, **options)
    return gq.Posterior(SPECTRUM, PRIOR, likelihood, LABELLED, labels, label_weights=weights)


def exact_label_means(labels, weights):
    """Return ``E sign(u_i)`` at every node, and the evidence, from probabilities of orthants."""
    covariance, means = prior_covariance(), []
    noise = np.diag(NOISE**2 / np.asarray(weights))
    own = covariance[np.ix_(LABELLED, LABELLED)] + noise
    evidence = orthant(own, labels)
    for node in range(9):
        cross = covariance[node, LABELLED]
        joint = np.block(
            [[np.array([[covariance[node, node]]]), cross[None]], [cross[:, None], own]]
        )
        means.append(2 * orthant(joint, [1, *labels]) / evidence - 1)
    return np.array(means), float(np.log(evidence))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("method", [*METHODS, "expectation-propagation"])
def test_two_classes_against_probabilities_of_orthants(method):
    labels = [1, -1, -1]
    exact, evidence = exact_label_means(labels, WEIGHTS)
    arguments = {}
    if method in METHODS:
        arguments = {"n_samples": 2000, "n_chains": 4}
    result = gq.infer(posterior(labels), method, rng=1, **arguments)
    tolerance = 4 * gq.results.label_mcse(result) + 2e-3
    if method == "expectation-propagation":
        assert abs(result.log_evidence - evidence) < 0.02
        tolerance = 0.02
    assert np.all(np.abs(gq.results.label_mean(result) - exact) < tolerance)
    without, _ = exact_label_means(labels, np.ones(3))
    assert np.abs(exact - without).max() > 0.15  # what is tested is not nothing


def draws_that_agree(labels, n_fields, n=400_000):
    """Return the fields of prior draws whose noisy values at the labels agree with these."""
    rng = np.random.default_rng(2)
    root = np.linalg.cholesky(prior_covariance() + 1e-10 * np.eye(9))
    u = np.einsum("ij,snj->sin", root, rng.normal(size=(n, n_fields, 9)))
    noisy = u[:, LABELLED] + NOISE / np.sqrt(WEIGHTS)[:, None] * rng.normal(size=(n, 3, n_fields))
    found = noisy.argmax(axis=2) if n_fields > 1 else np.where(noisy[..., 0] > 0, 1, -1)
    return u[(found == labels).all(axis=1)]


@pytest.mark.parametrize(
    "method",
    [
        "collapsed-gibbs",
        pytest.param("hamiltonian", marks=pytest.mark.slow),
        "expectation-propagation",
    ],
)
def test_three_classes_against_rejection(method):
    labels = [0, 2, 1]
    u = draws_that_agree(labels, 3)
    assert len(u) > 10_000
    leads = u.argmax(axis=2)
    exact = np.stack([(leads == k).mean(axis=0) for k in range(3)], axis=1)
    sampled = method != "expectation-propagation"
    arguments = {"n_samples": 2000, "n_chains": 4} if sampled else {}
    result = gq.infer(posterior(labels, 3), method, rng=1, **arguments)
    error = np.sqrt(exact * (1 - exact) / len(u)) + gq.results.label_mcse(result)
    assert np.all(
        np.abs(gq.results.label_mean(result) - exact) < 4 * error + (1e-3 if sampled else 0.03)
    )


@pytest.mark.parametrize("method", ["collapsed-gibbs", "expectation-propagation"])
@pytest.mark.parametrize("random_labels", [False, True])
def test_the_field_of_a_weighted_label_is_reported_in_its_own_units(method, random_labels):
    labels = [1, -1, -1]
    u = draws_that_agree(np.array(labels), 1)[..., 0]
    arguments = {"n_samples": 2000, "n_chains": 4} if method == "collapsed-gibbs" else {}
    found = posterior(labels, random_labels=random_labels)
    result = gq.infer(found, method, rng=1, **arguments)
    np.testing.assert_allclose(result.latent_mean, u.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(result.latent_std, u.std(axis=0), atol=0.03)
    if random_labels:
        noisy = u + NOISE * np.random.default_rng(0).normal(size=u.shape)
        np.testing.assert_allclose(
            gq.results.label_mean(result), np.sign(noisy).mean(axis=0), atol=0.03
        )


def test_leave_one_out_has_the_noise_of_the_label():
    """The probability of a label given the others is a ratio of probabilities of orthants."""
    labels = np.array([1, -1, -1])
    own = prior_covariance()[np.ix_(LABELLED, LABELLED)] + np.diag(NOISE**2 / WEIGHTS)
    for method in ("collapsed-gibbs", "expectation-propagation"):
        arguments = {"n_samples": 2000, "n_chains": 4} if method == "collapsed-gibbs" else {}
        found = gq.leave_one_out(gq.infer(posterior(labels), method, rng=1, **arguments)).of_label
        for j in range(3):
            flipped = labels.copy()
            flipped[j] *= -1
            given, other = (orthant(own, y) for y in (labels, flipped))
            exact = given / (given + other)
            assert abs(found[j, int(labels[j] > 0)] - exact) < 0.03


@pytest.mark.slow
def test_learnt_hyperparameters_have_weights():
    """A label of tiny weight leaves a learnt range as if it were not given."""
    prior = gq.priors.Matern(tau=gq.LogUniform(0.1, 1.0), alpha=1.5)
    settings = {"n_samples": 1500, "n_chains": 4, "rng": 0}
    likelihood = gq.likelihoods.Probit(NOISE)
    weighted = gq.Posterior(
        SPECTRUM, prior, likelihood, [1, 4, 7], [1, 1, -1], label_weights=[1.0, 1e-9, 1.0]
    )
    without = gq.Posterior(SPECTRUM, prior, likelihood, [1, 7], [1, -1])
    first, second = (gq.infer(one, **settings) for one in (weighted, without))
    tolerance = 4 * np.hypot(gq.results.label_mcse(first), gq.results.label_mcse(second)) + 1e-3
    assert np.all(np.abs(gq.results.label_mean(first) - gq.results.label_mean(second)) < tolerance)


def few_labels():
    y = np.full(120, -1)
    y[:12] = MOONS.classes[:12]
    return y


@pytest.mark.slow
def test_weights_of_one_are_no_weights():
    for inference in ("auto", "expectation-propagation", AVERAGE):
        plain, weighted = (
            gq.GraphClassifier(n_neighbors=8, inference=inference).fit(
                MOONS.features, few_labels(), sample_weight=weights
            )
            for weights in (None, np.ones(120))
        )
        np.testing.assert_array_equal(plain.label_distributions_, weighted.label_distributions_)
        assert weighted.result_.posterior.label_weights is None


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "inference",
    ["expectation-propagation", AVERAGE, pytest.param("auto", marks=pytest.mark.slow)],
)
def test_a_small_weight_has_little_influence_and_none_has_zero(inference):
    wrong, without, weights = few_labels(), few_labels(), np.ones(120)
    wrong[3], without[3] = 1 - wrong[3], -1
    classifier = gq.GraphClassifier(n_neighbors=8, inference=inference)
    exact = classifier.fit(MOONS.features, without).label_distributions_
    weights[3] = 0.0
    zero = classifier.fit(MOONS.features, wrong, sample_weight=weights).label_distributions_
    np.testing.assert_array_equal(zero, exact)
    weights[3] = 1e-8
    small = classifier.fit(MOONS.features, wrong, sample_weight=weights).label_distributions_
    assert np.abs(small - exact).max() < 0.03
    whole = classifier.fit(MOONS.features, wrong).label_distributions_
    assert np.abs(whole - exact).max() > 0.1


@pytest.mark.slow
def test_weights_are_kept_by_files_and_by_more_labels(tmp_path):
    weights = np.linspace(0.1, 2, 120)
    classifier = gq.GraphClassifier(n_neighbors=8, inference="expectation-propagation")
    classifier.fit(MOONS.features, few_labels(), sample_weight=weights)
    classifier.save(tmp_path / "weights.nc")
    read = gq.load(tmp_path / "weights.nc")
    np.testing.assert_array_equal(read.result_.posterior.label_weights, weights[:12])
    np.testing.assert_allclose(read.label_distributions_, classifier.label_distributions_)
    again = gq.infer(read.result_.posterior, "expectation-propagation")
    np.testing.assert_allclose(again.latent_mean, classifier.result_.latent_mean, atol=1e-6)
    read.add_labels([2, 50], [-1, MOONS.classes[50]])
    expected = np.append(np.delete(weights[:12], 2), 1.0)
    np.testing.assert_array_equal(read.result_.posterior.label_weights, expected)


@pytest.mark.slow
def test_metadata_routing_and_pipelines():
    weights = np.ones(120)
    weights[3] = 0.0
    wrong = few_labels()
    wrong[3] = 1 - wrong[3]
    classifier = gq.GraphClassifier(n_neighbors=8, inference="expectation-propagation")
    exact = classifier.fit(MOONS.features, wrong, sample_weight=weights).label_distributions_
    with sklearn.config_context(enable_metadata_routing=True):
        routed = gq.GraphClassifier(n_neighbors=8, inference="expectation-propagation")
        routed.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        scaler = StandardScaler(with_std=False).set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, routed)
        pipeline.fit(MOONS.features, wrong, sample_weight=weights)
        np.testing.assert_allclose(pipeline[-1].label_distributions_, exact, atol=1e-6)
        search = GridSearchCV(routed, {"n_neighbors": [8]}, cv=gq.LabelledKFold(2))
        search.fit(MOONS.features, wrong, sample_weight=weights)
        np.testing.assert_array_equal(search.best_estimator_.label_distributions_, exact)


@pytest.mark.parametrize(
    ("arguments", "weights", "message"),
    [
        ({}, np.ones(5), r"sample_weight: shape \(5,\) for 120 rows"),
        ({}, -np.ones(120), r"sample_weight: \[-1.0\] in row \[0\]"),
        ({}, np.zeros(120), "sample_weight: zero at every label"),
        ({}, np.full(120, np.nan), r"sample_weight: \[nan\] in row \[0\]"),
        (
            {"model": gq.models.LargestEvidence(likelihood="level-set")},
            0.5 * np.ones(120),
            "takes no weights of labels",
        ),
        (
            {"model": gq.models.LargestEvidence(likelihood="gaussian")},
            0.5 * np.ones(120),
            "takes no weights of labels",
        ),
    ],
)
def test_wrong_weights_are_refused(arguments, weights, message):
    classifier = gq.GraphClassifier(n_neighbors=8, **arguments)
    with pytest.raises((InvalidInput, IncompatibleParts), match=message):
        classifier.fit(MOONS.features, few_labels(), sample_weight=weights)


def test_posteriors_that_take_no_weights_say_so():
    with pytest.raises(InvalidInput, match="label_weights: shape"):
        posterior([1, -1, -1], weights=[1.0, 2.0])
    with pytest.raises(InvalidInput, match="leave labels of weight 0 out"):
        posterior([1, -1, -1], weights=[1.0, 2.0, 0.0])
    tail = gq.laplacian_spectrum(
        gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2), n_eigenpairs=2,
        tail_eigenvalue=1.0,
    )  # fmt: skip
    weighted = gq.Posterior(
        tail, PRIOR, gq.likelihoods.Probit(), LABELLED, [1, -1, 1], label_weights=WEIGHTS
    )
    with pytest.raises(IncompatibleParts, match="weights of labels need a field without a tail"):
        gq.infer(weighted, "pcn")
    series = gq.Posterior(
        SPECTRUM, gq.priors.RandomSeries(), gq.likelihoods.Probit(1.0), LABELLED, [1, -1, 1],
        label_weights=WEIGHTS,
    )  # fmt: skip
    assert not series.has_series


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("method", ["laplace", "map", "expectation-propagation"])
def test_equal_weights_are_another_noise(method):
    """Weights of 4 are half the noise, for approximations and for points too."""
    labels = [1, -1, -1]
    weighted = gq.infer(posterior(labels, weights=np.full(3, 4.0)), method)
    likelihood = gq.likelihoods.Probit(NOISE / 2)
    plain = gq.infer(gq.Posterior(SPECTRUM, PRIOR, likelihood, LABELLED, labels), method)
    np.testing.assert_allclose(weighted.latent_mean, plain.latent_mean, atol=1e-4)
    np.testing.assert_allclose(weighted.latent_std, plain.latent_std, atol=1e-4)
    np.testing.assert_allclose(
        gq.results.label_mean(weighted), gq.results.label_mean(plain), atol=1e-4
    )


def test_evidence_with_weights():
    """Hyperparameters with all weights 4 are those without, for half the noise."""
    classifier = gq.GraphClassifier(
        n_neighbors=8, model="largest-evidence", inference="expectation-propagation"
    )
    weighted = classifier.fit(MOONS.features, few_labels(), sample_weight=np.full(120, 4.0))
    found = weighted.result_.posterior
    same = gq.Posterior(
        found.spectrum,
        found.prior,
        gq.likelihoods.Probit(found.likelihood.noise_std / 2),
        found.labelled,
        found.labels,
    )
    plain = gq.infer(same, "expectation-propagation")
    assert plain.log_evidence == pytest.approx(weighted.result_.log_evidence, abs=1e-6)
    np.testing.assert_allclose(plain.latent_mean, weighted.result_.latent_mean, atol=1e-5)
