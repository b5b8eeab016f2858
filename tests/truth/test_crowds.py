"""The model of readings of a crowd against enumeration of classes, ease and people.

The grids are small, so that everything can be enumerated.
"""

import itertools

import numpy as np
import pytest
from reference import covariance, orthant
from scipy.special import gammaln
from scipy.stats import norm

import graphuq as gq
from conftest import random_adjacency
from graphuq.classifier.annotator_rounds import run_rounds
from graphuq.errors import InvalidInput
from graphuq.inference.collapsed_gibbs.reading_prior import ReadingPrior
from graphuq.inference.collapsed_gibbs.reading_sampler import ReadingSampler, informs, joined

LEVELS, ABILITIES, MEANS = np.array([-1.0, 0.5, 2.0]), np.array([-1.0, 1.0]), np.array([0.0, 1.5])
SPREADS, DIFFICULTIES, EASES = np.array([0.5, 2.0]), np.array([0.0, 2.0]), np.array([-1.0, 0, 1.0])
GRIDS = {
    "levels": LEVELS,
    "abilities": ABILITIES,
    "means": MEANS,
    "spreads": SPREADS,
    "difficulties": DIFFICULTIES,
    "eases": EASES,
}
PROBLEMS = {  # readings, and class probabilities before them
    2: (np.array([[0, 1], [1, 1], [0, -1]]), np.array([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]])),
    3: (np.array([[0, 2], [2, 1]]), np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])),
}


def weights(values, mean, std):
    found = norm.pdf(values, mean, std)
    return found / found.sum()


CDF = {
    (r, x): norm.cdf(r * (LEVELS + x)) for r in (-1, 1) for x in np.outer(EASES, DIFFICULTIES).flat
}
LEVEL_WEIGHTS = {
    (mu + alpha, s): weights(LEVELS, mu + alpha, s)
    for mu in MEANS
    for alpha in ABILITIES
    for s in SPREADS
}
ABILITY_WEIGHTS = {tau: weights(ABILITIES, 0, tau) for tau in SPREADS}
EASE_WEIGHTS = weights(EASES, 0, 1)


def probability_of_person(said, classes, eases, sigma, mu, tau, s, n_classes):
    """Return p(readings of a person | items and what people share), people integrated out.

    Also return the same times the probability of a right reading in each class, given any ease.
    """
    total, right = 0.0, np.zeros(n_classes)
    counts = np.zeros((n_classes, n_classes))
    for k, r in zip(classes, said, strict=True):
        counts[k, r] += r >= 0 and r != k
    other = 1 / (n_classes - 1)
    wrong = 1.0  # Dirichlet-multinomial of the wrong readings of each class
    for k in range(n_classes):
        n = counts[k].sum()
        mine = gammaln(other + np.delete(counts[k], k)) - gammaln(other)
        wrong *= np.exp(mine.sum() - gammaln(1 + n))
    fits = np.ones((n_classes, len(LEVELS)))  # p(readings of items of a class | level)
    for k, x, r in zip(classes, eases, said, strict=True):
        if r >= 0:
            fits[k] *= CDF[(1 if r == k else -1), sigma[k] * x]
    for alpha, share in zip(ABILITIES, ABILITY_WEIGHTS[tau], strict=True):
        own = np.array([LEVEL_WEIGHTS[mu[k] + alpha, s] for k in range(n_classes)]) * fits
        each = own.sum(axis=1)
        total += share * each.prod()
        for k in range(n_classes):
            spread = sum(w * CDF[1, sigma[k] * x] for x, w in zip(EASES, EASE_WEIGHTS, strict=True))
            right[k] += share * each.prod() / each[k] * own[k] @ spread
    return total * wrong, right * wrong


def truth(readings, n_classes):
    """Return p(readings | classes) for all classes, and the same times the accuracy of person 0."""
    n_items = len(readings)
    found, accurate = np.zeros((n_classes,) * n_items), np.zeros((n_classes,) * n_items)
    share_of_ease = weights(EASES, 0, 1)
    means = weights(MEANS, 1.0, 0.75)
    for mu_i in itertools.product(range(2), repeat=n_classes):
        for sigma in itertools.product(DIFFICULTIES, repeat=n_classes):
            for tau, s in itertools.product(SPREADS, repeat=2):
                before = np.prod(means[list(mu_i)])
                for classes in np.ndindex(found.shape):
                    shares = np.bincount(classes, minlength=n_classes) / n_items
                    for x_i in itertools.product(range(3), repeat=n_items):
                        p = before * np.prod(share_of_ease[list(x_i)])
                        items = classes, EASES[list(x_i)], sigma, MEANS[list(mu_i)], tau, s
                        first, right = probability_of_person(readings[:, 0], *items, n_classes)
                        rest = [
                            probability_of_person(said, *items, n_classes)[0]
                            for said in readings.T[1:]
                        ]
                        found[classes] += p * first * np.prod(rest)
                        accurate[classes] += p * right @ shares * np.prod(rest)
    return found, accurate


