"""Leave-one-out probabilities against refits without the label; prediction sets."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.stats import norm

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput, NotConvergedWarning
from graphuq.inference.collapsed_gibbs import noisy_given
from graphuq.results import leaving_out
from graphuq.results.class_sets import conformal_sets, conformal_threshold, posterior_sets
from graphuq.results.label_checks import kept_leave_one_out
from graphuq.results.leaving_out import class_log_probs, codes_of_classes, given_classes

EP = gq.inference.ExpectationPropagation()
LIKELIHOODS = gq.likelihoods


def small_problem(likelihood, n_labels=9, n_eigenpairs=8, wrong=True, seed=0):
    """Return a posterior on 60 points of the plane, whose first label is wrong."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(60, 2))
    n_classes = likelihood.n_fields if likelihood.is_multiclass else 2
    angle = (np.arctan2(features[:, 1], features[:, 0]) + np.pi) / (2 * np.pi + 1e-9)
    classes = (angle * n_classes).astype(int)
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(features, 6), n_eigenpairs=n_eigenpairs)
    labelled = rng.choice(60, n_labels, replace=False)
    codes = classes[labelled]
    if wrong:
        codes[0] = (codes[0] + 1) % n_classes
    labels = codes if likelihood.is_multiclass else 2 * codes - 1
    prior = gq.priors.Matern(tau=0.5, alpha=2.0)
    return gq.Posterior(spectrum, prior, likelihood, labelled, labels)


def without(posterior, j):
    """Return the posterior without one label."""
    keep = np.arange(len(posterior.labels)) != j
    return dataclasses.replace(
        posterior, labelled=posterior.labelled[keep], labels=posterior.labels[keep]
    )


def refitted(posterior, n_labels=None, **options):
    """Return the probabilities of labels and classes, each from a fit without the label."""
    of_label, of_class = [], []
    for j, node in enumerate(posterior.labelled[:n_labels]):
        result = gq.infer(without(posterior, j), rng=j, **options)
        u = gq.results.latent_draws(result, [node])
        likelihood = result.posterior.likelihood
        values = {n: v.ravel() for n, v in result.answer.hyperparameters.items()}
        logs = class_log_probs(likelihood, u, codes_of_classes(posterior), values)
        of_label.append(np.exp(logs).mean(axis=(1, 2)))
        of_class.append(result.probabilities[node])
    of_label = np.array(of_label)
    return of_label / of_label.sum(axis=1, keepdims=True), np.array(of_class)


def test_binary_cavities_equal_refits():
    """The stated tolerance of expectation propagation is 0.02 for labels and 0.03 for classes."""
    posterior = small_problem(LIKELIHOODS.Probit(0.5))
    result = gq.infer(posterior, EP)
    refits = [gq.infer(without(posterior, j), EP) for j in range(9)]
    nodes = posterior.labelled
    mean = np.array([r.latent_mean[n] for r, n in zip(refits, nodes, strict=True)])
    std = np.array([r.latent_std[n] for r, n in zip(refits, nodes, strict=True)])
    plus = norm.cdf(mean / np.sqrt(std**2 + 0.25))
    found = gq.leave_one_out(result).of_label
    np.testing.assert_allclose(found[:, 1], plus, atol=0.02)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    without_noise = gq.leave_one_out(result).of_class
    np.testing.assert_allclose(without_noise[:, 1], norm.cdf(mean / std), atol=0.03)


@pytest.mark.slow
def test_binary_cavities_of_laplace_are_near_refits():
    """The site at the mode of all labels is not quite that of a fit without one of them."""
    posterior = small_problem(LIKELIHOODS.Logistic(1.0))
    laplace = gq.inference.Laplace()
    found = gq.leave_one_out(gq.infer(posterior, laplace)).of_label
    for j, node in enumerate(posterior.labelled):
        expected = gq.results.soft_label_mean(gq.infer(without(posterior, j), laplace))[node]
        assert abs(found[j, 1] - expected) < 0.02


