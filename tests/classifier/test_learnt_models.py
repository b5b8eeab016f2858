"""Which labels tell the model: the likeliest of those learnt from other data, or the evidence."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.evidence.learnt_models import average_of_models, likeliest_model

MOONS = gq.datasets.two_moons(200, n_features=2, noise_std=0.25)


def fitted(n_labels, **settings):
    y = MOONS.classes.astype(object)
    y[n_labels:] = None
    settings = {"inference": "expectation-propagation", "n_eigenpairs": 30} | settings
    return gq.GraphClassifier(**settings).fit(MOONS.features, y).result_.posterior


@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize("inference", ["expectation-propagation", "laplace", "pcn"])
def test_other_methods_have_the_likeliest_model(inference):
    ours = fitted(40, inference=inference, until_converged=False, n_samples=20)
    codes = MOONS.classes[:40]
    expected = likeliest_model(average_of_models(ours.spectrum, np.arange(40), codes))
    assert repr(ours.prior) == repr(expected.prior)
    assert repr(ours.likelihood) == repr(expected.likelihood)
    assert ours.likelihood.random_labels
    assert ours.chosen_by_evidence == expected.chosen_by_evidence


def test_few_labels_leave_the_model_to_the_evidence():
    assert fitted(10).likelihood.random_labels
    assert not fitted(9).likelihood.random_labels


@pytest.mark.parametrize(
    "settings", [{"prior": "matern"}, {"likelihood": "probit"}, {"tail_eigenvalue": "mean"}]
)
def test_other_settings_keep_the_evidence(settings):
    assert not fitted(40, **settings).likelihood.random_labels


def test_labels_at_random_are_told_to_be_so():
    """Labels that follow no graph: probabilities stay near the shares of the classes."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200).astype(object)
    y[120:] = None
    model = gq.GraphClassifier(inference="expectation-propagation", n_eigenpairs=100)
    probability = model.fit(MOONS.features, y).label_distributions_[120:]
    assert np.abs(probability - 0.5).max() < 0.25
