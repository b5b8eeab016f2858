"""The truncation certificate against closed forms, Monte Carlo, and really adding eigenpairs."""

import dataclasses
import time

import numpy as np
import pytest
from scipy.stats import norm

import graphuq as gq
from graphuq.errors import IncompatibleParts
from graphuq.results.label_checks import kept_leave_one_out
from graphuq.results.trust import second_fit
from graphuq.results.trust.gaussian_labels import label_means_of, largest_probabilities
from graphuq.results.trust.truncation import (
    _first_order,
    _tail_variance,
    mean_omitted_eigenvalue,
)

EP = gq.inference.ExpectationPropagation()


def cut(spectrum, n_eigenpairs, tail_eigenvalue=None):
    """Return the first eigenpairs of a spectrum."""
    return dataclasses.replace(
        spectrum,
        eigenvalues=spectrum.eigenvalues[:n_eigenpairs],
        eigenvectors=spectrum.eigenvectors[:, :n_eigenpairs],
        residuals=spectrum.residuals[:n_eigenpairs],
        tail_eigenvalue=tail_eigenvalue,
    )


def moons(laplacian="symmetric"):
    """Return all eigenpairs of two noisy moons of 200 nodes, labelled nodes and labels."""
    data = gq.datasets.two_moons(200, n_features=20, noise_std=0.25)
    rng = np.random.default_rng(0)
    nodes = np.concatenate(
        [rng.choice(np.flatnonzero(data.classes == k), 5, replace=False) for k in (0, 1)]
    )
    graph = gq.graphs.knn_graph(data.features, 10)
    spectrum = gq.laplacian_spectrum(graph, laplacian, n_eigenpairs=200)
    return spectrum, nodes, data.classes[nodes]


def inferred(spectrum, prior, nodes, codes, n_classes=2, **options):
    """Return the result of expectation propagation."""
    if n_classes == 2:
        likelihood, labels = gq.likelihoods.Probit(), 2 * codes - 1
    else:
        likelihood, labels = gq.likelihoods.Softmax(n_classes=n_classes), codes
    posterior = gq.Posterior(spectrum, prior, likelihood, nodes, labels, **options)
    return gq.infer(posterior, EP)


@pytest.mark.parametrize("laplacian", ["symmetric", "unnormalized", "random-walk"])
def test_the_mean_eigenvalue_is_that_of_the_spectrum(laplacian):
    spectrum, _, _ = moons(laplacian)
    found = mean_omitted_eigenvalue(cut(spectrum, 30))
    assert found == pytest.approx(spectrum.eigenvalues[30:].mean(), rel=1e-6)


def test_the_tail_variance_has_the_scale_of_the_kept_variances():
    """For a Matérn prior it is ``s_ℓ² ((λ_ℓ + τ²)/(λ + τ²))^α``."""
    spectrum, nodes, codes = moons()
    prior = gq.priors.Matern(0.4, 3.0)
    result = inferred(cut(spectrum, 30), prior, nodes, codes)
    last, std = spectrum.eigenvalues[29], prior.spectral_std(cut(spectrum, 30)).modes
    expected = std[29] ** 2 * ((last + 0.16) / (1.1 + 0.16)) ** 3
    assert _tail_variance(result, 1.1) == pytest.approx(expected)
    assert _tail_variance(result, last) == pytest.approx(std[29] ** 2)


