"""Tags learn from each other which components are likely: sums over all that may be the case."""

import itertools

import numpy as np
import pytest

import graphuq as gq
from graphuq.errors import IncompatibleParts
from graphuq.models import Labels
from graphuq.models.common_component import OWN_SHARE, common_log_odds

RNG = np.random.default_rng(0)


def by_enumeration(prior, evidences, own_share):
    """Return the odds of each tag by summing over the common component and those of all tags."""
    n_tags, n_components = evidences.shape
    odds = np.zeros(evidences.shape)
    for common in range(n_components):
        for numbers in itertools.product(range(n_components), repeat=n_tags):
            parts = [
                (1 - own_share) * (number == common) + own_share * prior[number]
                for number in numbers
            ]
            seen = [evidences[s, number] for s, number in enumerate(numbers)]
            for t in range(n_tags):  # without what its own labels say
                odds[t, numbers[t]] += prior[common] * np.prod(parts) * np.prod(np.delete(seen, t))
    return odds / odds.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("own_share", [0.1, OWN_SHARE, 0.9])
def test_odds_are_those_of_all_components_enumerated(own_share):
    prior = np.array([0.5, 0.3, 0.15, 0.05])
    evidences = np.exp(RNG.normal(0, 2, size=(3, 4)))
    evidences[1, 2] = 0.0  # a component that cannot be fitted
    with np.errstate(divide="ignore"):
        found = np.exp(common_log_odds(np.log(prior), np.log(evidences), own_share))
    np.testing.assert_allclose(found, by_enumeration(prior, evidences, own_share), rtol=1e-10)


def test_large_evidences_are_no_trouble():
    prior = np.log([0.25, 0.75])
    far = np.array([[-5_000.0, -4_000.0], [3_000.0, 3_900.0], [0.0, 0.0]])
    found = common_log_odds(prior, far)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0)
    np.testing.assert_allclose(found, common_log_odds(prior, far + [[7.0], [-9.0], [1.0]]))


def labels_of(basis):
    """Return labels of two tags at 20 nodes, one of which is unknown for the second tag."""
    nodes = np.arange(0, 60, 3)
    x = np.asarray(basis.features)[:, 0]
    first = Labels(nodes, (x[nodes] > 0).astype(int), 2)
    second = Labels(nodes[1:], (x[nodes[1:]] > 0.5).astype(int), 2)
    return [first, second]


@pytest.fixture(scope="module")
def basis():
    return gq.Basis.of(gq.graphs.knn_graph(RNG.normal(size=(60, 2)), n_neighbors=6))


def test_odds_of_an_average_follow_evidences_of_each_component(basis):
    """The evidence of every component by a run of its own, not by the screening."""
    several = labels_of(basis)
    alone = [gq.models.Average(label_design="random").posterior(basis, one) for one in several]
    found = gq.models.Average(label_design="random").posteriors(basis, several)
    of_second = found[1].prior
    kept = [list(alone[0].prior.components).index(terms) for terms in of_second.components
            if terms in alone[0].prior.components]  # fmt: skip
    assert len(kept) == of_second.n_components > 20
    odds = np.exp(of_second.log_probabilities)
    evidences = np.array(
        [gq.infer(alone[0].component(m), "expectation-propagation").log_evidence for m in kept]
    )
    prior = np.exp(alone[0].prior.log_probabilities[kept])
    prior /= prior.sum()
    posterior = prior * np.exp(evidences - evidences.max())
    posterior /= posterior.sum()
    # Σ_m* p(m*) W(m*) (…) for one other tag, whose average has the evidence 1.
    common = prior * ((1 - OWN_SHARE) * posterior / prior + OWN_SHARE)
    expected = (1 - OWN_SHARE) * common + OWN_SHARE * prior
    np.testing.assert_allclose(odds, expected, atol=0.02 * expected.max())
    assert np.corrcoef(odds, expected)[0, 1] > 0.99
    assert np.corrcoef(odds, prior)[0, 1] < 0.99  # the first tag did change them


def test_each_model_has_posteriors_of_several_tags(basis):
    several = labels_of(basis)
    model = gq.models.Likeliest()
    for labels, found in zip(several, model.posteriors(basis, several), strict=True):
        own = model.posterior(basis, labels)
        assert found.prior == own.prior
        np.testing.assert_array_equal(found.labels, own.labels)
    with pytest.raises(IncompatibleParts, match="order"):
        gq.models.OrderedAverage().posteriors(basis, several)
    graph = gq.graphs.knn_graph(np.asarray(basis.features), n_neighbors=6)
    tail = gq.laplacian_spectrum(graph, n_eigenpairs=20, tail_eigenvalue="mean")
    with pytest.raises(IncompatibleParts, match="without a tail"):
        gq.models.Average().posteriors(tail, several)