def test_gaussian_noise_is_exact():
    """The posterior is Gaussian, so that the cavity is the posterior without the label."""
    posterior = small_problem(LIKELIHOODS.GaussianNoise(0.4))
    result = gq.infer(posterior, EP)
    for j, node in enumerate(posterior.labelled):
        refit = gq.infer(without(posterior, j), EP)
        spread = np.hypot(refit.latent_std[node], 0.4)
        density = norm.pdf([-1, 1], refit.latent_mean[node], spread)
        np.testing.assert_allclose(
            gq.leave_one_out(result).of_label[j], density / density.sum(), rtol=1e-6
        )


@pytest.mark.parametrize(
    "likelihood",
    [
        pytest.param(LIKELIHOODS.Logistic(2.0), marks=pytest.mark.slow),
        pytest.param(LIKELIHOODS.Softmax(0.7, 3), marks=pytest.mark.slow),
        LIKELIHOODS.AtomicNoise(0.9, 0.8),
    ],
    ids=repr,
)
def test_reweighted_draws_equal_refits(likelihood):
    """Refits and weights have independent errors, below 0.02 each with 8,000 draws."""
    posterior = small_problem(likelihood)
    of_label, of_class = refitted(posterior, n_samples=2000, n_chains=4)
    result = gq.infer(posterior, n_samples=2000, n_chains=4, rng=99)
    shape = gq.suspect_labels(result)["pareto_shape"]
    assert shape.max() < 0.7 or not likelihood.is_multiclass
    np.testing.assert_allclose(gq.leave_one_out(result).of_label, of_label, atol=0.06)
    np.testing.assert_allclose(gq.leave_one_out(result).of_class, of_class, atol=0.06)
    assert np.abs(gq.leave_one_out(result).of_label - of_label).mean() < 0.02


@pytest.mark.slow
def test_weights_use_the_hyperparameters_of_each_draw():
    likelihood = LIKELIHOODS.Probit(gq.Uniform(0.5, 1.5))
    posterior = small_problem(likelihood, wrong=False)
    of_label, _ = refitted(posterior, 3, n_samples=2000, n_chains=4)
    result = gq.infer(posterior, n_samples=2000, n_chains=4, rng=99)
    np.testing.assert_allclose(gq.leave_one_out(result).of_label[:3], of_label, atol=0.05)


def test_classes_of_a_probit_are_found_all_at_once():
    """Interpolation in a table, beside the quadrature of the likelihood of one class."""
    u = np.random.default_rng(0).normal(size=(5, 40, 4))
    codes = np.arange(4.0)
    for noise_std in (0.05, 0.7):
        likelihood = LIKELIHOODS.Probit(noise_std, 4)
        expected = np.exp(class_log_probs(likelihood, u, codes, {})).transpose(1, 2, 0)
        found = leaving_out.label_shares(likelihood, u, codes)
        np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_integrated_weights_equal_refits_where_others_do_not(n_classes, monkeypatch):
    """With little noise a label decides its own u, and ``1/p(y | u)`` has heavy tails."""
    posterior = small_problem(LIKELIHOODS.Probit(0.3, n_classes))
    of_label, of_class = refitted(posterior, n_samples=1500, n_chains=4)
    result = gq.infer(posterior, n_samples=2000, n_chains=4, rng=99)
    ours = leaving_out.leave_each_out(result.answer, posterior)
    np.testing.assert_allclose(ours.of_label, of_label, atol=0.03)
    np.testing.assert_allclose(ours.of_class, of_class, atol=0.03)
    monkeypatch.setattr(leaving_out, "by_integrated_weights", lambda *_: None)
    monkeypatch.setattr(leaving_out, "_expectation_propagation", lambda *_: None)
    theirs = leaving_out.leave_each_out(result.answer, posterior)
    assert np.abs(theirs.of_label - of_label).max() > 2 * np.abs(ours.of_label - of_label).max()
    assert np.median(theirs.pareto_shape) > np.median(ours.pareto_shape) + 0.1