@pytest.mark.parametrize("n_eigenpairs", [20, 50, 100])
@pytest.mark.parametrize(
    "prior", [gq.priors.Matern(), gq.priors.Matern(1.0, 2.0), gq.priors.InverseLaplacian()]
)
def test_the_certificate_agrees_with_really_adding_eigenpairs(prior, n_eigenpairs):
    """It is the move to a tail, by the same method, and near that to all eigenpairs."""
    spectrum, nodes, codes = moons()
    result = inferred(cut(spectrum, n_eigenpairs), prior, nodes, codes)
    effect = gq.truncation_effect(result)
    assert effect.refitted
    eigenvalues = effect.mean_eigenvalue, effect.last_eigenvalue
    first = _first_order(result, effect.nodes, eigenvalues)
    for eigenvalue, by_formula, found in zip(
        eigenvalues, first, (effect.estimate, effect.bound), strict=True
    ):
        other = inferred(cut(spectrum, n_eigenpairs, eigenvalue), prior, nodes, codes)
        move = np.abs(gq.results.label_mean(other) - gq.results.label_mean(result))[effect.nodes]
        larger = max(move, by_formula, key=np.mean)
        assert found.mean() == pytest.approx(larger.mean(), abs=2e-3)
        np.testing.assert_allclose(found, larger, atol=4e-3)
    full = inferred(spectrum, prior, nodes, codes)
    move = np.abs(gq.results.label_mean(full) - gq.results.label_mean(result))[effect.nodes].mean()
    assert move / 1.6 - 0.02 < effect.estimate.mean() < 1.6 * move + 0.02
    assert first[0].mean() < 1.1 * move  # labels also become less informative
    check = result.trust.checks["truncation"]
    assert check.value == pytest.approx(effect.estimate.mean())
    assert check.ok == (effect.estimate.mean() <= 0.05)


def test_the_certificate_of_an_average_is_that_of_its_components():
    """Each component is fitted again by itself, and weighed by its evidence with the tail."""
    spectrum, nodes, codes = moons()
    short, link = cut(spectrum, 20), gq.likelihoods.Probit(1.0, random_labels=True)
    terms = [
        gq.models.Term(scale, gq.priors.Matern(tau, 2.0)) for scale, tau in ((2.0, 0.3), (1.0, 1.0))
    ]
    prior = gq.models.Mixture(terms, gq.Categorical([0.5, 0.5]))
    given = nodes, 2 * codes - 1
    result = gq.infer(gq.Posterior(short, prior, link, *given), EP)
    effect = gq.truncation_effect(result)
    share = np.bincount(result.answer.hyperparameters["component"].astype(int).ravel()) / 1000
    means, logs = [], []
    for eigenvalue in (None, effect.mean_eigenvalue):
        basis = cut(spectrum, 20, eigenvalue)
        each = [
            gq.infer(
                gq.Posterior(
                    basis,
                    term.prior,
                    gq.likelihoods.Probit(1 / term.scale, random_labels=True),
                    *given,
                ),
                EP,
            )
            for term in terms
        ]
        means.append([gq.results.label_mean(one)[effect.nodes] for one in each])
        logs.append([one.log_evidence for one in each])
    weights = share * np.exp(np.array(logs) - logs[0])
    weights /= weights.sum(axis=1, keepdims=True)
    before, after = np.einsum("fm,fmn->fn", weights, np.array(means))
    np.testing.assert_allclose(effect.estimate, np.abs(after - before), atol=2e-3)
    assert effect.estimate.mean() > 0.05


def correlated(n_eigenpairs):
    """Return the answer for rows whose classes a second graph shows, of whitened columns."""
    rng = np.random.default_rng(0)
    classes = np.arange(100) % 2
    X = rng.normal(size=(100, 2)) @ np.linalg.cholesky([[1, 0.97], [0.97, 1]]).T
    X += np.outer(2 * classes - 1, [0.6, -0.6])
    y = np.where(np.arange(100) < 16, classes, -1)
    settings = {"inference": "expectation-propagation", "n_eigenpairs": n_eigenpairs}
    return gq.GraphClassifier(**settings).fit(X, y).result_


def test_each_graph_of_an_average_has_its_own_eigenpairs():
    """The second graph has all of its 100 eigenpairs here, and nothing to add."""
    result = correlated(20)
    assert result.posterior.spectrum.has("whitened graph")
    effect = gq.truncation_effect(result)
    assert effect.refitted
    assert np.isfinite(effect.estimate).all()
    assert "All eigenpairs" in correlated("all").trust.checks["truncation"].sentence


