"""Multiclass models from labels to files, as a user of the classifier sees them."""

import numpy as np
import pytest

import graphuq as gq
from graphuq import plots, scores
from graphuq.datasets import load_digits
from graphuq.errors import InvalidInput
from graphuq.inference import Laplace
from graphuq.results.diagnostics import node_rows
from graphuq.results.summaries import multiclass
from graphuq.results.uncertainty import margin

NAMES = np.array(["zero", "one", "two"])
FAST = {"inference": "expectation-propagation", "n_eigenpairs": 40}


@pytest.fixture(scope="module")
def digits():
    data = load_digits((0, 1, 2))
    rng = np.random.default_rng(0)
    labelled = np.concatenate(
        [rng.choice(np.flatnonzero(data.classes == k), 4, replace=False) for k in range(3)]
    )
    return data.features, data.classes.astype(int), labelled


@pytest.fixture(scope="module")
def fitted(digits):
    features, codes, labelled = digits
    y = np.full(len(codes), "", dtype=object)
    y[labelled] = NAMES[codes[labelled]]
    return gq.GraphClassifier(n_eigenpairs=40, inference="model-average").fit(features, y)


@pytest.fixture(scope="module")
def chosen(digits):
    """The classifier with hyperparameters of largest evidence: its chains have a setting."""
    features, codes, labelled = digits
    y = np.full(len(codes), "", dtype=object)
    y[labelled] = NAMES[codes[labelled]]
    return gq.GraphClassifier(
        model="largest-evidence", n_eigenpairs=40, inference=gq.inference.MCMC(thin=4)
    ).fit(features, y)


def test_default(fitted, digits):
    _, codes, labelled = digits
    assert fitted.classes_.tolist() == ["one", "two", "zero"]
    assert (fitted.transduction_ == NAMES[codes]).mean() > 0.93
    assert fitted.label_distributions_.shape == (len(codes), 3)
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1)
    assert fitted.result_.diagnostics.converged
    assert fitted.result_.diagnostics.label_mcse < 0.03
    assert (fitted.transduction_[labelled] == NAMES[codes[labelled]]).all()
    assert (fitted.unseen_class_probability_ == 0).all()


def test_result(fitted):
    result = fitted.result_
    p = result.probabilities
    np.testing.assert_allclose(gq.results.label_variance(result), 1 - (p**2).sum(axis=1))
    np.testing.assert_allclose(gq.results.margin(result), np.sort(p)[:, -1] - np.sort(p)[:, -2])
    assert (gq.results.entropy(result) >= 0).all()
    assert (gq.results.entropy(result) <= np.log(3) + 1e-9).all()
    interval = gq.credible_interval(result, 0.9)
    assert interval.shape == (len(result.has_evidence), 3, 2)
    assert (interval[..., 0] < result.latent_mean).all()
    assert (result.latent_mean < interval[..., 1]).all()
    draws = gq.results.latent_draws(result, [3, 5])
    assert draws.shape[::2] == (2, 3)
    share = (draws[0].argmax(axis=1)[:, None] == np.arange(3)).mean(axis=0)
    np.testing.assert_allclose(share, p[3], atol=0.05)
    order = gq.results.rank_by_uncertainty(result)
    assert gq.results.margin(result)[order[0]] <= gq.results.margin(result)[order[-1]]
    assert set(gq.most_uncertain(result, 5)).isdisjoint(result.posterior.labelled)


def test_rows_in_and_outside_the_graph(fitted, digits):
    features, _, _ = digits
    np.testing.assert_array_equal(fitted.predict_proba(features), fitted.label_distributions_)
    moved = fitted.predict_proba(features[:50] + 0.05)
    np.testing.assert_allclose(moved.sum(axis=1), 1)
    assert (moved.argmax(axis=1) == fitted.predict_proba(features[:50]).argmax(axis=1)).mean() > 0.9
    assert fitted.predict_interval(features[:7]).shape == (7, 3, 2)


def test_stored_and_read(fitted, digits, tmp_path):
    features, _, _ = digits
    fitted.save(tmp_path / "fit.nc")
    again = gq.GraphClassifier.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(again.predict_proba(features), fitted.predict_proba(features))
    np.testing.assert_allclose(
        again.predict_proba(features[:20] + 0.05), fitted.predict_proba(features[:20] + 0.05)
    )
    result = gq.load(tmp_path / "fit.nc").result_
    assert result.posterior.n_classes == 3
    assert (
        gq.results.convergence_table(result).keys()
        == gq.results.convergence_table(fitted.result_).keys()
    )
    assert "posterior" in gq.to_arviz(result)


@pytest.mark.parametrize(
    "likelihood",
    [
        pytest.param("softmax", marks=pytest.mark.slow),
        "probit",
        pytest.param("level-set", marks=pytest.mark.slow),
        pytest.param(gq.likelihoods.LevelSet(0.5), marks=pytest.mark.slow),
    ],
)
def test_likelihoods(digits, likelihood):
    features, codes, labelled = digits
    y = np.full(len(codes), -1)
    y[labelled] = codes[labelled]
    sampled = "level" in str(likelihood).lower()
    draws = gq.inference.MCMC(n_samples=200, n_chains=8)
    inference = draws if sampled else FAST["inference"]
    model = gq.models.LargestEvidence(likelihood=likelihood)
    classifier = gq.GraphClassifier(n_eigenpairs=20, model=model, inference=inference)
    classifier.fit(features, y)
    assert classifier.result_.posterior.likelihood.n_classes == 3
    assert (classifier.transduction_ == codes).mean() > 0.9


