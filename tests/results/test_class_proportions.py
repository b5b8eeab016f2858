"""Class proportions: the threshold is moved so that labels and probabilities have them."""

import numpy as np
import pytest
from scipy.special import ndtr

import graphuq as gq
from graphuq.errors import InvalidInput
from graphuq.results.class_proportions import (
    estimated_proportions,
    keep_given,
    reweighted,
    shares_of,
    thresholds_of_several,
    thresholds_of_two,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("link", [None, gq.likelihoods.Logistic(1.5).link])
def test_two_classes(share, link):
    mean, std = RNG.normal(3, 2, 500), RNG.uniform(0.1, 3, 500)
    tuning = thresholds_of_two(mean, std, link, share)
    assert (mean > tuning.for_labels[0]).sum() == round(500 * share)

    class Node:
        latent_mean, latent_std = mean, std

    probability = tuning.probabilities(Node, link)
    assert probability[:, 1].mean() == pytest.approx(share, abs=1e-9)
    if link is None:
        moved = ndtr((mean - tuning.for_probabilities[0]) / std)
        np.testing.assert_allclose(probability[:, 1], moved, atol=1e-12)


def test_a_correct_threshold_is_kept():
    mean = RNG.normal(size=1000)
    mean = np.r_[mean, -mean]
    tuning = thresholds_of_two(mean, np.ones(2000), None, 0.5)
    assert abs(tuning.for_labels[0]) < 0.01
    assert abs(tuning.for_probabilities[0]) < 1e-9


def test_multiclass():
    """Counts and means are as given, and the most certain labels are kept."""
    probability = RNG.dirichlet([0.6, 0.3, 1.5, 0.8], size=400)
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    tuning = thresholds_of_several(probability, shares)

    class Node:
        probabilities = probability

    codes = tuning.codes(Node)
    np.testing.assert_allclose(np.bincount(codes, minlength=4), 400 * shares, atol=2)
    moved = tuning.probabilities(Node, None)
    np.testing.assert_allclose(moved.mean(axis=0), shares, atol=1e-8)
    np.testing.assert_allclose(moved.sum(axis=1), 1)
    np.testing.assert_allclose(moved, reweighted(probability, tuning.for_probabilities))
    # No exchange of two nodes' classes gains log probability: the assignment is optimal.
    logs = np.log(probability)
    own = logs[np.arange(400), codes]
    gain = logs[:, codes].T + logs[:, codes] - own[:, None] - own[None, :]
    assert gain.max() < 1e-6


def test_ties_are_not_broken_by_order():
    """Nodes of a component without labels all score the same."""
    tied = np.full((100, 3), 1 / 3)
    codes = thresholds_of_several(tied, np.array([0.5, 0.3, 0.2]))
    assert np.isfinite(codes.for_labels).all()


def test_estimated_from_labels():
    found = estimated_proportions(np.array([0, 0, 0, 2]), [0, 1, 2])
    np.testing.assert_allclose(found, [4 / 7, 1 / 7, 2 / 7])


@pytest.fixture(scope="module")
def biased():
    """Return two moons, one labelled four times as often, which biases the level of the field."""
    moons = gq.datasets.two_moons(300, n_features=2, noise_std=0.15, rng=3)
    truth = moons.classes
    rng = np.random.default_rng(1)
    first, second = (np.flatnonzero(truth == c) for c in np.unique(truth))
    y = np.full(300, -1)
    for nodes, n in ((first, 16), (second, 4)):
        chosen = rng.choice(nodes, n, replace=False)
        y[chosen] = truth[chosen]
    return moons.features, y, truth


def classifier(**changes):
    return gq.GraphClassifier(
        model=gq.models.Fixed("regularized-laplacian", "logistic"),
        laplacian="unnormalized",
        inference="laplace",
        weights="unweighted",
        n_neighbors=6,
        **changes,
    )


def test_proportions_improve_the_classifier(biased, tmp_path):
    x, y, truth = biased
    plain = classifier().fit(x, y)
    known = classifier(class_proportions={0: 0.5, 1: 0.5}).fit(x, y)
    same = classifier(class_proportions=[0.5, 0.5]).fit(x, y)
    free = y == -1
    assert abs((known.transduction_[free] == 1).mean() - 0.5) < 0.01
    assert known.label_distributions_[free, 1].mean() == pytest.approx(0.5, abs=1e-6)
    np.testing.assert_array_equal(known.transduction_, same.transduction_)
    right = [(c.transduction_ == truth)[free].mean() for c in (plain, known)]
    assert right[1] >= right[0]
    np.testing.assert_array_equal(known.predict(x), known.transduction_)
    np.testing.assert_allclose(known.predict_proba(x), known.label_distributions_)
    known.save(tmp_path / "fit.nc")
    loaded = gq.GraphClassifier.load(tmp_path / "fit.nc")
    np.testing.assert_array_equal(loaded.predict(x + 0.01), known.predict(x + 0.01))
    np.testing.assert_allclose(loaded.label_distributions_, known.label_distributions_)
    by_labels = classifier(class_proportions="labels").fit(x, y)
    share = by_labels.label_distributions_[free, 0].mean()
    assert share == pytest.approx(17 / 22, abs=1e-6)


def test_multiclass_classifier():
    x = RNG.normal(size=(120, 2)) + 3 * np.eye(3)[np.arange(120) % 3][:, :2]
    y = np.where(np.arange(120) < 15, np.arange(120) % 3, -1)
    shares = [0.2, 0.3, 0.5]
    model = gq.models.LargestEvidence(likelihood="softmax")
    fitted = gq.GraphClassifier(model=model, inference="laplace", class_proportions=shares).fit(
        x, y
    )
    free = y == -1
    counts = np.bincount(fitted.transduction_[free], minlength=3) / free.sum()
    np.testing.assert_allclose(counts, shares, atol=0.03)
    np.testing.assert_allclose(fitted.label_distributions_[free].mean(axis=0), shares, atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_given_labels_never_change(n_classes, seed):
    """Given labels are kept if the threshold is moved far and classes overlap."""
    rng = np.random.default_rng(seed)
    truth = np.arange(150) % n_classes
    x = rng.normal(size=(150, 2)) + 1.5 * np.eye(3)[truth][:, :2]
    y = np.where(np.arange(150) < 24, truth, -1)
    shares = [0.15, 0.85] if n_classes == 2 else [0.1, 0.2, 0.7]
    likelihood = gq.likelihoods.Softmax(noise_std=1.0) if n_classes == 3 else "probit"
    fitted = gq.GraphClassifier(
        model=gq.models.Fixed("matern", likelihood),
        inference="laplace" if n_classes == 3 else "expectation-propagation",
        class_proportions=shares,
    ).fit(x, y)
    given, free = y >= 0, y == -1
    np.testing.assert_array_equal(fitted.transduction_[given], y[given])
    np.testing.assert_array_equal(fitted.label_distributions_.argmax(axis=1)[given], y[given])
    np.testing.assert_array_equal(fitted.predict(x), fitted.transduction_)
    np.testing.assert_allclose(fitted.predict_proba(x), fitted.label_distributions_)
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1)
    np.testing.assert_allclose(
        np.bincount(fitted.transduction_[free], minlength=n_classes) / free.sum(), shares, atol=0.02
    )
    np.testing.assert_allclose(fitted.label_distributions_[free].mean(axis=0), shares, atol=1e-6)


def test_probabilities_of_labelled_nodes():
    moved = np.array([[0.1, 0.9], [0.1, 0.9], [0.2, 0.8]])
    unmoved = np.array([[0.7, 0.3], [0.4, 0.6], [0.6, 0.4]])
    kept = keep_given(moved, unmoved, np.array([0, 0, -1]))
    np.testing.assert_allclose(kept, [[0.7, 0.3], [0.5, 0.5], [0.2, 0.8]], atol=1e-8)
    assert kept[1].argmax() == 0


@pytest.mark.parametrize(
    "proportions", [[0.5], [0.5, 0.6], [1.0, 0.0], {0: 0.5}, {0: 0.5, 2: 0.5}, "truth"]
)
def test_bad_proportions(biased, proportions):
    x, y, _ = biased
    with pytest.raises(InvalidInput, match="proportions"):
        classifier(class_proportions=proportions).fit(x, y)


def test_proportions_with_unseen_classes_are_refused(biased):
    x, y, _ = biased
    with pytest.raises(InvalidInput, match="beside max_classes"):
        gq.GraphClassifier(
            class_proportions="labels", max_classes=3, inference=gq.inference.MCMC(n_samples=50)
        ).fit(x, y)


def test_messages_name_the_argument_of_the_user():
    shares = {"a": 30, "b": 70}
    with pytest.raises(InvalidInput, match=r"class_proportions: .* add to 100"):
        shares_of(shares, np.array(["a", "b"]), np.array([0, 1]), None)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_unlabelled_rows_there_is_no_threshold(n_classes):
    X = RNG.normal(size=(40, 2))
    y = np.arange(40) % n_classes
    model = gq.models.Fixed("matern", "probit")
    quick = {"model": model, "inference": "expectation-propagation"}
    plain = gq.GraphClassifier(**quick).fit(X, y)
    shares = np.full(n_classes, 1 / n_classes)
    assert gq.results.class_thresholds(plain.result_, shares) is None
    tuned = gq.GraphClassifier(class_proportions=shares, **quick).fit(X, y)
    np.testing.assert_array_equal(tuned.transduction_, plain.transduction_)
    np.testing.assert_array_equal(tuned.predict(X + 0.01), plain.predict(X + 0.01))


@pytest.mark.parametrize("shares", [[0.5, 0.6], [1.0, 0.0], [0.2, 0.3, 0.5]])
def test_wrong_shares_are_refused_by_the_name_of_the_argument(shares):
    y = np.r_[0, 1, np.full(18, -1)]
    classifier = gq.GraphClassifier(class_proportions=shares)
    with pytest.raises(InvalidInput, match=r"^class_proportions: "):
        classifier.fit(RNG.normal(size=(20, 2)), y)