def test_noisy_values_given_a_field_are_those_that_agree_with_the_label():
    """Beside draws without regard to the label, of which those that agree are kept."""
    rng = np.random.default_rng(0)
    u = np.array([[0.0, 0.3, -0.2], [-0.6, 0.1, 0.2]])  # two labels of three classes
    own, n_draws = np.array([0, 0]), 4000
    fields = np.broadcast_to(u.T, (n_draws, 3, 2))
    found = noisy_given.noisy_given(rng, fields, own, 0.2)
    for label in range(2):
        values = u[label] + 0.2 * rng.normal(size=(2_000_000, 3))
        values = values[values.argmax(axis=1) == 0]
        assert len(values) > 500
        for k in range(3):
            assert stats.ks_2samp(found[:, k, label], values[:, k]).pvalue > 1e-3
    signs = noisy_given.noisy_given(rng, np.full((n_draws, 1, 1), 0.1), np.array([-1]), 0.2)
    assert stats.kstest(signs.ravel(), stats.truncnorm(-np.inf, -0.5, 0.1, 0.2).cdf).pvalue > 1e-3


def test_likelihood_on_all_nodes_loses_only_the_label():
    """What is left of its term is the Gaussian density of the label, without the well."""
    u = np.random.default_rng(0).normal(size=(3, 50))
    logs = class_log_probs(LIKELIHOODS.GinzburgLandau(0.3, 0.7), u, np.array([-1.0, 1.0]), {})
    density = norm.logpdf(np.array([-1, 1])[:, None, None], u, 0.7)
    np.testing.assert_allclose(logs[1] - logs[0], density[1] - density[0])
    np.testing.assert_allclose(np.ptp(logs - density), 0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [EP, pytest.param(gq.inference.Laplace(), marks=pytest.mark.slow)],
    ids=["EP", "Laplace"],
)
def test_multiclass_cavities_are_near_refits_and_find_the_wrong_label(method):
    """The stated tolerance is 0.05 at labels that agree with their neighbours."""
    posterior = small_problem(LIKELIHOODS.Softmax(0.7, 3))
    of_label, _ = refitted(posterior, n_samples=2000, n_chains=4)
    result = gq.infer(posterior, method)
    given = given_classes(posterior)
    rows = np.arange(9)
    found, true = gq.leave_one_out(result).of_label[rows, given], of_label[rows, given]
    assert np.corrcoef(found, true)[0, 1] > 0.9
    assert found.argmin() == true.argmin() == 0
    if method is EP:
        np.testing.assert_allclose(found[true > 0.8], true[true > 0.8], atol=0.05)


@pytest.mark.slow
def test_step_likelihoods_are_refused_from_draws_and_answered_from_cavities():
    posterior = small_problem(LIKELIHOODS.NoiseFree(), wrong=False)
    sampled = gq.infer(posterior, n_samples=500, n_chains=2)
    with pytest.raises(IncompatibleParts, match=r"ExpectationPropagation\(\)"):
        gq.leave_one_out(sampled)
    assert len(gq.suspect_labels(sampled, 5, likely_wrong=True)) == 0
    found = gq.leave_one_out(gq.infer(posterior, EP)).of_label
    refits = [gq.infer(without(posterior, j), EP) for j in range(9)]
    plus = [r.probabilities[n, 1] for r, n in zip(refits, posterior.labelled, strict=True)]
    np.testing.assert_allclose(found[:, 1], plus, atol=0.03)
    multiclass = small_problem(LIKELIHOODS.LevelSet(0.1, 3), wrong=False)
    with pytest.raises(IncompatibleParts, match="Softmax"):
        gq.leave_one_out(gq.infer(multiclass, n_samples=500, n_chains=2))
    point = gq.infer(small_problem(LIKELIHOODS.Probit(0.5)), gq.inference.MAP())
    with pytest.raises(IncompatibleParts, match="point"):
        gq.suspect_labels(point)


