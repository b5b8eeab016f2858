"""The classifier with `inference="model-average"`: from fit to files."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import IncompatibleParts
from graphuq.inference.answers import GaussianMixture
from graphuq.inference.model_average.components import Components
from graphuq.inference.model_average.likely_components import fits_of, screened_for_two

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")


def averaged(X, y, **parameters):
    return gq.GraphClassifier(
        inference=gq.inference.MCMC("model-average", n_samples=400), **parameters
    ).fit(X, y)


def blobs(shares, seed=0):
    """Return rows of three overlapping Gaussians, their classes, and two labels of each."""
    rng = np.random.default_rng(seed)
    classes = rng.choice(len(shares), size=200, p=shares)
    X = rng.normal(size=(200, 2)) + 4.0 * np.eye(3, 2)[classes]
    y = np.full(200, -1)
    for k in range(len(shares)):
        y[np.flatnonzero(classes == k)[:2]] = k
    return X, classes, y


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.4, 0.3, 0.3)])
def test_probabilities_predictions_and_files(shares, tmp_path):
    X, classes, y = blobs(shares)
    classifier = averaged(X, y)
    probability = classifier.label_distributions_
    np.testing.assert_allclose(probability.sum(axis=1), 1, atol=1e-6)
    assert (probability > 0).all()  # smooth, not shares of draws
    assert (classifier.transduction_ == classes).mean() > 0.9
    np.testing.assert_allclose(classifier.predict_proba(X[:5]), probability[:5])
    new = classifier.predict_proba(X[:5] + 0.01)
    assert np.abs(new - probability[:5]).max() < 0.2
    classifier.save(tmp_path / "classifier.nc")
    loaded = gq.load(tmp_path / "classifier.nc")
    np.testing.assert_allclose(loaded.predict_proba(X), classifier.predict_proba(X))
    assert len(classifier.suspect_labels()) == (y >= 0).sum()
    assert classifier.predict_set(X).any(axis=1).all()
    assert classifier.result_.trust.level in ("green", "amber", "red")


def test_labels_are_added():
    X, classes, y = blobs((0.4, 0.3, 0.3))
    classifier = averaged(X, y)
    more = np.flatnonzero(y < 0)[:10]
    classifier.add_labels(more, classes[more])
    assert (classifier.transduction_[more] == classes[more]).mean() > 0.8


def test_unequal_classes_need_no_equal_halves():
    """A tenth of the rows has half of the labels, and still about a tenth of the answers."""
    rng = np.random.default_rng(1)
    classes = (np.arange(400) >= 360).astype(int)
    X = rng.normal(size=(400, 2)) + [[3.0, 0.0]] * classes[:, None]
    y = np.full(400, -1)
    labelled = np.r_[:5, 360:365]
    y[labelled] = classes[labelled]
    answer = averaged(X, y).transduction_
    assert (answer[:360] == 0).mean() > 0.9  # without a constant, half of the rows would be rare
    assert (answer[360:] == 1).mean() > 0.6
    assert 0.05 < (answer == 1).mean() < 0.2


def test_unknown_number_of_classes_is_refused():
    X, _, y = blobs((0.5, 0.5))
    with pytest.raises(IncompatibleParts, match="leave max_classes out"):
        averaged(X, y, max_classes=4, model="average")
    with pytest.raises(IncompatibleParts, match=r"of a Mixture, .* use model='average'"):
        averaged(X, y, max_classes=4)


def test_a_model_of_one_prior_is_not_averaged():
    X, _, y = blobs((0.5, 0.5))
    with pytest.raises(IncompatibleParts, match=r"of a Mixture, .* use model='average'"):
        averaged(X, y, model="fixed")


def test_added_labels_are_averaged_again_by_approximations():
    """The update is expectation propagation of every component, as `infer` finds it."""
    X, classes, y = blobs((0.4, 0.3, 0.3))
    classifier = averaged(X, y)
    more = np.flatnonzero(y < 0)[:10]
    classifier.add_labels(more[:5], classes[more[:5]]).add_labels(more[5:], classes[more[5:]])
    known = classifier.result_.posterior
    assert known.is_weighted
    assert len(known.labelled) == 16
    assert isinstance(classifier.result_.answer, GaussianMixture)
    labels = gq.models.Labels(known.labelled, known.labels.astype(int), 3)
    fresh = gq.models.Average().posterior(known.spectrum, labels)
    assert repr(known.prior.components) == repr(fresh.prior.components)
    logs = known.prior.log_probabilities
    np.testing.assert_allclose(logs, fresh.prior.log_probabilities, rtol=1e-12)
    expected = gq.infer(fresh, "expectation-propagation").probabilities
    np.testing.assert_allclose(classifier.label_distributions_, expected, atol=5e-3)


def test_labels_added_with_a_sampler_are_averaged_again():
    X, classes, y = blobs((0.4, 0.3, 0.3))
    classifier = averaged(X, y)
    more = np.flatnonzero(y < 0)[:10]
    classifier.add_labels(more[:5], classes[more[:5]])
    classifier.add_labels(more[5:], classes[more[5:]], "model-average")
    assert list(classifier.result_.posterior.learnt) == ["component"]
    y[more] = classes[more]
    expected = averaged(X, y).label_distributions_
    assert np.abs(classifier.label_distributions_ - expected).max() < 0.1  # 1,600 draws each


# ---- features beside the graph


def separated_by_a_line(n_labels=60, n_features=8, seed=0):
    """Return rows of one cloud, which a plane divides into two classes, and labels of the first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, n_features))
    classes = (X.sum(axis=1) > 0).astype(int)
    y = np.full(300, -1)
    y[:n_labels] = classes[:n_labels]
    return X, classes, y


