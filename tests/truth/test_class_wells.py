"""Atomic noise of K classes, and wells with other labels, against weighted draws of the prior."""

import numpy as np
import pytest
from scipy.stats import norm

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.utils.serialization import from_json, to_json

WEIGHTS = random_adjacency(6, seed=2)
LABELLED = [0, 2, 5]
CODES, SIGNS = np.array([0, 1, 2]), np.array([1, -1, 1])
ERRORS = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.02, 0.18, 0.8]])
ATOMIC = gq.likelihoods.AtomicNoise(0.9, 0.8)
SLICE = gq.inference.EllipticalSlice()


def build(likelihood, n_eigenpairs=4):
    spectrum = gq.laplacian_spectrum(
        gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=n_eigenpairs, tail_eigenvalue=False
    )
    labels = CODES if likelihood.is_multiclass else SIGNS
    return gq.Posterior(spectrum, gq.priors.InverseLaplacian(), likelihood, LABELLED, labels)


def by_prior_draws(log_prob, n_classes, n_draws=300_000):
    """Return the mean of S(u), its error, and the mean of u, from weighted draws of the prior."""
    degrees = WEIGHTS.sum(axis=1)
    operator = np.eye(6) - WEIGHTS / np.sqrt(np.outer(degrees, degrees))
    eigenvalues, q = np.linalg.eigh(operator)
    std = np.sqrt(6 / eigenvalues[1:4] / (1 / eigenvalues[1:4]).sum())
    fields = 1 if n_classes == 2 else n_classes
    xi = np.random.default_rng(7).normal(size=(n_draws, fields, 3))
    u = np.einsum("skj,nj->snk", xi, q[:, 1:4] * std)
    u = u[..., 0] if n_classes == 2 else u
    logs = log_prob(u)
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    assert 1 / (weight**2).sum() > 1000  # effective draws
    label = np.sign(u) if n_classes == 2 else np.eye(n_classes)[u.argmax(axis=2)]
    mean = np.einsum("s,s...->...", weight, label)
    error = np.sqrt(np.einsum("s,s...->...", weight**2, (label - mean) ** 2))
    return mean, error, np.einsum("s,s...->...", weight, u)


def confused(u):
    return np.log(ERRORS[u[:, LABELLED].argmax(axis=2), CODES]).sum(axis=1)


def wells(u, epsilon):
    """Return minus the wells of all nodes: of two classes at ±1, of three at the unit vectors."""
    if u.ndim == 2:
        return -((u**2 - 1) ** 2).sum(axis=1) / (4 * epsilon)
    product = np.ones(u.shape[:2])
    for k in range(3):
        product *= np.abs(u - np.eye(3)[k]).sum(axis=2) ** 2 / 4
    return -product.sum(axis=1) / (2 * epsilon)


def gaussian(u):
    return wells(u, 1.5) - ((u[:, LABELLED] - np.eye(3)[CODES]) ** 2).sum(axis=(1, 2)) / (2 * 0.64)


def atomic(u):
    right = np.sign(u[:, LABELLED]) == SIGNS
    p = np.where(SIGNS > 0, np.where(right, 0.9, 0.2), np.where(right, 0.8, 0.1))
    return wells(u, 1.5) + np.log(p).sum(axis=1)


def probit(u):
    return wells(u, 1.5) + norm.logcdf(SIGNS * u[:, LABELLED] / 0.5).sum(axis=1)