def test_components_of_each_block_stand_for_it():
    """Functions have few components, each of large weight, which must not hide a graph's cut."""
    rng = np.random.default_rng(0)
    classes = np.arange(300) % 2
    X = rng.normal(size=(300, 6))
    X[:, :2] += np.outer(classes, [1.2, 0.8])
    y = np.where(np.arange(300) < 12, classes, -1)
    settings = {"inference": "expectation-propagation", "n_eigenpairs": 15}
    result = gq.GraphClassifier(**settings).fit(X, y).result_
    blocks = np.array(result.posterior.prior.blocks)
    number = result.answer.hyperparameters["component"].astype(int).ravel()
    on_graph = np.isin(blocks[number], ["eigenpairs", "whitened graph"]).mean()
    assert 0.05 < on_graph < 0.95
    assert gq.truncation_effect(result).bound.mean() > 0.01


def test_where_nothing_can_be_fitted_again_the_first_order_is_said(monkeypatch):
    spectrum, nodes, codes = moons()
    result = inferred(cut(spectrum, 20), gq.priors.Matern(1.0, 2.0), nodes, codes)
    again = gq.truncation_effect(result)
    monkeypatch.setattr(second_fit, "MAX_COORDINATES", 9)  # there are ten labels
    first = gq.truncation_effect(result)
    assert again.refitted
    assert not first.refitted
    assert (first.estimate <= first.bound + 1e-12).all()
    assert first.estimate.mean() < again.estimate.mean()
    assert "to first order" in result.trust.checks["truncation"].sentence


