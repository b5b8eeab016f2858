"""Rows that are added after the fit."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput

OPTIONS = {
    "model": "largest-evidence",
    "inference": "expectation-propagation",
    "n_neighbors": 8,
}


def clouds(n_classes, n_each=80, seed=0):
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.repeat(np.arange(n_classes), n_each))
    features = rng.normal(size=(len(classes), 3)) + 3.0 * classes[:, None]
    return features, classes


def fitted(features, classes, n_old, **options):
    y = np.full(n_old, -1)
    y[:12] = classes[:12]
    return gq.GraphClassifier(**{**OPTIONS, **options}).fit(features[:n_old], y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_added_rows_are_equal_to_fitted_rows(n_classes):
    """The result is that of a fit with all rows and the hyperparameters of the first fit."""
    features, classes = clouds(n_classes)
    n_old = len(features) - 50
    classifier = fitted(features, classes, n_old)
    posterior = classifier.result_.posterior
    later = np.full(50, -1)
    later[:5] = classes[n_old : n_old + 5]
    assert classifier.add_rows(features[n_old:], later) is classifier
    y = np.full(len(features), -1)
    y[:12], y[n_old : n_old + 5] = classes[:12], later[:5]
    known = gq.models.Fixed(posterior.prior, posterior.likelihood)
    expected = gq.GraphClassifier(**OPTIONS | {"model": known}).fit(features, y)
    bound = 1e-4 if n_classes == 2 else 4 * np.sqrt(2 * 0.25 / 2000)
    np.testing.assert_allclose(
        classifier.label_distributions_, expected.label_distributions_, atol=bound
    )
    np.testing.assert_array_equal(classifier.graph_.components, expected.graph_.components)
    proba = classifier.predict_proba(features)
    np.testing.assert_allclose(proba, classifier.label_distributions_)


def test_extended_rows_keep_their_predictions():
    features, classes = clouds(2)
    classifier = fitted(features, classes, 120)
    predicted = classifier.predict_proba(features[120:])
    before = classifier.label_distributions_
    classifier.add_rows(features[120:], eigenpairs="extend")
    np.testing.assert_allclose(classifier.label_distributions_[:120], before, atol=1e-5)
    np.testing.assert_allclose(classifier.label_distributions_[120:], predicted, atol=1e-5)
    # Added rows accept labels, and further rows can be added.
    classifier.add_labels([130], [1 - classifier.transduction_[130]])
    assert abs(classifier.label_distributions_[130] - predicted[10]).max() > 0.05
    more = clouds(2, 10, seed=1)[0]
    classifier.add_rows(more, eigenpairs="extend").add_rows(more + 0.01)
    assert len(classifier.transduction_) == 200
    assert classifier.result_.posterior.spectrum.residuals.max() < 1e-6


def test_rows_are_added_to_covariance_columns():
    features, classes = clouds(2)
    options = {"model": gq.models.Fixed("regularized-laplacian", "probit")}
    classifier = fitted(features, classes, 120, **options)
    with pytest.raises(IncompatibleParts, match="series"):
        classifier.add_rows(features[120:], eigenpairs="extend")
    classifier.add_rows(features[120:], classes[120:])
    y = np.r_[classes[:12], np.full(108, -1), classes[120:]]
    expected = gq.GraphClassifier(**{**OPTIONS, **options}).fit(features, y)
    np.testing.assert_allclose(
        classifier.label_distributions_, expected.label_distributions_, atol=1e-5
    )


def test_class_proportions_hold_after_rows_were_added():
    features, classes = clouds(2)
    classifier = fitted(features, classes, 120, class_proportions={0: 0.3, 1: 0.7})
    classifier.add_rows(features[120:])
    assert abs((classifier.transduction_[12:] == 1).mean() - 0.7) <= 1 / 148


def test_rows_that_cannot_be_added_change_nothing(tmp_path):
    features, classes = clouds(2)
    classifier = fitted(features, classes, 120)
    before = classifier.label_distributions_
    for rows, labels, words in (
        (features[120:, :2], None, "features"),
        (features[120:], classes[:3], "3 values"),
        (features[120:], np.full(40, 7), "not among the classes"),
        (np.full((2, 3), np.nan), None, "NaN"),
    ):
        with pytest.raises(ValueError, match=words):
            classifier.add_rows(rows, labels)
    with pytest.raises(InvalidInput, match="'warm' is unknown"):
        classifier.add_rows(features[120:], eigenpairs="warm")
    assert classifier.graph_.n_nodes == len(classifier.transduction_) == 120
    np.testing.assert_array_equal(classifier.label_distributions_, before)
    classifier.save(tmp_path / "fit.nc")
    with pytest.raises(InvalidInput, match="files do not hold it"):
        gq.GraphClassifier.load(tmp_path / "fit.nc").add_rows(features[120:])
    complete = fitted(features, classes, 120, graph="complete")
    with pytest.raises(InvalidInput, match="no rows can be added to a graph of kind 'complete'"):
        complete.add_rows(features[120:])
