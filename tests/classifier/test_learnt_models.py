"""Which labels tell the model: the likeliest of those learnt from other data, or the evidence."""

import numpy as np
import pytest
from graphuq.evidence.learnt_mixture import learnt_mixture
from graphuq.evidence.learnt_models import average_of_models, likeliest_model

import graphuq as gq
from graphuq.inference.model_average import likeliest_of_kind

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
    more = learnt_mixture(gq.with_feature_columns(spectrum, MOONS.features), 2, 40)
    chosen = np.array(more.on_features) > 0
    probability = np.exp(more.log_probabilities)
    assert probability[chosen].sum() == pytest.approx(0.5)  # 20 labels a class
    np.testing.assert_allclose(2 * probability[~chosen], np.exp(plain.log_probabilities))
    assert (1 / np.array(more.scale)[chosen]).tolist() == pytest.approx([0.03, 0.1, 0.3, 1, 3])


def test_one_component_is_of_the_more_probable_kind():
    """Components on the graph are many: the sum of their probabilities counts."""
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(MOONS.features), n_eigenpairs=30)
    prior = gq.priors.MaternMixture(
        tau=[0.1, 0.2, 0.3, 1],
        alpha=[2, 2, 2, 1],
        scale=[1, 1, 1, 1],
        with_constant=[0, 0, 0, 0],
        on_features=[0, 0, 0, 1],
        model=gq.Categorical([0.25] * 4),
    )
    spectrum = gq.with_feature_columns(spectrum, MOONS.features)
    posterior = gq.Posterior(spectrum, prior, gq.likelihoods.Probit(1.0), [0, 1], [1, -1])
    numbers = np.arange(4)
    assert likeliest_of_kind(posterior, numbers, np.array([0.2, 0.25, 0.2, 0.35])) == 1
    assert likeliest_of_kind(posterior, numbers, np.array([0.1, 0.25, 0.1, 0.55])) == 3
    assert likeliest_of_kind(posterior, numbers[3:], np.array([0.35])) == 3


def test_labels_at_random_are_told_to_be_so():
    """Labels that follow no graph: probabilities stay near the shares of the classes."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200).astype(object)
    y[120:] = None
    model = gq.GraphClassifier(inference="expectation-propagation", n_eigenpairs=100)
    probability = model.fit(MOONS.features, y).label_distributions_[120:]
    assert np.abs(probability - 0.5).max() < 0.25
