"""Tags learn from each other which components are likely: sums over all that may be the case."""

import itertools

import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import multivariate_normal

import graphuq as gq
from graphuq.errors import IncompatibleParts
from graphuq.inference.model_average import screened
from graphuq.models import Labels
from graphuq.models.common_component import OWN_SHARE, common_log_odds
from graphuq.models.few_variables import log_prior_of_sets, with_few_variables
from graphuq.models.learnt_odds import learnt_mixture

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
    of_sets = [log_prior_of_sets(one)[kept] for one in (alone[0], found[1])]  # part of evidence
    prior = np.exp(alone[0].prior.log_probabilities[kept] - of_sets[0])
    prior /= prior.sum()
    evidences += of_sets[0]
    posterior = prior * np.exp(evidences - evidences.max())
    posterior /= posterior.sum()
    # Σ_m* p(m*) W(m*) (…) for one other tag, whose average has the evidence 1.
    common = prior * ((1 - OWN_SHARE) * posterior / prior + OWN_SHARE)
    expected = ((1 - OWN_SHARE) * common + OWN_SHARE * prior) * np.exp(of_sets[1])
    expected /= expected.sum()
    np.testing.assert_allclose(odds, expected, atol=0.02 * expected.max())
    assert np.corrcoef(odds, expected)[0, 1] > 0.99
    assert np.corrcoef(odds, prior)[0, 1] < 0.99  # the first tag did change them


def test_each_tag_has_its_own_few_variables():
    """The prior of a set of variables belongs to the evidence of its tag, as other tags see it."""
    rng = np.random.default_rng(3)
    X = rng.random((120, 8))
    basis = gq.Basis.of(gq.graphs.knn_graph(X, n_neighbors=6), n_eigenpairs=20)
    nodes = np.arange(0, 120, 3)
    several = [Labels(nodes, (X[nodes, j] * 4).astype(int) % 2, 2) for j in (2, 5)]
    average = gq.models.Average(label_design="random")
    own = [with_few_variables(basis, labels) for labels in several]
    of_sets = [one.blocks[-1].log_prior for one in own]
    assert of_sets[0] < -3
    priors, evidences = [], []
    for one, labels in zip(own, several, strict=True):
        alone = average._on(one, labels)
        found = screened(alone)
        priors.append(alone.prior.log_probabilities)
        evidences.append(found.log_weights - priors[-1])
    uses = alone.prior.uses("few variables")
    plain = np.exp(priors[0] - np.where(uses, of_sets[0], 0.0))  # all sets count as one
    joint = np.exp(evidences + np.outer(of_sets, uses) - np.max(evidences))
    expected = by_two_sums(plain / plain.sum(), joint)
    for t, (labels, posterior) in enumerate(
        zip(several, average.posteriors(basis, several), strict=True)
    ):
        scales = posterior.spectrum.blocks[-1].scales
        assert np.flatnonzero(np.isfinite(scales)).tolist() == [2, 5][t : t + 1]
        odds = expected[t] * np.exp(of_sets[t] * uses)
        blocks = {"eigenpairs", *(block.name for block in posterior.spectrum.blocks)}
        kept = [terms[0].block in blocks for terms in alone.prior.components]
        found = np.exp(posterior.prior.log_probabilities)
        np.testing.assert_allclose(found, odds[kept] / odds[kept].sum(), rtol=1e-9)
        assert len(posterior.labels) == len(labels.codes)


def test_odds_of_tags_are_those_of_dense_covariances_and_exact_evidences():
    """Functions of few variables by hand: their covariance, and the prior of a set, once a tag."""
    X = np.random.default_rng(2).random((60, 4))
    basis = gq.Basis.of(gq.graphs.knn_graph(X, n_neighbors=6), n_eigenpairs=10)
    basis = basis.with_blocks(["exponential"])
    nodes = np.arange(0, 60, 6)
    several = [Labels(nodes, (X[nodes, j] > np.median(X[nodes, j])).astype(int), 2) for j in (2, 1)]
    found = gq.models.Average(label_design="random").posteriors(basis, several)
    plain = learnt_mixture(basis, 2, len(nodes))
    is_exponential = plain.uses("exponential")
    n_few = is_exponential.sum()
    prior = np.exp(np.append(plain.log_probabilities, plain.log_probabilities[is_exponential]))
    scales = [terms[0].scale for terms in np.array(plain.components)[is_exponential].tolist()]
    columns = basis.basis[nodes]
    own = [columns * plain.only(m).spectral_std(basis).modes for m in range(plain.n_components)]
    evidences, of_sets = [], []
    for labels, posterior in zip(several, found, strict=True):
        block = posterior.spectrum.blocks[-1]
        chosen = np.flatnonzero(np.isfinite(block.scales))
        apart = np.abs(X.T[:, :, None] - X.T[:, None, :])[chosen]
        apart /= apart.sum(axis=(1, 2), keepdims=True) / (60 * 59)
        values = block.values @ block.values.T
        [dense] = [
            one
            for one in (np.exp(-rate * apart.mean(axis=0)) for rate in (0.5, 2.0, 8.0))
            if np.allclose(one, values, atol=1e-4)
        ]
        of_sets.append(-np.log(4 * comb(4, len(chosen)) * 3))
        few = [scale**2 * dense[np.ix_(nodes, nodes)] for scale in scales]
        covariances = [*(one @ one.T for one in own), *few]
        evidences.append([probability_of(labels.codes, one) for one in covariances])
    uses = np.arange(len(prior)) >= len(prior) - n_few
    joint = np.array(evidences) * np.exp(np.outer(of_sets, uses))
    expected = by_two_sums(prior / prior.sum(), joint / joint.max())
    for posterior, odds, of_set in zip(found, expected, of_sets, strict=True):
        priced = [odds * np.exp(times * of_set * uses) for times in (0, 1, 2)]
        logs = posterior.prior.log_probabilities
        apart = [np.abs(logs - np.log(one / one.sum())).max() for one in priced]
        assert apart[1] < 0.06  # expectation propagation's
        assert min(apart[0], apart[2]) > 1.0  # no price, or twice the price


def probability_of(codes, covariance):
    """Return the probability of two classes: that a Gaussian with the probit's noise has signs."""
    signs = np.where(codes == 1, -1.0, 1.0)
    noisy = np.outer(signs, signs) * (covariance + np.eye(len(codes)))
    return multivariate_normal(np.zeros(len(codes)), noisy, seed=0).cdf(np.zeros(len(codes)))


def by_two_sums(prior, evidences):
    """Return the odds of each of two tags by a loop over the common component."""
    found = np.zeros(evidences.shape)
    for t in range(2):
        others = evidences[1 - t]
        for common, p in enumerate(prior):
            seen = (1 - OWN_SHARE) * others[common] + OWN_SHARE * (prior * others).sum()
            own = OWN_SHARE * prior
            own[common] += 1 - OWN_SHARE
            found[t] += p * seen * own
    return found / found.sum(axis=1, keepdims=True)


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
