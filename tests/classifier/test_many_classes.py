"""Hundreds of classes: what the default does, and how good its answer is."""

import warnings

import numpy as np
import pytest

import graphuq as gq
from graphuq.inference import nested_shared
from graphuq.inference.class_covariance import ClassCovariance
from graphuq.results.loading import load
from graphuq.results.summaries import gaussian_fields


def clusters(n_classes, n_rows=8, spread=0.5, seed=0):
    """Return features and classes of clusters in 20 dimensions, and labels, one a class."""
    rng = np.random.default_rng(seed)
    classes = np.repeat(np.arange(n_classes), n_rows)
    features = rng.normal(size=(n_classes, 20))[classes]
    features = features + spread * rng.normal(size=features.shape)
    y = np.full(len(classes), -1)
    y[n_rows * np.arange(n_classes)] = np.arange(n_classes)
    return features, classes, y


@pytest.mark.filterwarnings("ignore:The number of unique classes")
@pytest.mark.parametrize("n_classes", [123, pytest.param(200, marks=pytest.mark.slow)])
def test_hundreds_of_classes_with_one_label_each(n_classes, tmp_path):
    """The default answers by a Gaussian of its likeliest component, right, and files hold it.

    Fewer than 123 classes are answered by draws.
    """
    features, classes, y = clusters(n_classes)
    sweeps = []
    fit = gq.GraphClassifier(progress=lambda *report: sweeps.append(report[0])).fit(features, y)
    answer, hidden = fit.result_.answer, y < 0
    assert isinstance(answer.white_covariance, ClassCovariance)
    assert "sweeps" in sweeps
    probabilities = fit.label_distributions_
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, atol=1e-9)
    assert (probabilities.argmax(axis=1) == classes)[hidden].mean() > 0.95
    of_class = probabilities[np.arange(len(y)), classes]
    assert np.log(of_class)[hidden].mean() > -0.6
    assert "sampl" not in fit.result_.diagnostics.description
    fit.result_.save(tmp_path / "many.nc")
    again = load(tmp_path / "many.nc")
    np.testing.assert_array_equal(again.probabilities, fit.result_.probabilities)
    np.testing.assert_allclose(
        again.answer.white_covariance.mean_of_classes(),
        answer.white_covariance.mean_of_classes(),
        rtol=1e-12,
    )


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_the_factors_of_the_nearest_label_correct_the_probabilities(monkeypatch):
    """Beside draws, the mean error of the probabilities falls to less than a third."""
    features, _, y = clusters(40, 10)
    first = gq.GraphClassifier(model=gq.models.Likeliest(), inference="expectation-propagation")
    posterior = first.fit(features, y).result_.posterior
    drawn = gq.infer(posterior, "collapsed-gibbs", n_samples=400).probabilities
    monkeypatch.setattr(nested_shared, "shares_sites", lambda *sizes: True)

    def error():
        method = gq.inference.ExpectationPropagation(tolerance=1e-3)
        found = gq.infer(posterior, method).probabilities
        return np.abs(found - drawn).max(axis=1)[y < 0].mean()

    tilted = error()
    monkeypatch.setattr(gaussian_fields, "tilted_mean", lambda mean, *rest: mean)
    plain = error()
    assert tilted < plain / 3


def test_more_classes_than_eigenpairs_have_as_many_eigenpairs():
    """By default only; a number is taken as it is."""
    features, _, y = clusters(155, 2)
    model = gq.models.Fixed("matern", gq.likelihoods.Probit(0.1))
    for given, expected in (("auto", 155), (40, 40)):
        fit = gq.GraphClassifier(
            n_eigenpairs=given, model=model, inference="expectation-propagation"
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's, about many classes
            fit.fit(features, y)
        assert fit.result_.posterior.spectrum.n_eigenpairs == expected