def averaged_quickly(**parameters):
    return gq.GraphClassifier(
        inference=gq.inference.MCMC(n_samples=400), random_state=0, **parameters
    )


def accuracy(classifier, classes, y):
    return (classifier.transduction_ == classes)[y < 0].mean()


def on_features(classifier):
    return classifier.result_.hyperparameters["on_features"].mean()


@pytest.mark.slow
def test_features_tell_more_than_a_graph_without_clusters():
    X, classes, y = separated_by_a_line()
    classifier = averaged_quickly().fit(X, y)
    assert on_features(classifier) > 0.95
    graph = gq.graphs.knn_graph(X, 15)
    without = gq.graphs.from_adjacency(graph.weights)
    plain = averaged_quickly(graph=without).fit(None, y)
    assert "on_features" not in plain.result_.hyperparameters
    assert accuracy(classifier, classes, y) > accuracy(plain, classes, y) + 0.05
    assert "on_features: in" in str(classifier.result_)
    assert classifier.result_.trust.checks["truncation"].value < 0.05
    assert "The model of graph and features" in classifier.result_.trust.checks["evidence"].sentence
    assert "Model and labels agree" in classifier.result_.trust.checks["agreement"].sentence
    assert len(classifier.suspect_labels()) == 60


def test_a_curve_that_neighbours_follow_needs_no_features():
    moons = gq.datasets.two_moons(300, n_features=2, noise_std=0.08)
    y = np.where(np.arange(300) < 40, moons.classes, -1)
    classifier = averaged_quickly().fit(moons.features, y)
    result = classifier.result_
    drawn = np.array(result.posterior.prior.blocks)[
        result.answer.hyperparameters["component"].astype(int)
    ]
    assert np.isin(drawn, ["eigenpairs", "whitened graph"]).mean() > 0.95


def test_few_labels_average_over_all_blocks():
    X, _, y = separated_by_a_line(9)
    assert len(averaged_quickly().fit(X, y).result_.posterior.spectrum.blocks) == 4


def test_functions_of_the_features_take_part_with_one_label_a_class():
    X, _, y = separated_by_a_line(3)
    names = [block.name for block in averaged_quickly().fit(X, y).result_.posterior.spectrum.blocks]
    assert "powers" in names


def test_one_model_may_be_a_function_of_the_features(tmp_path):
    X, classes, y = separated_by_a_line()
    settings = {"model": "likeliest", "inference": "expectation-propagation"}
    classifier = gq.GraphClassifier(**settings).fit(X, y)
    posterior = classifier.result_.posterior
    assert posterior.prior.on_features.all()
    assert not posterior.is_weighted
    assert accuracy(classifier, classes, y) > 0.85
    assert posterior.chosen_by_evidence == {"noise_std": posterior.likelihood.noise_std}
    classifier.save(tmp_path / "classifier.nc")
    loaded = gq.load(tmp_path / "classifier.nc")
    np.testing.assert_allclose(loaded.predict_proba(X + 0.01), classifier.predict_proba(X + 0.01))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("eigenpairs", ["extend", "recompute"])
def test_rows_and_labels_are_added_to_functions_of_the_features(eigenpairs):
    X, classes, y = separated_by_a_line()
    kept = np.arange(300) < 250
    classifier = averaged_quickly().fit(X[kept], y[kept])
    classifier.add_rows(X[~kept], eigenpairs=eigenpairs)
    assert len(classifier.result_.posterior.spectrum.blocks) >= 1
    assert (classifier.transduction_ == classes)[~kept].mean() > 0.8
    classifier.add_labels(np.arange(60, 100), classes[60:100])
    assert (classifier.transduction_ == classes)[100:].mean() > 0.8
    classifier.add_labels(np.arange(100, 120), classes[100:120], "model-average")
    assert on_features(classifier) > 0.9