@pytest.mark.slow
def test_first_answer_is_close_to_the_chains(chosen):
    """Nested expectation propagation is close to the chains; Laplace's method is not."""
    posterior = chosen.result_.posterior
    ours = gq.results.label_mean(chosen.result_)
    ep = gq.results.label_mean(gq.infer(posterior, gq.inference.ExpectationPropagation()))
    laplace = gq.results.label_mean(gq.infer(posterior, Laplace()))
    assert np.abs(ep - ours).mean() < 0.02
    assert np.abs(laplace - ours).mean() > 3 * np.abs(ep - ours).mean()


def test_evidence_is_that_of_each_class_against_the_rest(chosen):
    posterior = chosen.result_.posterior
    best = gq.maximize_evidence(posterior, ["tau", "noise_std"])
    total = 0.0
    for k in range(3):
        binary = gq.Posterior(
            posterior.spectrum,
            best.posterior.prior,
            gq.likelihoods.Probit(best.values["noise_std"]),
            posterior.labelled,
            np.where(posterior.labels == k, 1, -1),
        )
        total += 0.5 * gq.infer(binary, gq.inference.ExpectationPropagation()).log_evidence
    assert best.log_evidence == pytest.approx(total, abs=1e-4)


@pytest.mark.slow
def test_a_class_without_labels(digits):
    """Two of three classes have labels; its probability is high at nodes of the third."""
    features, codes, labelled = digits
    y = np.full(len(codes), -1)
    y[labelled] = codes[labelled]
    y[codes == 2] = -1
    classifier = gq.GraphClassifier(
        n_eigenpairs=20, max_classes=3, inference=gq.inference.MCMC(n_samples=400, n_chains=16)
    )
    classifier.fit(features, y)
    assert classifier.classes_.tolist() == [0, 1]
    assert classifier.label_distributions_.shape == (len(codes), 2)
    assert (classifier.transduction_[codes < 2] == codes[codes < 2]).mean() > 0.9
    probability = classifier.unseen_class_probability_
    assert probability[codes == 2].mean() > 3 * probability[codes < 2].mean()
    np.testing.assert_array_equal(classifier.predict_unseen_class(features), probability)
    learnt = classifier.result_.hyperparameters["n_classes"]
    assert set(np.unique(learnt)) == {2, 3}


def test_scores_of_multiclass_results():
    p = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [1 / 3, 1 / 3, 1 / 3]])
    truth = np.array([0, 2, 1])
    assert scores.accuracy(p, truth) == pytest.approx((1 + 0 + 1 / 3) / 3)
    assert scores.log_score(p, truth) == pytest.approx(-np.log([0.7, 0.3, 1 / 3]).mean())
    errors = [0.3**2 + 0.2**2 + 0.1**2, 0.2**2 + 0.5**2 + 0.7**2, 2 / 3]
    assert scores.brier_score(p, truth) == pytest.approx(np.mean(errors) / 2)
    curve = scores.reliability_curve(p, truth, n_bins=1)
    assert curve.confidence[0] == pytest.approx((0.7 + 0.5 + 1 / 3) / 3)
    with pytest.raises(InvalidInput, match="truth"):
        scores.accuracy(p, np.array([0, 3, 1]))
    binary = np.array([0.4, -0.9, 0.1])  # two classes in both forms
    both = np.stack([1 - binary, 1 + binary], axis=1) / 2
    signs, codes = np.array([1.0, 1.0, -1.0]), np.array([1, 1, 0])
    for score in (scores.accuracy, scores.brier_score, scores.log_score):
        assert score(binary, signs) == pytest.approx(score(both, codes))
    np.testing.assert_allclose(margin(binary), margin(both))


@pytest.mark.slow
def test_report_and_figures(fitted, digits, tmp_path):
    features, codes, _ = digits
    result = fitted.result_
    truth = np.searchsorted(fitted.classes_, NAMES[codes]).astype(float)
    gq.write_report(
        result,
        tmp_path / "report.html",
        class_names=fitted.classes_,
        truth=truth,
        images=features.reshape(-1, 8, 8),
    )
    page = (tmp_path / "report.html").read_text()
    for name in fitted.classes_:
        assert f"<tr><td>{name}</td>" in page
    assert "Accuracy against the probability of the inferred class" in page
    for draw in (plots.plot_order, plots.plot_certainty):
        draw(result, ax=plots.panels()[1][0]).figure.savefig(tmp_path / "figure.png")
    axes = plots.plot_marginals(result, np.array([0, 1]), axes=plots.panels(2)[1])
    axes[0].figure.savefig(tmp_path / "figure.png")


def test_two_classes_only(digits):
    features, codes, labelled = digits
    y = np.full(len(codes), -1)
    y[labelled] = codes[labelled]
    with pytest.raises(InvalidInput, match="two classes"):
        gq.GraphClassifier(model="Fixed(likelihood=AtomicNoise())").fit(features, y)


def test_uncertain_nodes_use_more_draws(fitted, monkeypatch):
    """Summaries of thinned draws agree with those of all draws, within Monte-Carlo error."""
    result = fitted.result_
    rows, field = node_rows(result.posterior), result.posterior.field
    every = multiclass.summarize(result.answer, field, rows)
    monkeypatch.setattr(multiclass, "MANY_NUMBERS", 0)
    monkeypatch.setattr(multiclass, "FEW_DRAWS", 200)
    thinned = multiclass.summarize(result.answer, field, rows)
    error = np.hypot(every.label_mcse, thinned.label_mcse) + 1 / 200
    assert (np.abs(every.label_mean - thinned.label_mean) / error).max() < 5
    np.testing.assert_allclose(thinned.label_mean.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(thinned.latent_mean, every.latent_mean, atol=1e-6)
    np.testing.assert_allclose(thinned.latent_std, every.latent_std, atol=1e-6)
