"""Intervals of class probabilities: against large samples, simulated truths and Gaussians."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from sklearn.neighbors import KNeighborsClassifier

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.results import probability_interval
from graphuq.results.errors_left import N_DRAWS
from graphuq.results.probability_intervals import ProbabilityIntervals, with_means
from graphuq.results.summaries.random_label import class_shares

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.GraphuqWarning")
EP = gq.inference.ExpectationPropagation()


def digits(n_classes, n_labels=6, n_rows=150):
    found = gq.datasets.load_digits(tuple(range(n_classes)))
    y = np.full(n_rows, -1)
    for k in range(n_classes):
        of_class = np.flatnonzero(found.target[:n_rows] == k)
        y[of_class[: n_labels // (1 + k % 2)]] = k
    return found.data[:n_rows], y


def fitted(n_classes, n_labels=6, **settings):
    return gq.GraphClassifier(**settings).fit(*digits(n_classes, n_labels))


def fixed(n_classes, noise_std=0.3):
    X, y = digits(n_classes)
    likelihood = gq.likelihoods.Probit(noise_std, n_classes, random_labels=True)
    basis = gq.Basis.of(gq.graphs.knn_graph(X))
    model = gq.models.Fixed("inverse-laplacian", likelihood)
    return model.posterior(basis, gq.models.Labels.of(y))


SETTINGS = {
    "average": {},
    "chosen by class": {"model": gq.models.Average(label_design="by-class")},
    "expert": {"model": gq.models.Pooled([KNeighborsClassifier(3)])},
    "one model": {"model": "largest-evidence", "inference": "expectation-propagation"},
    "class of the field": {
        "model": gq.models.LargestEvidence(likelihood=gq.likelihoods.Softmax(0.1, n_classes=4)),
        "inference": "expectation-propagation",
    },
    "draws": {"inference": gq.inference.MCMC(n_samples=200, n_chains=2)},
    "grades": {"ordered": True},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_every_probability_is_inside_its_interval(n_classes, settings):
    if n_classes == 2 and ("ordered" in settings or "Softmax" in str(settings.get("model"))):
        pytest.skip("of several classes")
    result = fitted(n_classes, **settings).result_
    p, ends = result.probabilities, probability_interval(result)
    assert ends.shape == (150, n_classes, 2)
    assert ((ends[:, :, 0] <= p) & (p <= ends[:, :, 1])).all()
    assert ((ends >= 0) & (ends <= 1)).all()
    half = probability_interval(result, 0.5, [3, 140])
    ends = ends[[3, 140]] + [-1e-6, 1e-6]  # sums of single precision depend on the rows
    assert ((ends[:, :, 0] <= half[:, :, 0]) & (half[:, :, 1] <= ends[:, :, 1])).all()


@pytest.mark.parametrize("noise_std", [0.3, 1.0])
def test_two_classes_have_the_quantiles_of_the_gaussian(noise_std):
    """``Φ(u / γ)`` grows with u: its quantiles are those of u, here with their sampling error."""
    result = gq.infer(fixed(2, noise_std), EP)
    error = 4 * np.sqrt(0.05 * 0.95 / N_DRAWS)
    levels = np.array([[max(1e-4, q - error), min(1 - 1e-4, q + error)] for q in (0.05, 0.95)])
    ends = probability_interval(result)
    for row in (0, 1, 20, 60, 149):
        u = result.latent_mean[row] + result.latent_std[row] * ndtri(levels)
        least, most = ndtr(u / noise_std).T
        assert (least - 0.03 <= ends[row, 1]).all()
        assert (ends[row, 1] <= most + 0.03).all()
    np.testing.assert_allclose(ends[:, 0], 1 - ends[:, 1, ::-1], atol=3e-3)


@pytest.mark.parametrize("n_classes", [3, 5])
def test_approximations_and_large_samples_agree(n_classes):
    posterior = fixed(n_classes)
    quick = probability_interval(gq.infer(posterior, EP))
    sampled = gq.infer(posterior, n_samples=1_000, n_chains=2)
    assert np.abs(quick - probability_interval(sampled)).mean() < 0.03


def test_an_average_has_no_ends_where_a_label_contradicts_its_class():
    """A Gaussian has such tails, and draws have not: 5 % of it gave 0 where draws give 0.9."""
    average = fitted(10, n_labels=8).result_
    sampled = gq.infer(average.posterior, n_samples=300, n_chains=2)
    quick, slow = (probability_interval(one) for one in (average, sampled))
    likeliest = average.probabilities.argmax(axis=1)
    sure = average.probabilities.max(axis=1) > 0.97
    own = np.arange(150)[sure], likeliest[sure], 0
    assert sure.sum() > 20
    assert np.abs(quick[own] - slow[own]).mean() < 0.06


def test_nine_of_ten_probabilities_are_in_the_intervals_of_simulated_labels():
    posterior, held = fixed(3, noise_std=1.0), []
    basis, scale = np.asarray(posterior.spectrum.basis), posterior.spectrum.node_scale
    std = np.sqrt(np.asarray(posterior.field.one_class.mode_variance))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        u = scale[:, None] * (basis @ (std[:, None] * rng.normal(size=(basis.shape[1], 3))))
        q = class_shares(u[:, None], posterior.likelihood.link)[:, 0]
        y = np.full(150, -1)
        y[:30] = (q[:30].cumsum(axis=1) < rng.random((30, 1))).sum(axis=1)
        labels = gq.models.Labels.of(y)
        if labels.n_classes < 3:
            continue
        model = gq.models.Fixed("inverse-laplacian", posterior.likelihood)
        result = gq.infer(model.posterior(posterior.spectrum, labels), EP)
        ends = probability_interval(result)[30:]
        held.append(((ends[:, :, 0] <= q[30:]) & (q[30:] <= ends[:, :, 1])).mean())
    assert len(held) > 15
    assert np.mean(held) == pytest.approx(0.9, abs=0.02)


def test_means_are_moved_to_any_probabilities():
    rng = np.random.default_rng(0)
    q = rng.dirichlet([0.1, 0.2, 0.3, 0.1], size=(50, 300))  # near 0 or 1 in most draws
    p = rng.dirichlet([0.5] * 4, size=50)
    moved = with_means(q, p)
    np.testing.assert_allclose(moved.mean(axis=1), p, atol=6e-4)
    np.testing.assert_allclose(moved.sum(axis=2), 1, rtol=1e-5)
    ratios = moved[:, :, :3] * q[:, :, 3:] / (moved[:, :, 3:] * q[:, :, :3])
    plain = (q > 1e-3).all(axis=2)
    for row in range(50):
        own = ratios[row, plain[row]]
        np.testing.assert_allclose(own, own[:1].repeat(len(own), axis=0), rtol=1e-4)


def test_rows_in_the_graph_and_new_rows():
    X, y = digits(3)
    classifier = gq.GraphClassifier().fit(X, y)
    new = gq.datasets.load_digits((0, 1, 2)).data[140:170]
    p, ends = classifier.predict_proba(new), classifier.predict_proba_interval(new)
    assert ends.shape == (30, 3, 2)
    assert ((ends[:, :, 0] <= p) & (p <= ends[:, :, 1])).all()
    of_nodes = probability_interval(classifier.result_, nodes=np.arange(140, 150))
    np.testing.assert_allclose(ends[:10], of_nodes, atol=1e-5)


def test_intervals_are_the_same_after_a_file(tmp_path):
    result = fitted(3).result_
    result.save(tmp_path / "result.nc")
    np.testing.assert_allclose(
        probability_interval(gq.load(tmp_path / "result.nc")), probability_interval(result)
    )


def test_what_has_no_intervals_says_so():
    result = fitted(2, model="largest-evidence", inference="map").result_
    with pytest.raises(IncompatibleParts, match="point without uncertainty"):
        probability_interval(result)
    levels = gq.models.Fixed("inverse-laplacian", gq.likelihoods.GinzburgLandau())
    few = gq.inference.MCMC("pcn", n_samples=50, n_chains=2, n_warmup=50, stop=None)
    result = fitted(2, model=levels, inference=few).result_
    with pytest.raises(IncompatibleParts, match="noise of each label that is known"):
        ProbabilityIntervals(result)
    with pytest.raises(InvalidInput, match="use a number in"):
        probability_interval(gq.infer(fixed(2), EP), 90)
