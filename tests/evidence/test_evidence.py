"""Hyperparameters by evidence, against orthant probabilities and finite differences."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from reference import orthant
from scipy import sparse
from scipy.optimize import minimize_scalar

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import DisconnectedGraphWarning, InvalidInput
from graphuq.evidence.choices import with_values
from graphuq.evidence.hyperpriors import HYPERPRIORS, hyperpriors_of
from graphuq.evidence.maximize import _Search
from graphuq.utils.arrays import array_namespace

WEIGHTS = random_adjacency(24, seed=3)
LABELLED, LABELS = [0, 3, 7, 12, 15, 18], [1, -1, 1, 1, 1, -1]
FORMS = [
    (12, False),
    (4, 0.9),
    (12, 0.9),
    (4, False),
]  # (ℓ, λ̄) of J or ℓ dimensions


def build(likelihood, n_eigenpairs=12, tail=False, laplacian="symmetric", **matern):
    graph = gq.graphs.from_adjacency(WEIGHTS)
    spectrum = gq.laplacian_spectrum(graph, laplacian, n_eigenpairs, tail_eigenvalue=tail)
    return gq.Posterior(spectrum, gq.priors.Matern(**matern), likelihood, LABELLED, LABELS)


def exact_log_evidence(posterior):
    """Return the log evidence of probit, from an orthant probability of u_L + γε."""
    spectrum, std = posterior.spectrum, posterior.std
    q, scale = spectrum.eigenvectors, spectrum.node_scale
    covariance = (q * std.modes**2) @ q.T + std.tail**2 * (np.eye(24) - q @ q.T)
    covariance = scale[:, None] * covariance * scale
    block = covariance[np.ix_(LABELLED, LABELLED)]
    noise = posterior.likelihood.noise_std**2 * np.eye(len(LABELS))
    return float(np.log(orthant(block + noise, LABELS)))


@pytest.mark.parametrize("laplacian", ["symmetric", "random-walk"])
@pytest.mark.parametrize(
    ("likelihood", "n_eigenpairs", "tail"),
    [(gq.likelihoods.Probit(0.3), *form) for form in FORMS]
    # A level set that three modes cannot fit has no fixed point.
    + [(gq.likelihoods.LevelSet(0.8), *form) for form in FORMS[:3]],
)
def test_the_gradient_is_that_of_the_evidence(likelihood, n_eigenpairs, tail, laplacian):
    posterior = build(likelihood, n_eigenpairs, tail, laplacian)
    search = _Search(posterior, ["tau", "alpha", "noise_std"], hyperprior=True)
    at = np.log([0.4, 2.5, 0.6])
    value, gradient = search.loss(at)
    fitted = gq.infer(
        with_values(posterior, search.values(at)),
        gq.inference.ExpectationPropagation(),
    )
    assert value == pytest.approx(search.penalty(at) - fitted.log_evidence, abs=1e-6)
    step = 1e-4
    for k in range(3):
        shift = step * np.eye(3)[k]
        slope = (search.loss(at + shift)[0] - search.loss(at - shift)[0]) / (2 * step)
        assert gradient[k] == pytest.approx(slope, abs=2e-4)


@pytest.mark.parametrize(
    ("prior", "name", "start"),
    [(gq.priors.Diffusion, "time", 1.0), (gq.priors.RandomWalk, "n_steps", 2.0)],
)
@pytest.mark.parametrize("tail", [False, 0.9])
def test_kernels_learn_their_hyperparameter(prior, name, start, tail):
    """The evidence of t and p has the right gradient, and its maximum is the exact one's."""
    posterior = build(gq.likelihoods.Probit(0.3), tail=tail)
    posterior = dataclasses.replace(posterior, prior=prior(start))
    search = _Search(posterior, [name, "noise_std"], hyperprior=True)
    at, step = np.log([2 * start, 0.4]), 1e-4
    gradient = search.loss(at)[1]
    for k in range(2):
        shift = step * np.eye(2)[k]
        slope = (search.loss(at + shift)[0] - search.loss(at - shift)[0]) / (2 * step)
        assert gradient[k] == pytest.approx(slope, abs=2e-4)
    found = gq.maximize_evidence(posterior, [name], hyperprior=False)

    def loss(log_value):
        moved = with_values(posterior, {name: float(np.exp(log_value))})
        return -exact_log_evidence(moved)

    truth = minimize_scalar(loss, bounds=(np.log(0.01), np.log(1e3)), method="bounded")
    assert exact_log_evidence(found.posterior) == pytest.approx(-truth.fun, abs=0.005)


@pytest.mark.parametrize(("n_eigenpairs", "tail"), FORMS[:3])
def test_the_maximum_is_that_of_the_exact_evidence(n_eigenpairs, tail):
    """The maximum in γ agrees with a scalar search over orthant probabilities."""
    posterior = build(gq.likelihoods.Probit(0.1), n_eigenpairs, tail, tau=0.8, alpha=3.0)
    found = gq.maximize_evidence(posterior, ["noise_std"], hyperprior=False)

    def loss(log_noise):
        moved = with_values(posterior, {"noise_std": float(np.exp(log_noise))})
        return -exact_log_evidence(moved)

    truth = minimize_scalar(loss, bounds=(np.log(0.01), np.log(10)), method="bounded")
    assert found.log_evidence == pytest.approx(-truth.fun, abs=0.02)
    assert exact_log_evidence(found.posterior) == pytest.approx(-truth.fun, abs=0.005)


