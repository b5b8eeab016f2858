"""Several annotators against enumeration of the true classes, confusion matrices integrated out."""

import itertools

import numpy as np
import pytest
from reference import covariance, orthant
from scipy.special import gammaln, logsumexp

import graphuq as gq
from conftest import random_adjacency
from graphuq.errors import IncompatibleParts, InvalidInput
from graphuq.inference import AnnotatorGibbs
from graphuq.inference.collapsed_gibbs.annotated_sweeps import log_readings
from graphuq.inference.collapsed_gibbs.annotators import Readings
from graphuq.likelihoods import SoftProbit

N, PAIRS, NOISE, NODE = 7, 5, 0.6, 2
WEIGHTS = random_adjacency(N)
SPECTRUM = gq.laplacian_spectrum(gq.graphs.from_adjacency(WEIGHTS), n_eigenpairs=PAIRS)
COVARIANCE = covariance(WEIGHTS, PAIRS, None)
PROBLEMS = {  # nodes, readings
    2: ([0, 3, 5, 6], np.array([[0, 1, 0], [1, 1, -1], [0, 0, 1], [-1, 1, 0]])),
    3: ([0, 3], np.array([[0, 0, 2], [1, 2, -1]])),
}


def posterior(n_classes):
    nodes, readings = PROBLEMS[n_classes]
    q = np.full((len(nodes), n_classes), 1 / n_classes)
    likelihood = SoftProbit(NOISE, q)
    prior = gq.priors.InverseLaplacian()
    return gq.Posterior(SPECTRUM, prior, likelihood, nodes, likelihood.most_probable), readings


def rising(shape, counts):
    return (gammaln(shape + counts) - gammaln(shape)).sum()


def posterior_of_annotator(counts):
    """Return the log probability of the readings of one annotator, and its mean accuracies.

    The accuracy α ~ Beta(2, 1) has 24 values, the agreement s has four, and each class the accuracy
    Beta(s α, s (1 − α)). Wrong classes share the rest, Dirichlet of parameters 1/(K − 1).
    """
    n_classes, own, total = len(counts), np.diag(counts), counts.sum(axis=1)
    logs, means = [], []
    for alpha, s in itertools.product((np.arange(24) + 0.5) / 24, [2, 8, 32, 128]):
        log = np.log(alpha) + rising(s * alpha, own) + rising(s * (1 - alpha), total - own)
        logs.append(log - rising(s, total))
        means.append((s * alpha + own) / (s + total))
    logs = np.array(logs)
    weights = np.exp(logs - logsumexp(logs))
    shares = rising(1 / (n_classes - 1), counts[~np.eye(n_classes, dtype=bool)])
    return logsumexp(logs) + shares - rising(1, total - own), weights @ means


def log_probability_of_readings(readings, classes, n_classes):
    """Return log p(readings | true classes), confusion matrices integrated out, and accuracies.

    An accuracy is the posterior mean of ``C[z, z]`` over the annotated nodes.
    """
    total, accuracies = 0.0, []
    for column in readings.T:
        counts = np.zeros((n_classes, n_classes))
        for true, read in zip(classes, column, strict=True):
            if read >= 0:
                counts[true, read] += 1
        log, mean = posterior_of_annotator(counts)
        total += log
        accuracies.append(mean[classes].mean())
    return total, np.array(accuracies)


def probability_of_classes(nodes, classes, n_classes):
    """Return the prior probability of the classes of some nodes, the last one without noise."""
    noise = np.diag([NOISE**2] * (len(nodes) - 1) + [0.0])
    noisy = COVARIANCE[np.ix_(nodes, nodes)] + noise
    if n_classes == 2:
        return orthant(noisy, 2 * np.array(classes) - 1)
    rows = []
    for j, own in enumerate(classes):
        for other in set(range(n_classes)) - {own}:
            row = np.zeros((len(nodes), n_classes))
            row[j, own], row[j, other] = 1, -1
            rows.append(row.ravel())
    flat = np.array(rows)
    return orthant(flat @ np.kron(noisy, np.eye(n_classes)) @ flat.T, np.ones(len(flat)))


def truth(n_classes):
    """Return probabilities of true classes, accuracies, and classes of the unlabelled node."""
    nodes, readings = PROBLEMS[n_classes]
    n_nodes = len(nodes)
    members, node = np.zeros((n_nodes, n_classes)), np.zeros(n_classes)
    accuracy, total = 0.0, 0.0
    for classes in itertools.product(range(n_classes), repeat=n_nodes + 1):
        given = np.array(classes[:n_nodes])
        log_weight, accuracies = log_probability_of_readings(readings, given, n_classes)
        weight = probability_of_classes([*nodes, NODE], classes, n_classes) * np.exp(log_weight)
        members[np.arange(n_nodes), given] += weight
        node[classes[-1]] += weight
        accuracy, total = accuracy + weight * accuracies, total + weight
    return members / total, accuracy / total, node / total


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_true_classes_and_accuracies(n_classes):
    target, readings = posterior(n_classes)
    result = gq.infer(target, AnnotatorGibbs(readings=readings, right=2.0), n_samples=3000, rng=1)
    members, accuracy, node = truth(n_classes)
    drawn = result.hyperparameters
    found = np.eye(n_classes)[drawn["true_class"]].mean(axis=(0, 1))
    np.testing.assert_allclose(found, members, atol=0.02)  # about 9,000 effective draws: 4 errors
    means = [drawn[f"accuracy_{a}"].mean() for a in range(3)]
    np.testing.assert_allclose(means, accuracy, atol=0.012)
    probability = result.probabilities[NODE]
    error = gq.results.label_mcse(result)[NODE].max()
    np.testing.assert_allclose(probability, node, atol=4.5 * error)
    assert error < 0.015
    assert result.diagnostics.converged


