"""Intervals of class probabilities against the quantiles of a Gaussian."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import graphuq as gq
from graphuq.labelling.intervals import N_DRAWS, ClassIntervals

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.DisconnectedGraphWarning")


def fitted(n_classes, likelihood, n_labels=6):
    digits = gq.datasets.load_digits(tuple(range(n_classes)))
    y = np.full(150, -1)
    y[:n_labels] = digits.target[:n_labels]
    model = gq.models.LargestEvidence(likelihood=likelihood)
    classifier = gq.GraphClassifier(model=model, inference="expectation-propagation")
    return classifier.fit(digits.data[:150], y).result_


def test_two_classes_have_the_quantiles_of_the_gaussian():
    """``Φ(u / γ)`` grows with u: its quantiles are those of u, here with their sampling error."""
    result = fitted(2, gq.likelihoods.Probit(noise_std=0.3))
    found = ClassIntervals.of(result)
    error = 4 * np.sqrt(0.05 * 0.95 / N_DRAWS)
    levels = [(max(1e-4, q - error), min(1 - 1e-4, q + error)) for q in (0.05, 0.95)]
    for row in (0, 1, 20, 60, 149):
        (low_minus, up_minus), (low, up) = found.at(row)
        mean, std = result.latent_mean[row], result.latent_std[row]
        for value, (first, last) in zip((low, up), levels, strict=True):
            ends = ndtr((mean + std * ndtri(np.array([first, last]))) / 0.3)
            assert ends[0] <= value <= ends[1]
        np.testing.assert_allclose([low_minus, up_minus], [1 - up, 1 - low], atol=1e-9)


@pytest.mark.parametrize("name", ["Softmax", pytest.param("Probit", marks=pytest.mark.slow)])
def test_several_classes(name):
    """Intervals are narrow at labels, and hold the probabilities nearly everywhere."""
    likelihood = getattr(gq.likelihoods, name)(noise_std=0.1, n_classes=4)
    result = fitted(4, likelihood, n_labels=8)
    found = ClassIntervals.of(result)
    ends = np.stack([found.at(row) for row in range(150)])
    assert ends.shape == (150, 4, 2)
    assert (ends[:, :, 0] <= ends[:, :, 1]).all()
    assert ((ends >= 0) & (ends <= 1)).all()
    own = result.probabilities.argmax(axis=1)
    width = (ends[:, :, 1] - ends[:, :, 0])[np.arange(150), own]
    assert np.median(width[:8]) < np.median(width[8:])
    p = result.probabilities
    inside = (ends[:, :, 0] - 0.1 <= p) & (p <= ends[:, :, 1] + 0.1)
    assert inside.mean() > 0.95


@pytest.mark.slow
def test_there_are_none_where_noise_is_unknown():
    unknown = gq.models.Fixed("inverse-laplacian", gq.likelihoods.GinzburgLandau())
    data = gq.datasets.two_moons(30, n_features=2, noise_std=0.05)
    y = np.full(30, -1)
    y[:4] = data.classes[:4]
    result = gq.GraphClassifier(model=unknown, inference="map").fit(data.features, y).result_
    assert ClassIntervals.of(result) is None


def test_many_classes_cost_little_more_than_few(monkeypatch):
    """The likelihood, whose quadrature takes time K² for all classes, is not asked."""
    result = fitted(4, gq.likelihoods.Probit(noise_std=0.1, n_classes=4), n_labels=8)
    found = ClassIntervals.of(result)
    monkeypatch.setattr(gq.likelihoods.Probit, "log_prob", None)
    assert found.at(0).shape == (4, 2)
