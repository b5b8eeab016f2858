"""Which model the labels get: an average, its likeliest component, or that of largest evidence."""

import numpy as np
import pytest

import graphuq as gq
from graphuq.inference.model_average import likeliest_of_block
from graphuq.models import Average, Labels, LargestEvidence, Likeliest, Mixture, Term, auto
from graphuq.models.learnt_odds import learnt_mixture

MOONS = gq.datasets.two_moons(200, n_features=2, noise_std=0.25)
GRAPH = gq.graphs.knn_graph(MOONS.features, 15, gq.graphs.SelfTuning(4.0))  # as classifiers
SPECTRUM = gq.laplacian_spectrum(GRAPH, n_eigenpairs=30)
BASIS = gq.Basis(SPECTRUM).with_functions(MOONS.features)


def fitted(n_labels, **settings):
    y = MOONS.classes.astype(object)
    y[n_labels:] = None
    settings = {"inference": "expectation-propagation", "n_eigenpairs": 30} | settings
    return gq.GraphClassifier(**settings).fit(MOONS.features, y)


def labels_of(n_labels):
    return Labels.of(np.where(np.arange(200) < n_labels, MOONS.classes, -1))


@pytest.mark.slow_after(1)
@pytest.mark.filterwarnings("ignore::graphuq.errors.NotConvergedWarning")
@pytest.mark.parametrize(
    "inference",
    [
        "expectation-propagation",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("laplace", "pcn")),
    ],
)
@pytest.mark.parametrize("model", ["auto", "likeliest"])
def test_no_method_changes_the_model(model, inference):
    if inference == "pcn":
        inference = gq.inference.MCMC("pcn", n_samples=20, n_warmup=50, stop=None)
    classifier = fitted(40, model=model, inference=inference)
    ours = classifier.result_.posterior
    named = {"auto": Average(), "likeliest": Likeliest()}[model]
    expected = named.posterior(BASIS, labels_of(40))
    assert classifier.model_ == named.used(expected)
    assert repr(ours.prior) == repr(expected.prior)
    if model == "auto":
        assert repr(ours.prior.components) == repr(expected.prior.components)
    assert repr(ours.likelihood) == repr(expected.likelihood)
    assert ours.likelihood.random_labels
    assert ours.chosen_by_evidence == expected.chosen_by_evidence
    assert ours.prior.is_mixture == (model == "auto" or bool(expected.spectrum.blocks))


@pytest.mark.parametrize(
    ("n_labels", "limit", "expected"),
    [(40, 40, Average), (4, 40, Average), (10, 9, Likeliest)],
)
def test_the_number_of_labels_selects_the_model(n_labels, limit, expected, monkeypatch):
    monkeypatch.setattr(auto, "MAX_AVERAGED", limit)
    assert type(auto.Auto().select(BASIS, labels_of(n_labels))) is expected


def test_soft_labels_unseen_classes_and_tails_leave_the_model_to_the_evidence():
    labels, select = labels_of(40), auto.Auto().select
    soft = np.eye(2)[labels.codes]
    assert select(BASIS, labels._replace(distributions=soft)) == LargestEvidence()
    assert select(BASIS, labels._replace(max_classes=3)) == LargestEvidence()
    assert select(BASIS, labels._replace(max_classes=2)) == Average()
    tail = gq.Basis.of(GRAPH, n_eigenpairs=30, tail_eigenvalue="mean")
    assert select(tail, labels) == LargestEvidence()


@pytest.mark.parametrize("settings", [{"model": "largest-evidence"}, {"tail_eigenvalue": "mean"}])
def test_the_evidence_chooses_numbers(settings):
    classifier = fitted(40, **settings)
    posterior = classifier.result_.posterior
    assert not posterior.likelihood.random_labels
    assert set(posterior.chosen_by_evidence) == {"tau", "alpha", "include_constant", "noise_std"}
    assert classifier.model_ == gq.models.Fixed(posterior.prior, posterior.likelihood)


def test_what_is_given_is_kept():
    prior, likelihood = gq.priors.Matern(0.3, 4.0), gq.likelihoods.Probit(0.1)
    one = LargestEvidence(prior=prior).posterior(BASIS, labels_of(40))
    assert one.prior == prior
    assert set(one.chosen_by_evidence) == {"noise_std"}
    other = LargestEvidence(likelihood=likelihood).posterior(BASIS, labels_of(40))
    assert other.likelihood == likelihood
    assert set(other.chosen_by_evidence) == {"tau", "alpha", "include_constant"}
    both = gq.models.Fixed(prior, likelihood).posterior(BASIS, labels_of(40))
    assert (both.prior, both.likelihood, both.chosen_by_evidence) == (prior, likelihood, {})
    assert both.spectrum is SPECTRUM  # without functions, which no prior on the graph uses


def test_components_on_functions_have_five_noises():
    plain = learnt_mixture(SPECTRUM, 2, 40)
    assert not plain.on_features.any()
    more = learnt_mixture(BASIS.with_blocks(["exponential"]), 2, 40)
    chosen = more.on_features
    probability = np.exp(more.log_probabilities)
    on_graph = probability[~chosen] / probability[~chosen].sum()
    expected = np.exp(plain.log_probabilities[:-10])  # without ten steep ones
    np.testing.assert_allclose(on_graph, expected / expected.sum())
    scales = np.array([terms[0].scale for terms in more.components])
    assert (1 / scales[chosen]).tolist() == pytest.approx([0.03, 0.1, 0.3, 1, 3])


def test_one_component_is_of_the_most_probable_block():
    """Components on a graph are many: the sum of their probabilities counts."""
    on_graph = [Term(1.0, gq.priors.Matern(tau, 2.0)) for tau in (0.1, 0.2, 0.3)]
    prior = Mixture([*on_graph, Term(1.0, block="exponential")], gq.Categorical([0.25] * 4))
    posterior = gq.Posterior(BASIS, prior, gq.likelihoods.Probit(1.0), [0, 1], [1, -1])
    numbers = np.arange(4)
    assert likeliest_of_block(posterior, numbers, np.array([0.2, 0.25, 0.2, 0.35])) == 1
    assert likeliest_of_block(posterior, numbers, np.array([0.1, 0.25, 0.1, 0.55])) == 3
    assert likeliest_of_block(posterior, numbers[3:], np.array([0.35])) == 3


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("model", ["auto", "likeliest"])
def test_labels_at_random_are_told_to_be_so(model):
    """Labels that follow no graph: probabilities stay near the shares of the classes."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200).astype(object)
    y[120:] = None
    settings = {"inference": "expectation-propagation", "n_eigenpairs": 100}
    classifier = gq.GraphClassifier(model=model, **settings)
    probability = classifier.fit(MOONS.features, y).label_distributions_[120:]
    assert np.abs(probability - 0.5).max() < 0.25