def test_the_certificate_of_three_classes():
    """The tolerance is that of two classes."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(3), 60)
    features = rng.normal(size=(180, 3)) + 3 * np.eye(3)[classes]
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(features, 10), n_eigenpairs=180)
    nodes = np.concatenate(
        [rng.choice(np.flatnonzero(classes == k), 4, replace=False) for k in range(3)]
    )
    prior = gq.priors.Matern(0.5, 2.0)
    result = inferred(cut(spectrum, 20), prior, nodes, classes[nodes], 3)
    full = inferred(spectrum, prior, nodes, classes[nodes], 3)
    effect = gq.truncation_effect(result)
    move = (
        np.abs(gq.results.label_mean(full) - gq.results.label_mean(result))
        .max(axis=1)[effect.nodes]
        .mean()
    )
    assert move > 0.05
    assert move / 1.6 - 0.02 < effect.estimate.mean() < 1.6 * move + 0.02


def test_the_probability_of_the_largest_equals_monte_carlo():
    """The bound is five Monte-Carlo errors."""
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=(6, 4)), rng.uniform(0.3, 3.0, (6, 4))
    found = largest_probabilities(mean, std)
    draws = mean + std * rng.normal(size=(100_000, 6, 4))
    shares = (draws.argmax(axis=2)[:, :, None] == np.arange(4)).mean(axis=0)
    assert np.abs(found - shares).max() < 5 * 0.5 / np.sqrt(100_000)
    # Two Gaussians of equal variance v: Φ((m_1 − m_2) / √(2 v)); with v = 0, the larger mean.
    two = largest_probabilities(np.array([[0.3, -0.5]]), np.array([[0.7, 0.7]]))
    assert two[0, 0] == pytest.approx(norm.cdf(0.8 / (0.7 * np.sqrt(2))), abs=1e-3)
    certain = largest_probabilities(np.array([[0.3, -0.5]]), np.zeros((1, 2)))
    np.testing.assert_allclose(certain, [[1.0, 0.0]])


def test_label_means_with_noise_of_the_label_equal_monte_carlo():
    """A label is random given u: the noise of `Probit(random_labels=True)` is drawn too."""
    rng, link = np.random.default_rng(0), gq.likelihoods.Probit(1.0, 4, random_labels=True).link
    mean, std = rng.normal(size=(6, 4)), rng.uniform(0.1, 2.0, (6, 4))
    found = label_means_of(mean, std, link)
    scale = np.sqrt(std**2 + link[1][0] ** 2)
    draws = mean + scale * rng.normal(size=(100_000, 6, 4))
    shares = (draws.argmax(axis=2)[:, :, None] == np.arange(4)).mean(axis=0)
    assert np.abs(found - shares).max() < 5 * 0.5 / np.sqrt(100_000)
    assert np.abs(found - label_means_of(mean, std, None)).max() > 0.05


def test_nothing_is_left_out():
    spectrum, nodes, codes = moons()
    priors = gq.priors
    cases = [
        (spectrum, priors.Matern(), "All eigenpairs"),
        (cut(spectrum, 30, 1.0), priors.Matern(), "has a tail"),
        (cut(spectrum, 30), priors.Matern(truncation=20), "chooses how many"),
    ]
    for basis, prior, words in cases:
        result = inferred(basis, prior, nodes, codes)
        assert (gq.truncation_effect(result).estimate == 0).all()
        check = result.trust.checks["truncation"]
        assert check.ok
        assert words in check.sentence
    graph = gq.graphs.knn_graph(np.random.default_rng(0).normal(size=(200, 2)), 10)
    exact = inferred(gq.Laplacian(graph), priors.RegularizedLaplacian(), nodes, codes)
    assert "exact" in exact.trust.checks["truncation"].sentence


def test_a_spectrum_that_is_cut_off_too_early_is_not_green():
    spectrum, nodes, codes = moons()
    short = inferred(cut(spectrum, 20), gq.priors.Matern(1.0, 2.0), nodes, codes)
    assert short.trust.checks["truncation"].level == "red"
    assert "n_eigenpairs" in short.trust.checks["truncation"].sentence


def learnt(result, prior, **values):
    """Return a result with a learnt prior, whose draws have these hyperparameters."""
    posterior = dataclasses.replace(result.posterior, prior=prior)
    shape = 2, 3
    draws = gq.inference.draws.Draws(
        white=np.zeros((*shape, 1)),
        log_likelihood=np.zeros(shape),
        acceptance=np.ones(shape),
        step_size=1.0,
        n_warmup=0,
        thin=1,
        hyperparameters={n: np.asarray(v).reshape(2, 3) for n, v in values.items()},
    )
    return dataclasses.replace(result, posterior=posterior, answer=draws)


def test_learnt_hyperparameters_give_the_mean_over_draws():
    spectrum, nodes, codes = moons()
    result = inferred(cut(spectrum, 30), gq.priors.Matern(), nodes, codes)
    taus = np.linspace(0.2, 0.7, 6)
    found = learnt(result, gq.priors.Matern(tau=gq.LogUniform(0.02, 3)), tau=taus)
    each = [
        _tail_variance(inferred(cut(spectrum, 30), gq.priors.Matern(t), nodes, codes), 1.0)
        for t in taus.tolist()
    ]
    assert _tail_variance(found, 1.0) == pytest.approx(np.mean(each))
    assert gq.truncation_effect(found).estimate.shape == (190,)
    missing = learnt(result, gq.priors.Matern(tau=gq.LogUniform(0.02, 3)))
    with pytest.raises(IncompatibleParts, match="tau"):
        gq.truncation_effect(missing)


def test_hyperparameters_of_each_class_give_one_variance_each():
    spectrum, nodes, codes = moons()
    codes = np.append(codes[:-1], 2)
    short, tau = cut(spectrum, 30), gq.LogUniform(0.02, 3)
    result = inferred(short, gq.priors.Matern(), nodes, codes, 3)
    found = learnt(result, gq.priors.Matern(tau=tau), tau=np.full(6, 0.3))
    draws = found.answer
    taus = np.array([0.2, 0.3, 0.5])
    draws.hyperparameters["tau"] = np.broadcast_to(taus, (2, 3, 3))
    found = dataclasses.replace(
        found, posterior=dataclasses.replace(found.posterior, per_class=True)
    )
    each = [
        _tail_variance(inferred(short, gq.priors.Matern(t), nodes, codes, 3), 1.0)
        for t in taus.tolist()
    ]
    np.testing.assert_allclose(_tail_variance(found, 1.0), each)
    effect = gq.truncation_effect(found)
    assert effect.bound.shape == (190,)
    assert not effect.refitted  # a second fit would need one prior for all classes


def test_checks_of_many_nodes_are_quick():
    """70,000 nodes and ten classes: seconds of all checks, without the leave-one-out draws."""
    rng, n = np.random.default_rng(0), 70_000
    data = gq.datasets.load_digits()
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(data.features), n_eigenpairs=30)
    nodes = np.concatenate([np.flatnonzero(data.classes == k)[:5] for k in range(10)])
    result = inferred(spectrum, gq.priors.Matern(), nodes, data.classes[nodes], 10)
    rows = np.concatenate([np.arange(spectrum.n_nodes), rng.integers(0, spectrum.n_nodes, n)])[:n]
    large = dataclasses.replace(
        spectrum,
        eigenvectors=spectrum.eigenvectors[rows] * np.sqrt(spectrum.n_nodes / n),
        **{name: getattr(spectrum, name)[rows] for name in ("components", "degrees", "node_scale")},
    )
    names = ("probabilities", "mcse", "latent_mean", "latent_std", "has_evidence")
    grown = dataclasses.replace(
        result,
        posterior=dataclasses.replace(result.posterior, spectrum=large),
        **{name: getattr(result, name)[rows] for name in names},
    )
    vars(grown)["_kept_leave_one_out"] = kept_leave_one_out(result)
    began = time.process_time()
    assert set(grown.trust.checks) == set(result.trust.checks)
    assert time.process_time() - began < 3.0


@pytest.mark.slow
def test_fifty_pairs_of_mnist_are_too_few(data_folder):
    """50 labels a class: label variance .17 with 50 pairs and .27 with 300."""
    data = gq.datasets.load_mnist((4, 9), n_components=50, folder=data_folder)
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(data.features, 10), n_eigenpairs=300)
    rng, codes = np.random.default_rng(0), (data.classes == 9).astype(int)
    nodes = np.concatenate(
        [rng.choice(np.flatnonzero(codes == k), 50, replace=False) for k in (0, 1)]
    )
    prior = gq.priors.Matern()
    short = inferred(cut(spectrum, 50), prior, nodes, codes[nodes])
    longer = inferred(spectrum, prior, nodes, codes[nodes])
    assert gq.results.mean_label_variance(longer) > 1.4 * gq.results.mean_label_variance(short)
    check = short.trust.checks["truncation"]
    assert not check.ok
    effect = gq.truncation_effect(short)
    move = np.abs(gq.results.label_mean(longer) - gq.results.label_mean(short))[effect.nodes].mean()
    assert move / 2.2 < effect.estimate.mean() < 2.2 * move
    assert check.value == pytest.approx(effect.estimate.mean(), abs=0.01)


def test_moves_of_an_average_are_those_of_the_probabilities_that_are_reported():
    """An average is reported to a power, and with class shares that unlabelled nodes tell."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], [30, 60, 110])
    along = rng.uniform(0.5, 3.0, 200)  # three arms of a spiral
    angle = 2 * along + 2 * np.pi * codes / 3
    rows = along[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    rows += 0.3 * rng.normal(size=(200, 2))
    y = np.full(200, -1)
    for k in range(3):
        y[np.flatnonzero(codes == k)[:4]] = k
    classifier = gq.GraphClassifier(n_eigenpairs=15, inference="expectation-propagation")
    result = classifier.fit(rows, y).result_
    found = gq.truncation_effect(result)
    assert found.refitted
    assert result.posterior.sharpness > 1
    tails = second_fit.label_means_of_tails(result, found.nodes, (mean_omitted_eigenvalue,))
    shares = gq.results.estimated_shares(result)
    powers = [means**result.posterior.sharpness * shares for means in tails]
    before, after = (p / p.sum(axis=1, keepdims=True) for p in powers)
    moved = np.abs(after - before).max(axis=1)
    assert moved.max() > 0.005
    np.testing.assert_allclose(found.estimate, moved, atol=1e-9)
