"""Which labels tell the model: the likeliest of those learnt from other data, or the evidence."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.evidence.learnt_mixture import learnt_mixture
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


def test_odds_of_features_grow_with_labels():
    graph = gq.graphs.knn_graph(MOONS.features)
    spectrum = gq.laplacian_spectrum(graph, n_eigenpairs=30)
    plain = learnt_mixture(spectrum, 2, 40)
    assert not any(plain.on_features)
    more = learnt_mixture(gq.spectrum.with_features(spectrum, MOONS.features), 2, 40)
    chosen = np.array(more.on_features) > 0
    probability = np.exp(more.log_probabilities)
    assert probability[chosen].sum() == pytest.approx(0.5)  # 20 labels a class
    np.testing.assert_allclose(2 * probability[~chosen], np.exp(plain.log_probabilities))
    assert (1 / np.array(more.scale)[chosen]).tolist() == pytest.approx([0.03, 0.1, 0.3, 1, 3])


def test_labels_at_random_are_told_to_be_so():
    """Labels that follow no graph: probabilities stay near the shares of the classes."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200).astype(object)
    y[120:] = None
    model = gq.GraphClassifier(inference="expectation-propagation", n_eigenpairs=100)
    probability = model.fit(MOONS.features, y).label_distributions_[120:]
    assert np.abs(probability - 0.5).max() < 0.25