def test_suspect_labels_are_listed_by_probability():
    posterior = small_problem(LIKELIHOODS.Softmax(0.5, 3), n_labels=15)
    result = gq.results.with_classes(gq.infer(posterior, EP), ["a", "b", "c"])
    table = gq.suspect_labels(result)
    assert table.columns.tolist() == [
        "node",
        "given",
        "probability",
        "other",
        "other_probability",
        "pareto_shape",
    ]
    assert table["probability"].is_monotonic_increasing
    assert table["node"][0] == posterior.labelled[0]
    assert table["given"][0] == "abc"[int(posterior.labels[0])]
    assert (table["given"] != table["other"]).all()
    assert len(gq.suspect_labels(result, 3)) == 3


def test_labels_that_are_alone_in_their_class_are_not_reported():
    """Given the others, a class without any other label is always improbable."""
    posterior = small_problem(LIKELIHOODS.Softmax(0.1, 3), n_labels=12, wrong=False)
    labels = posterior.labels.copy()
    labels[labels == 2] = 1
    labels[0] = 2
    result = gq.infer(dataclasses.replace(posterior, labels=labels), EP)
    wrong = gq.suspect_labels(result, likely_wrong=True)
    assert posterior.labelled[0] not in wrong["node"].to_numpy()


def test_unreliable_weights_are_announced(monkeypatch):
    posterior = small_problem(LIKELIHOODS.Softmax(0.5, 3))
    result = gq.infer(posterior, n_samples=1000, n_chains=4)
    poor = kept_leave_one_out(result)._replace(pareto_shape=np.full(9, 0.9))
    monkeypatch.setitem(vars(result), "_kept_leave_one_out", poor)
    with pytest.warns(NotConvergedWarning, match="9 of 9 labels"):
        gq.leave_one_out(result)
    gq.suspect_labels(result, 5, likely_wrong=True)  # without a warning


def test_cavities_of_a_stored_result(tmp_path):
    result = gq.infer(small_problem(LIKELIHOODS.Softmax(0.5, 3)), EP)
    result.save(tmp_path / "r.nc")
    again = gq.load(tmp_path / "r.nc")
    np.testing.assert_allclose(
        gq.leave_one_out(again).of_label, gq.leave_one_out(result).of_label, atol=1e-6
    )


def fewest_classes(probabilities, coverage):
    """Return the least number of classes, over all rows, of sets that are not empty."""
    n_rows, n_classes = probabilities.shape
    masks = np.array(list(itertools.product([False, True], repeat=n_classes)))[1:]
    best = np.inf
    for chosen in itertools.product(masks, repeat=n_rows):
        sets = np.array(chosen)
        if (probabilities * sets).sum() >= coverage * n_rows - 1e-9:
            best = min(best, sets.sum())
    return best


def test_posterior_sets_are_the_smallest_that_hold_the_share():
    """All ways to choose a set for each of three rows are tried."""
    rng = np.random.default_rng(0)
    for coverage in (0.5, 0.8, 0.9, 0.99):
        for _ in range(5):
            probabilities = rng.dirichlet(np.full(4, 0.5), size=3)
            found = posterior_sets(probabilities, coverage)
            assert (probabilities * found).sum() >= coverage * 3 - 1e-9
            assert found.sum() == fewest_classes(probabilities, coverage)
    with pytest.raises(InvalidInput, match="coverage"):
        posterior_sets(probabilities, 1.0)


def test_posterior_sets_hold_the_share_that_was_asked_for():
    """Classes are drawn from the probabilities; the smallest set of each row held 0.98 of them."""
    rng, n = np.random.default_rng(1), 20_000
    first = rng.uniform(0.5, 1, n)
    probabilities = np.stack([first, 1 - first], axis=1)
    true = (rng.uniform(size=n) > first).astype(int)
    inside = posterior_sets(probabilities, 0.8)[np.arange(n), true].mean()
    assert abs(inside - 0.8) < 4 * np.sqrt(0.8 * 0.2 / n)
    # Where the most probable classes are right more often, each is the whole set.
    assert posterior_sets(probabilities, 0.7).sum() == n
    # The share is that of the nodes, whatever rows are asked for.
    alone = [posterior_sets(p[None], 0.8, probabilities)[0] for p in probabilities[:20]]
    np.testing.assert_array_equal(alone, posterior_sets(probabilities, 0.8)[:20])