def test_all_hyperparameters_together_improve_the_evidence():
    posterior = build(gq.likelihoods.Probit(0.1))
    found = gq.maximize_evidence(posterior, hyperprior=False)
    assert set(found.values) == {"tau", "alpha", "noise_std", "truncation", "include_constant"}
    assert exact_log_evidence(found.posterior) > exact_log_evidence(posterior) + 0.1
    assert found.posterior.prior.tau == found.values["tau"]
    assert found.posterior.prior.truncation == found.values["truncation"]
    assert found.posterior.likelihood.noise_std == found.values["noise_std"]


def test_hyperpriors_shrink_to_their_medians():
    posterior = build(gq.likelihoods.Probit(0.1))
    free = gq.maximize_evidence(posterior, ["tau", "alpha"], hyperprior=False)
    held = gq.maximize_evidence(posterior, ["tau", "alpha"])
    assert held.log_evidence <= free.log_evidence + 1e-6

    def distance(values):
        return sum(abs(np.log(values[n] / HYPERPRIORS[n].median)) for n in ("tau", "alpha"))

    assert distance(held.values) < distance(free.values)


def test_unknown_names_are_refused():
    posterior = build(gq.likelihoods.NoiseFree())
    with pytest.raises(InvalidInput, match="'noise_std' is not a hyperparameter"):
        gq.maximize_evidence(posterior, ["noise_std"])
    assert set(gq.maximize_evidence(posterior, ["tau"]).values) == {"tau"}
    with pytest.raises(InvalidInput, match="'noise_std' is not a hyperparameter"):
        gq.maximize_evidence(build(gq.likelihoods.LevelSet(0.5)), ["noise_std"])
    with_tail = build(gq.likelihoods.Probit(), tail=True)
    with pytest.raises(InvalidInput, match="use some of tau, alpha, noise_std"):
        gq.maximize_evidence(with_tail, ["truncation"])


class Rational(gq.priors.Prior):
    """A prior of a user, with a number of its own and a word."""

    tau: float = 0.3
    cut: Any = 0.2
    form: str = "sum"

    def log_variances(self, eigenvalues):
        xp = array_namespace(eigenvalues)
        return -xp.log(eigenvalues + self.tau**2) - xp.log(eigenvalues + self.cut)


@pytest.mark.slow
def test_a_number_without_hyperprior_is_named_with_the_remedy():
    posterior = dataclasses.replace(build(gq.likelihoods.Probit()), prior=Rational())
    words = r"'cut' has no hyperprior; learn it with cut=gq\.LogUniform\(…\), or use some of tau, "
    with pytest.raises(InvalidInput, match=words):
        gq.maximize_evidence(posterior, ["tau", "cut"])
    learnt = dataclasses.replace(posterior, prior=Rational(cut=gq.LogUniform(0.1, 1.0)))
    assert "cut" in gq.infer(learnt, n_samples=200, n_warmup=200).hyperparameters
    with pytest.raises(InvalidInput, match="'form' is not a hyperparameter"):
        gq.maximize_evidence(posterior, ["form"])
    softmax = dataclasses.replace(
        posterior, likelihood=gq.likelihoods.Softmax(n_classes=2), labels=[0, 1] * 3
    )
    with pytest.raises(InvalidInput, match="'n_classes' is not a hyperparameter"):
        gq.maximize_evidence(softmax, ["n_classes"])


def test_the_median_of_tau_is_bounded_by_the_spectrum():
    """The median is the usual one on a small graph, and the eighth eigenvalue on a long path."""
    path = sparse.diags_array([np.ones(399), np.ones(399)], offsets=[-1, 1]).tocsr()
    small, large = (
        gq.laplacian_spectrum(gq.graphs.from_adjacency(weights), n_eigenpairs=12)
        for weights in (random_adjacency(24), path)
    )
    assert hyperpriors_of(small)["tau"].median == HYPERPRIORS["tau"].median
    expected = np.sqrt(1 - np.cos(np.pi * 8 / 399))  # eigenvalues of a path are 1 − cos(πk/(N − 1))
    assert hyperpriors_of(large)["tau"].median == pytest.approx(expected, rel=1e-6)
    for name in ("time", "n_steps"):  # in units of 1/λ
        assert hyperpriors_of(small)[name] == HYPERPRIORS[name]
        longer = hyperpriors_of(large)[name].median / HYPERPRIORS[name].median
        assert longer == pytest.approx((HYPERPRIORS["tau"].median / expected) ** 2, rel=1e-6)


