"""The numbers that verdicts are compared with, against SciPy's orthants and plain enumeration."""

import numpy as np
import pytest
import reference

from conftest import random_adjacency
from exact_posterior import covariance_of, n_components, posterior_of

N_POINTS = 2048
EXACT = 2e-3  # largest standard error of a number that is good enough to compare


def drawn(covariance, noise_std, labelled, codes, n_classes, noisy, rng, n_draws=400_000):
    """Return class probabilities over draws of fields and noise whose labels are those given."""
    n_fields = 1 if n_classes == 2 else n_classes
    values, q = np.linalg.eigh(covariance)
    root = q * np.sqrt(np.maximum(values, 0))
    u = np.einsum("nl,slk->snk", root, rng.normal(size=(n_draws, len(root), n_fields)))

    def classes(fields):
        return (fields[..., 0] > 0) * 1 if n_fields == 1 else fields.argmax(axis=-1)

    seen = classes(u[:, labelled] + noise_std * rng.normal(size=(n_draws, len(codes), n_fields)))
    kept = u[(seen == codes).all(axis=1)]
    own = classes(kept + noisy * noise_std * rng.normal(size=kept.shape))
    return (own[..., None] == np.arange(n_classes)).mean(axis=0), len(kept)


def test_two_classes_have_the_orthants_of_scipy():
    adjacency = random_adjacency(9, seed=1)
    covariance, labelled, codes = covariance_of(adjacency, 0.0, 1.0), [0, 3, 5], [1, 0, 1]
    np.testing.assert_allclose(covariance, reference.covariance(adjacency, 9, None), atol=1e-10)
    found = posterior_of([covariance], [0.0], 0.4, labelled, codes, 2, False, N_POINTS, 0)
    for node in range(9):
        mean = reference.probit_label_mean(covariance, labelled, [1, -1, 1], 0.4, node)
        assert abs(found.probabilities[node, 1] - (1 + mean) / 2) < 1e-4
    assert found.errors.max() < 1e-4


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("noisy", [False, True])
def test_accepted_draws_have_the_same_probabilities(n_classes, noisy):
    covariance = covariance_of(random_adjacency(6, seed=2), 0.5, 2.0)
    labelled, codes = np.array([0, 2, 4]), np.array([0, 1, n_classes - 1])
    problem = 0.5, labelled, codes, n_classes, noisy
    found = posterior_of([covariance], [0.0], *problem, N_POINTS, 0)
    expected, n = drawn(covariance, *problem, np.random.default_rng(0))
    assert n > 1500
    assert found.errors.max() < EXACT
    assert (np.abs(found.probabilities - expected) < 4.5 * np.sqrt(0.25 / n) + EXACT).all()
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, atol=1e-5)


def test_an_average_weighs_its_members_by_their_evidence():
    """Members of equal evidence: one is the mirror image of the other."""
    covariance = covariance_of(random_adjacency(6, seed=2), 0.5, 2.0)
    other = covariance_of(random_adjacency(6, seed=5), 0.5, 2.0)
    problem = 0.5, np.array([0, 2, 4]), np.array([0, 1, 1]), 2, True
    odds = np.log([0.3, 0.7])
    found = posterior_of([covariance, other], odds, *problem, N_POINTS, 0)
    counts, means = [], []
    for one, n_draws in ((covariance, 300_000), (other, 700_000)):
        mean, n = drawn(one, *problem, np.random.default_rng(1), n_draws)
        counts.append(n)
        means.append(mean)
    expected = np.average(means, axis=0, weights=counts)
    assert np.abs(means[0] - means[1]).max() > 0.02
    assert (
        np.abs(found.probabilities - expected) < 4.5 * np.sqrt(0.25 / sum(counts)) + EXACT
    ).all()


def test_components_are_counted():
    two = np.kron(np.eye(2), random_adjacency(5, seed=0))
    assert [n_components(random_adjacency(5, seed=0)), n_components(two)] == [1, 2]
    with_null = covariance_of(two, 0.3, 2.0)
    assert abs(np.trace(with_null) - 10) < 1e-9
    assert np.abs(with_null[:5, 5:]).max() < 1e-9