def test_conformal_threshold_is_an_order_statistic():
    of_given = np.linspace(0.05, 0.95, 19)
    scores = np.sort(1 - of_given)
    assert conformal_threshold(of_given, 0.9) == pytest.approx(scores[17])  # 18th of 20 × 0.9
    assert conformal_threshold(of_given, 0.91) == pytest.approx(scores[18])
    with pytest.raises(InvalidInput, match="at least 9 labels"):
        conformal_threshold(of_given[:8], 0.9)
    conformal_threshold(of_given[:9], 0.9)
    with pytest.raises(InvalidInput, match="at least 99 labels"):
        conformal_threshold(of_given, 0.99)


def test_conformal_sets_of_exchangeable_scores_have_the_coverage():
    """Without a model: scores of labels and of the test row are exchangeable."""
    rng, n = np.random.default_rng(0), 4_000
    true = rng.beta(3, 1, size=(n, 20))  # probability of the true class
    inside = [
        conformal_sets(np.array([[p[0] * 0.999, 1.0]]), p[1:], 0.8)[0, 0] for p in true
    ]  # the second class takes the place that is never empty
    # P = ⌈20 · 0.8⌉ / 20 = 0.8 exactly, to the binomial error of 4,000 trials
    assert abs(np.mean(inside) - 0.8) < 4 * np.sqrt(0.8 * 0.2 / n)


@pytest.mark.slow
def test_sets_of_data_from_the_model_have_their_coverage():
    """Fields and labels are drawn from the prior and likelihood of the fit."""
    rng = np.random.default_rng(1)
    likelihood = LIKELIHOODS.Probit(0.3)
    base = small_problem(likelihood)
    std = base.std.modes
    eigenvectors = base.spectrum.eigenvectors
    nominal = {"posterior": [], "conformal": []}
    sums, below = [], []
    for _ in range(400):
        u = eigenvectors @ (std * rng.normal(size=len(std)))
        labelled = rng.choice(60, 12, replace=False)
        noisy = u + 0.3 * rng.normal(size=60)
        labels = np.where(noisy[labelled] >= 0, 1, -1)
        if len(set(labels)) < 2:
            continue
        posterior = dataclasses.replace(base, labelled=labelled, labels=labels)
        result = gq.infer(posterior, EP)
        rest = rng.choice(np.setdiff1d(np.arange(60), labelled))
        code = int(u[rest] >= 0)
        for method, hits in nominal.items():
            hits.append(gq.prediction_sets(result, 0.9, method)[rest, code])
        withheld = gq.leave_one_out(result).of_class
        of_given = withheld[np.arange(12), given_classes(posterior)]
        score = 1 - result.probabilities[rest, int(noisy[rest] >= 0)]
        below.append(score <= conformal_threshold(of_given, 0.9))
        chosen = gq.prediction_sets(result, 0.9)[rest]
        sums.append(result.probabilities[rest][chosen].sum())
    # The posterior probability of its sets is their coverage, and exceeds 0.9 only where the most
    # probable class alone does. Scores of labels and of a noisy test label are nearly exchangeable,
    # so that 12 of 13 are below the threshold. Bounds are four binomial errors.
    n = len(sums)
    assert abs(np.mean(nominal["posterior"]) - np.mean(sums)) < 4 * np.sqrt(0.1 * 0.9 / n)
    assert abs(np.mean(below) - 12 / 13) < 4 * np.sqrt(0.9 * 0.1 / n)
    assert np.mean(nominal["conformal"]) > 0.9 - 4 * np.sqrt(0.1 * 0.9 / n)