CONFUSED = gq.likelihoods.ConfusionMatrix(ERRORS)
WELLS = gq.likelihoods.GinzburgLandau(1.5, 0.8, 3)
prior_of = gq.likelihoods.GinzburgLandauPrior
CASES = {
    "atomic noise in wells": (prior_of(ATOMIC, 1.5), atomic, SLICE),
    "K wells": (WELLS, gaussian, gq.inference.Hamiltonian()),
}
SLOW = {
    "confusion": (CONFUSED, confused, SLICE),
    "confusion, default": (CONFUSED, confused, None),
    "confusion, pCN": (CONFUSED, confused, gq.inference.PCN()),
    "K wells, default": (WELLS, gaussian, None),
    "K wells, pCN": (WELLS, gaussian, gq.inference.PCN()),
    "atomic noise in wells, default": (prior_of(ATOMIC, 1.5), atomic, None),
    "atomic noise in wells, pCN": (prior_of(ATOMIC, 1.5), atomic, gq.inference.PCN()),
    "probit in wells": (
        prior_of(gq.likelihoods.Probit(0.5), 1.5),
        probit,
        gq.inference.Hamiltonian(),
    ),
    "confusion in wells": (
        prior_of(gq.likelihoods.ConfusionMatrix(ERRORS), 1.5),
        lambda u: wells(u, 1.5) + confused(u),
        SLICE,
    ),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "name", [*CASES, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_label_means_agree_with_weighted_draws_of_the_prior(name):
    likelihood, log_prob, method = (CASES | SLOW)[name]
    truth, error, mean = by_prior_draws(log_prob, 3 if likelihood.is_multiclass else 2)
    found = gq.infer(build(likelihood), method, n_samples=1000, n_chains=32, thin=5, rng=3)
    assert error.max() < 0.03
    assert gq.results.label_mcse(found).max() < 0.02
    difference = np.abs(gq.results.label_mean(found) - truth)
    assert (difference < 4.5 * np.hypot(error, gq.results.label_mcse(found))).all()
    np.testing.assert_allclose(found.latent_mean, mean, atol=0.06)


@pytest.mark.slow
def test_leave_one_out_of_wells_and_confusions():
    """The factor of a label alone: p(y_j | others) is a ratio of evidences, by prior draws."""
    for likelihood, log_prob in ((WELLS, gaussian), (CONFUSED, confused)):
        method = gq.inference.Hamiltonian() if likelihood is WELLS else SLICE
        result = gq.infer(build(likelihood), method, n_samples=500, n_chains=32, thin=5, rng=3)
        own = gq.leave_one_out(result).of_class
        assert own.shape == (3, 3)

        def others(u, log_prob=log_prob):
            if log_prob is confused:
                return np.log(ERRORS[u[:, LABELLED[1:]].argmax(axis=2), CODES[1:]]).sum(axis=1)
            misfit = ((u[:, LABELLED[1:]] - np.eye(3)[CODES[1:]]) ** 2).sum(axis=(1, 2))
            return wells(u, 1.5) - misfit / (2 * 0.64)

        truth, *_ = by_prior_draws(others, 3)
        assert np.all(np.abs(own[0] - truth[0]) < 0.03)


def test_exact_data_is_noise_free():
    """AtomicNoise(1, 1) has the levels, the moments and the posterior of NoiseFree."""
    exact, free = gq.likelihoods.AtomicNoise(1, 1), gq.likelihoods.NoiseFree()
    y = np.array([1.0, -1.0])
    for one, other in zip(exact.log_levels(y), free.log_levels(y), strict=True):
        np.testing.assert_array_equal(one, other)
    arguments = np.array([0.3, 2.0]), np.array([0.5, 1.0]), y
    np.testing.assert_array_equal(exact.tilt(*arguments), free.tilt(*arguments))
    results = [
        gq.infer(build(part), gq.inference.ExpectationPropagation()) for part in (exact, free)
    ]
    np.testing.assert_array_equal(results[0].probabilities, results[1].probabilities)
    drawn = [gq.infer(build(part), n_samples=200, n_chains=8) for part in (exact, free)]
    np.testing.assert_array_equal(drawn[0].probabilities, drawn[1].probabilities)
    one_sided = gq.likelihoods.AtomicNoise(1, 0.8).log_levels(y)
    np.testing.assert_allclose(one_sided, [[0, np.log(0.8)], [np.log(0.2), -np.inf]])


KEPT = [CONFUSED, prior_of(ATOMIC, 0.7), prior_of(CONFUSED), WELLS]


@pytest.mark.parametrize("likelihood", KEPT, ids=lambda part: type(part).__name__)
def test_parts_are_written_and_read(likelihood):
    text = to_json(likelihood)
    assert to_json(from_json(text, gq.likelihoods.Likelihood)) == text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_files_keep_the_matrix_and_the_model_of_the_labels(tmp_path):
    for likelihood in KEPT:
        result = gq.infer(build(likelihood), SLICE, n_samples=20, n_chains=4, n_warmup=0, thin=1)
        result.save(tmp_path / "result.nc")
        again = gq.load(tmp_path / "result.nc")
        assert to_json(again.posterior.likelihood) == to_json(likelihood)
        np.testing.assert_array_equal(
            again.posterior.observed_labels, result.posterior.observed_labels
        )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
def test_a_classifier_takes_a_matrix_for_its_own_number_of_classes():
    rng = np.random.default_rng(0)
    features = np.concatenate([rng.normal(4 * k, 1.0, size=(20, 2)) for k in range(3)])
    y = np.full(60, -1)
    y[::7] = np.repeat(np.arange(3), 20)[::7]
    likelihood = gq.likelihoods.ConfusionMatrix(ERRORS)
    settings = {
        "model": gq.models.Fixed(gq.priors.Matern(), likelihood),
        "n_eigenpairs": 12,
        "inference": gq.inference.MCMC(SLICE, n_samples=100),
    }
    fitted = gq.GraphClassifier(**settings).fit(features, y)
    assert (fitted.predict(features) == np.repeat(np.arange(3), 20)).mean() > 0.9
    with pytest.raises(InvalidInput, match="is for 3 classes"):
        gq.GraphClassifier(**settings).fit(features, np.minimum(y, 1))


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: gq.likelihoods.ConfusionMatrix("a"), InvalidInput, "K × K matrix"),
        (lambda: gq.likelihoods.ConfusionMatrix(np.eye(3)), InvalidInput, "use NoiseFree"),
        (lambda: gq.likelihoods.ConfusionMatrix([[0.9, 0.1], [0.2, 0.8]]), InvalidInput, "AtomicN"),
        (lambda: gq.likelihoods.ConfusionMatrix(ERRORS * 1.1), InvalidInput, "in row 0"),
        (lambda: gq.likelihoods.ConfusionMatrix(ERRORS[::-1]), InvalidInput, "another class"),
        (lambda: gq.likelihoods.GinzburgLandau(n_classes=1), InvalidInput, "n_classes"),
        (
            lambda: gq.likelihoods.GinzburgLandau(n_classes=gq.DiscreteUniform(3, 5)),
            InvalidInput,
            "give an integer",
        ),
        (lambda: prior_of(WELLS), InvalidInput, "label_model"),
        (lambda: prior_of("probit"), InvalidInput, "label_model"),
        (
            lambda: prior_of(gq.likelihoods.Probit(gq.Uniform(0.1, 1.0))),
            InvalidInput,
            "fixed numbers",
        ),
        (lambda: gq.infer(build(WELLS), "map"), IncompatibleParts, "kinks"),
        (
            lambda: gq.infer(build(CONFUSED), "expectation-propagation"),
            IncompatibleParts,
            "sample",
        ),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_what_is_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()