def test_confusion_matrices_given_true_classes():
    readings = np.array([[0], [0], [1], [1], [2], [2]])
    table = Readings(readings, 3, 2.0, 1.0)
    rng, classes = np.random.default_rng(0), np.array([0, 0, 0, 1, 1, 2])
    draws = np.array([table.draw(rng, classes)[0] for _ in range(20_000)])
    np.testing.assert_allclose(draws.sum(axis=2), 1)
    _, accuracies = posterior_of_annotator(np.array([[2, 1, 0], [0, 1, 1], [0, 0, 1]]))
    bound = 4.5 * draws.std(axis=0).max() / np.sqrt(20_000)
    np.testing.assert_allclose(np.diag(draws.mean(axis=0)), accuracies, atol=bound)
    # Shares of the wrong classes are independent of the accuracy: Dirichlet(1/2 + 1, 1/2).
    share = draws[:, 0, 1] / draws[:, 0, 1:].sum(axis=1)
    assert share.mean() == pytest.approx(0.75, abs=4.5 * share.std() / np.sqrt(20_000))
    assert share.var() == pytest.approx(0.75 * 0.25 / 3, rel=0.05)
    expected = np.array(
        [[4 / 6, 1.5 / 6, 0.5 / 6], [0.5 / 5, 3 / 5, 1.5 / 5], [0.5 / 4] * 2 + [3 / 4]]
    )
    np.testing.assert_allclose(table.mean(np.eye(3)[classes])[0], expected)
    weights = np.exp(table.log_weights(expected[None]))
    np.testing.assert_allclose(weights[0], expected[:, 0] / expected[0, 0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_log_probability_of_readings(n_classes):
    _, readings = PROBLEMS[n_classes]
    table, found, expected = Readings(readings, n_classes, 2.0, 1.0), [], []
    for classes in itertools.product(range(n_classes), repeat=len(readings)):
        given, prior = np.array(classes), table.prior
        parts = prior.log_prior, prior.rises, prior.other, n_classes
        found.append(log_readings(given, table.readings, *parts))
        expected.append(log_probability_of_readings(readings, given, n_classes)[0])
    np.testing.assert_allclose(np.diff(found), np.diff(expected), atol=1e-10)


def test_chains_visit_classes_that_are_exchanged():
    """Three annotators, two of them poor: the mirrored solution has a share of the posterior.

    Without exchanges each chain stays in one of the two, and R-hat is 1.7.
    """
    rng = np.random.default_rng(0)
    digits = gq.datasets.load_digits((3, 5))
    truth, readings = digits.codes()[:60], np.full((60, 3), -1)
    for a, accuracy in enumerate([0.95, 0.7, 0.6]):
        right = rng.uniform(size=60) < accuracy
        readings[:, a] = np.where(right, truth, 1 - truth)
        readings[rng.uniform(size=60) < 0.5, a] = -1
    nodes = np.flatnonzero((readings >= 0).any(axis=1))
    votes = Readings(readings[nodes], 2, 2.0, 1.0).without_graph()
    spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(digits.data), n_eigenpairs=100)
    likelihood = SoftProbit(0.2, votes, random_labels=True)
    parts = gq.priors.Matern(0.2, 3.0), likelihood, nodes, likelihood.most_probable
    sampler = AnnotatorGibbs(readings=readings[nodes], right=2.0)
    result = gq.infer(gq.Posterior(spectrum, *parts), sampler, n_samples=1500, rng=0)
    assert result.diagnostics.converged
    best = result.hyperparameters["accuracy_0"]  # chains × draws
    mirrored = (best < 0.5).mean(axis=1)
    assert (mirrored > 0).all()
    assert mirrored.mean() < 0.3
    assert ((gq.results.label_mean(result)[60:] > 0) == digits.codes()[60:]).mean() > 0.95


def test_votes_without_graph_find_who_is_good():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    right = rng.uniform(size=(300, 3)) < [0.95, 0.7, 0.7]
    readings = np.where(right, truth[:, None], (truth[:, None] + rng.integers(1, 3, (300, 3))) % 3)
    weights = Readings(readings, 3, 2.0, 1.0).without_graph()
    votes = np.eye(3)[readings].sum(axis=1)
    assert (weights.argmax(axis=1) == truth).mean() > (votes.argmax(axis=1) == truth).mean()


def test_refusals():
    target, readings = posterior(2)
    with pytest.raises(IncompatibleParts, match="readings of 2 nodes and 4 labelled nodes"):
        gq.infer(target, AnnotatorGibbs(readings=readings[:2]))
    with pytest.raises(IncompatibleParts, match="a reading is above the last class, 1"):
        gq.infer(target, AnnotatorGibbs(readings=readings + 1))
    certain = gq.Posterior(
        SPECTRUM, gq.priors.InverseLaplacian(), gq.likelihoods.Probit(), [0, 3], [-1, 1]
    )
    with pytest.raises(IncompatibleParts, match="needs a SoftProbit and a fixed prior"):
        gq.infer(certain, AnnotatorGibbs(readings=readings[:2]))
    with pytest.raises(InvalidInput, match="readings: float64 of shape"):
        AnnotatorGibbs(readings=readings * 1.0)
    with pytest.raises(InvalidInput, match=r"right: -1\.0; use a positive number"):
        AnnotatorGibbs(readings=readings, right=-1.0)
