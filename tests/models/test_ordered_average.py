"""The average of ordered classes: what is left out, and what its evidence is."""

import numpy as np
import pytest
from scipy.special import logsumexp

import graphuq as gq
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.models import Labels, OrderedAverage
from graphuq.models import ordered as module
from graphuq.models.learnt_odds import learnt_mixture

N = 200
X = np.random.default_rng(0).normal(size=(N, 3))
NOISY = X[:, 0] + np.sin(X[:, 1]) + 0.4 * np.random.default_rng(1).normal(size=N)
TRUTH = np.digitize(NOISY, [-0.8, 0.6])
BASIS = gq.Basis.of(gq.graphs.knn_graph(X, 15))


def labels_of(n):
    return Labels(np.arange(n), TRUTH[:n], 3, ordered=True)


def test_field_and_noise_have_variance_one():
    mixture, noise = module.of_unit_variance(learnt_mixture(BASIS, 3, 30))
    for m in range(0, mixture.n_components, 17):
        std = mixture.only(m).spectral_std(BASIS).modes
        mean_variance = float((std**2 @ BASIS.energy) / N)
        assert mean_variance + noise[m] ** 2 == pytest.approx(1.0, abs=1e-9)


def test_what_is_left_out_does_not_change_the_answer(monkeypatch):
    labels = labels_of(30)
    found = OrderedAverage().posterior(BASIS, labels)
    monkeypatch.setattr(module, "BEHIND", 1e9)
    whole = OrderedAverage().posterior(BASIS, labels)
    assert found.prior.n_components < whole.prior.n_components
    few, every = gq.infer(found), gq.infer(whole)
    assert few.log_evidence == pytest.approx(every.log_evidence, abs=0.02)
    assert few.probabilities == pytest.approx(every.probabilities, abs=0.005)


def test_evidence_is_the_sum_over_all_components():
    """Prior odds of what is left out count, although nothing of it is fitted."""
    found = OrderedAverage().posterior(BASIS, labels_of(30))
    mixture, noise = module.of_unit_variance(learnt_mixture(BASIS, 3, 30))
    likelihood = gq.likelihoods.Ordered(found.likelihood.thresholds, noise)
    whole = gq.Posterior(BASIS, mixture, likelihood, np.arange(30), TRUTH[:30])
    method = gq.inference.ExpectationPropagation(tolerance=1e-3)
    logs = [
        mixture.log_probabilities[m] + method.fit(whole.component(m).plain_target).log_evidence
        for m in range(mixture.n_components)
    ]
    assert gq.infer(found).log_evidence == pytest.approx(logsumexp(logs), abs=0.02)


def test_rounds_with_many_labels_find_the_same(monkeypatch):
    labels = labels_of(150)
    usual = OrderedAverage().posterior(BASIS, labels)
    monkeypatch.setattr(module, "N_COMPARED", 20)
    again = OrderedAverage().posterior(BASIS, labels)
    assert again.likelihood.thresholds == pytest.approx(usual.likelihood.thresholds, abs=0.05)
    one, other = gq.infer(usual), gq.infer(again)
    assert other.probabilities == pytest.approx(one.probabilities, abs=0.02)


def test_labels_that_it_is_not_made_for():
    labels = labels_of(30)
    with pytest.raises(IncompatibleParts, match="needs the order"):
        OrderedAverage().posterior(BASIS, labels._replace(ordered=False))
    with pytest.raises(IncompatibleParts, match="no weights"):
        OrderedAverage().check(labels._replace(weights=np.linspace(0.5, 1, 30)))
    graph = gq.graphs.knn_graph(X, 15)
    tail = gq.laplacian_spectrum(graph, n_eigenpairs=50, tail_eigenvalue="mean")
    with pytest.raises(IncompatibleParts, match="without a tail"):
        OrderedAverage().posterior(tail, labels)
    with pytest.raises(InvalidInput, match="label_design"):
        OrderedAverage("often")


def test_auto_chooses_it_for_three_grades_and_not_for_two():
    labels = labels_of(30)
    assert repr(gq.models.Auto().select(BASIS, labels)) == "OrderedAverage()"
    two = Labels(np.arange(30), (TRUTH[:30] > 0).astype(int), 2, ordered=True)
    assert repr(gq.models.Auto().select(BASIS, two)) == "Average()"