@pytest.mark.slow
def test_cosines_are_of_rows_of_length_one():
    X, _, y = separated_by_a_line()
    sizes = np.exp(np.random.default_rng(1).normal(size=(300, 1)))
    first, second = (averaged_quickly(metric="cosine").fit(rows, y) for rows in (X, X * sizes))
    assert on_features(first) > 0.9
    products = []
    for one in (first, second):
        own = one.result_.posterior.spectrum
        columns = own.basis[:, own.columns_of("exponential")]
        products.append(columns @ columns.T)
    np.testing.assert_allclose(*products, atol=1e-8)


@pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")
def test_rows_are_added_to_a_graph_without_a_column_that_tears():
    """A value between the two would end that; the graph of the first rows has decided."""
    rng, classes = np.random.default_rng(1), np.arange(180) % 3
    numbers = rng.normal(size=(180, 2)) + 3.0 * np.eye(3)[classes][:, :2]
    rows = np.column_stack([0.2 * numbers @ [[1, 0], [0.9, 0.3]], np.arange(180) // 3 % 2])
    y = np.where(np.arange(180) < 6, classes, -1)
    settings = {"model": "likeliest", "inference": "laplace"}
    classifier = gq.GraphClassifier(**settings).fit(rows, y)
    more = np.append(rows[7, :2], 0.5)[None]
    classifier.add_rows(more, eigenpairs="recompute")
    assert len(classifier.transduction_) == 181


def test_fits_of_the_screening_are_those_of_the_components():
    """Also where a block is left out, and then they are used up."""
    moons = gq.datasets.two_moons(120, n_features=2, noise_std=0.05)
    labels = gq.models.Labels.of(np.where(np.arange(120) % 10, -1, moons.codes()))
    basis = gq.Basis.of(gq.graphs.knn_graph(moons.features, 10))
    posterior = gq.models.Average().posterior(basis, labels)
    names = {block.name for block in posterior.spectrum.blocks}
    assert {block.name for block in basis.blocks} - names
    with screened_for_two(posterior):
        first = fits_of(posterior)[1]
    kept, again = fits_of(posterior)[1], Components.of(posterior).fit()
    assert kept[0] is first[0]
    assert len(kept) == len(again)
    for one, other in zip(kept, again, strict=True):
        np.testing.assert_allclose(one.log_evidence, other.log_evidence, atol=1e-8)
        np.testing.assert_allclose(one.factor, other.factor, atol=1e-12)
    assert fits_of(posterior)[1][0] is not kept[0]


def test_components_that_some_labels_leave_far_behind_are_not_fitted_to_all():
    """Their weight, given all labels, is negligible; what the model screened is used once."""
    moons = gq.datasets.two_moons(300, n_features=2, noise_std=0.15)
    labels = gq.models.Labels.of(np.where(np.arange(300) % 5, -1, moons.codes()))
    basis = gq.Basis.of(gq.graphs.knn_graph(moons.features, 10))
    posterior = gq.models.Average().posterior(basis, labels)
    every = Components.of(posterior)
    logs = every.log_prior + [one.log_evidence for one in every.fit()]
    for _ in range(2):  # as the model screened, and as it is done again
        given, fits = fits_of(posterior)
        assert len(given.numbers) < 0.6 * len(every.numbers)
        kept = np.isin(every.numbers, given.numbers)
        assert np.exp(np.logaddexp.reduce(logs[~kept]) - np.logaddexp.reduce(logs)) < 1e-4
        found = given.log_prior + [one.log_evidence for one in fits]
        np.testing.assert_allclose(found, logs[kept], atol=0.01)  # other starts of the sweeps


def test_many_classes_that_lie_apart_are_found_from_one_label_each():
    """More classes than any set had from which the odds were learnt: clusters are their classes."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(60), 15)
    X = rng.normal(size=(900, 10)) + 3.0 * rng.normal(size=(60, 10))[classes]
    y = np.full(900, -1)
    y[::15] = np.arange(60)
    p = gq.GraphClassifier().fit(X, y).label_distributions_[y < 0]
    own = p[np.arange(len(p)), classes[y < 0]]
    assert (p.argmax(axis=1) == classes[y < 0]).mean() > 0.95  # the nearest label gives .96
    assert -np.log(own).mean() < 0.5  # of log 60 = 4.1