@pytest.mark.parametrize("likelihood", [gq.likelihoods.Probit(), gq.likelihoods.Softmax(2)])
@pytest.mark.parametrize("share", [pytest.param(0.5, marks=pytest.mark.slow), 0.06])
def test_unequal_classes_choose_the_constant(share, likelihood):
    """A field of mean zero, without the constant, assigns half of all nodes to a rare class."""
    rng = np.random.default_rng(0)
    rare = np.arange(600) < share * 600
    points = rng.normal(size=(600, 2)) + np.where(rare, 2.5, 0.0)[:, None]
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(points, 10), n_eigenpairs=60)
    labelled = rng.choice(600, 80, replace=False)
    codes = rare.astype(int) if likelihood.is_multiclass else np.where(rare, 1, -1)
    prior = gq.priors.Matern(tau=0.25, alpha=4.0)
    posterior = gq.Posterior(spectrum, prior, likelihood, labelled, codes[labelled])
    names = ["tau", "alpha", "noise_std"]
    scores = []
    for chosen in (names, [*names, "include_constant"]):
        found = gq.maximize_evidence(posterior, chosen)
        mean = gq.results.label_mean(
            gq.infer(found.posterior, gq.inference.ExpectationPropagation())
        )
        scores.append(gq.scores.log_score(mean, codes, labelled))
    if share == 0.5 and not likelihood.is_multiclass:
        assert not found.values["include_constant"]
        assert scores[1] == pytest.approx(scores[0], abs=1e-6)
    elif share < 0.5:
        assert found.values["include_constant"]
        assert found.posterior.prior.include_constant
        assert scores[1] < 0.6 * scores[0]
    else:  # each class is compared with the rest
        assert scores[1] < scores[0] + 0.02


def test_the_constant_is_kept_on_a_disconnected_graph():
    with pytest.warns(DisconnectedGraphWarning):
        graph = gq.graphs.from_adjacency(sparse.block_diag([sparse.csr_array(WEIGHTS)] * 2).tocsr())
    prior = gq.priors.Matern(tau=0.25, alpha=4.0)
    posterior = gq.Posterior(
        gq.laplacian_spectrum(graph), prior, gq.likelihoods.Probit(), LABELLED, LABELS
    )
    found = gq.maximize_evidence(posterior, ["tau", "include_constant"])
    assert set(found.values) == {"tau"}
    assert found.posterior.prior.include_constant is None


def test_evidence_of_covariance_columns():
    """Covariance columns and all eigenpairs are the same prior, and have the same maximum."""
    features = np.random.default_rng(0).normal(size=(40, 2))
    graph = gq.graphs.knn_graph(features, n_neighbors=6)
    nodes, labels = np.arange(8), np.where(features[:8, 0] > 0, 1, -1)
    prior, likelihood = gq.priors.RegularizedLaplacian(0.5, 2.0), gq.likelihoods.Probit(0.3)
    found = [
        gq.maximize_evidence(gq.Posterior(basis, prior, likelihood, nodes, labels))
        for basis in (gq.Laplacian(graph), gq.laplacian_spectrum(graph, n_eigenpairs=40))
    ]
    assert found[0].values == pytest.approx(found[1].values, rel=1e-3)
    assert found[0].log_evidence == pytest.approx(found[1].log_evidence, abs=1e-5)


def test_a_value_that_the_user_sets_is_no_longer_chosen_by_the_evidence():
    graph = gq.graphs.knn_graph(np.arange(30.0)[:, None], n_neighbors=4)
    chosen = gq.maximize_evidence(
        gq.Posterior(
            gq.laplacian_spectrum(graph, n_eigenpairs=12),
            gq.priors.Matern(),
            gq.likelihoods.Probit(),
            [0, 5, 20, 29],
            [-1, -1, 1, 1],
        ),
        ["tau", "noise_std"],
    )
    posterior = chosen.posterior
    assert posterior.chosen_by_evidence == chosen.values
    assert posterior.relabelled([3], [-1]).chosen_by_evidence == chosen.values
    own = dataclasses.replace(posterior, prior=gq.priors.Matern(tau=0.7))
    assert own.chosen_by_evidence == {"noise_std": chosen.values["noise_std"]}
    learnt = dataclasses.replace(posterior, prior=gq.priors.Matern(tau=gq.LogUniform(0.02, 3)))
    assert list(learnt.chosen_by_evidence) == ["noise_std"]
    result = gq.infer(own, "expectation-propagation")
    assert result.hyperparameters == {"noise_std": chosen.values["noise_std"]}


class Sparse(gq.priors.RegularizedLaplacian):
    """A prior of a user that is solved exactly and has further hyperparameters."""

    tau: float = 0.3
    truncation: int | None = None


def test_without_eigenpairs_only_the_likelihood_has_choices():
    laplacian = gq.Laplacian(gq.graphs.knn_graph(np.arange(30.0)[:, None], n_neighbors=4))
    posterior = gq.Posterior(
        laplacian, Sparse(), gq.likelihoods.Probit(), [0, 5, 20, 29], [-1, -1, 1, 1]
    )
    assert list(gq.maximize_evidence(posterior).values) == ["noise_std"]