def members_of(joint):
    """Return the probabilities of the classes of each item."""
    axes = range(joint.ndim)
    sums = [joint.sum(axis=tuple(a for a in axes if a != j)) for j in axes]
    return np.array(sums) / joint.sum()


@pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_people_and_items_given_class_probabilities(n_classes):
    readings, shares = PROBLEMS[n_classes]
    likelihood, accurate = truth(readings, n_classes)
    prior = np.ones_like(likelihood)
    for j, row in enumerate(shares):
        prior = prior * np.moveaxis(row.reshape(-1, *[1] * (prior.ndim - 1)), 0, j)
    joint = prior * likelihood
    grid = ReadingPrior.of(n_classes, **GRIDS)
    chains = [
        ReadingSampler(readings, n_classes, np.random.default_rng(c), grid).draws(
            np.log(shares), 4_000, 3, 300
        )
        for c in range(8)
    ]
    draws = joined(chains)
    assert draws.errors.max() < 0.004
    np.testing.assert_allclose(draws.members, members_of(joint), atol=4.5 * draws.errors.max())
    found = draws.accuracy[..., 0].mean(axis=1)
    error = found.std(ddof=1) / np.sqrt(8)
    assert error < 0.003
    expected = (prior * accurate).sum() / joint.sum()  # of independent items with these shares
    assert found.mean() == pytest.approx(expected, abs=4.5 * error)
    said = informs(members_of(joint), np.log(shares))
    np.testing.assert_allclose(said * shares / (said * shares).sum(1)[:, None], members_of(joint))


def test_rounds_between_field_and_readings():
    """Four nodes whose field is correlated: rounds against enumeration of all classes."""
    n_nodes, pairs, noise = 7, 5, 0.6
    adjacency, nodes = random_adjacency(n_nodes), [0, 3, 6]
    readings = PROBLEMS[2][0]
    basis = gq.laplacian_spectrum(gq.graphs.from_adjacency(adjacency), n_eigenpairs=pairs)
    model = gq.models.Fixed(gq.priors.InverseLaplacian(), gq.likelihoods.Probit(noise))
    y = np.full(n_nodes, -1)
    y[nodes] = [0, 1, 0]
    posterior = model.posterior(basis, gq.models.Labels.of(y))
    grid = ReadingPrior.of(2, **GRIDS)
    found = run_rounds(posterior, model, basis, readings, 0, grid)
    assert found.change < 0.02  # 4,000 sweeps have a Monte-Carlo error of about 0.01
    assert found.posterior.likelihood.noise_std == noise  # that of the model
    likelihood, _ = truth(readings, 2)
    noisy = covariance(adjacency, pairs, None)[np.ix_(nodes, nodes)] + noise**2 * np.eye(3)
    prior = np.array([orthant(noisy, 2 * np.array(z) - 1) for z in np.ndindex(2, 2, 2)]).reshape(
        2, 2, 2
    )
    expected = members_of(prior * likelihood)
    error = np.abs(found.draws.members - expected).max()
    # Rounds take classes as independent. With three items and nothing known of two people they
    # are not, and this is as wrong as it gets.
    assert error < 0.05
    alone = np.abs(members_of(likelihood) - expected).max()
    assert alone > 0.06  # the field has a part


def test_readings_alone_find_who_is_good():
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 2, 400)
    right = rng.uniform(size=(400, 5)) < [0.95, 0.9, 0.6, 0.55, 0.2]
    readings = np.where(right, classes[:, None], 1 - classes[:, None])
    readings[rng.uniform(size=(400, 5)) < 0.3] = -1
    said = ReadingSampler(readings, 2, rng).alone(30, 20)
    votes = np.stack([(readings == k).sum(axis=1) for k in range(2)], axis=1)
    accuracy = (said.argmax(axis=1) == classes).mean()
    assert accuracy > (votes.argmax(axis=1) == classes).mean() + 0.03


def test_a_class_that_is_never_likely_is_refused():
    labels = np.zeros((30, 3), int)
    labels[0, 0] = 1
    with pytest.raises(InvalidInput, match=r"y: class \[1\] is the most probable one of no row"):
        gq.AnnotatorClassifier().fit(None, labels)
