"""The pool of a result, and its conditioning on picks."""

import numpy as np
import pytest
from pools import moved, random_pool, result_of

import graphuq as gq
from graphuq.acquisition import Pool
from graphuq.acquisition.joint_covariance import JointCovariance
from graphuq.errors import IncompatibleParts


def pool_of(result):
    rows = np.setdiff1d(np.arange(80), result.posterior.labelled)
    return Pool.of(result, rows, np.random.default_rng(0)), rows


def test_covariance_is_that_of_all_nodes_given_the_sites():
    """The prior covariance of all nodes is formed and conditioned on the sites in full."""
    result = result_of()
    pool, rows = pool_of(result)
    posterior = result.posterior
    std = np.asarray(posterior.prior.spectral_std(posterior.spectrum).modes)
    prior = (posterior.spectrum.eigenvectors * std**2) @ posterior.spectrum.eigenvectors.T
    precision = np.asarray(result.answer.sites)[0]
    across = prior[:, posterior.labelled]
    seen = prior[np.ix_(posterior.labelled, posterior.labelled)] + np.diag(1 / precision)
    covariance = prior - across @ np.linalg.solve(seen, across.T)
    np.testing.assert_allclose(pool.covariance, covariance[np.ix_(rows, rows)], atol=1e-8)
    np.testing.assert_allclose(pool.cross_covariance, covariance[np.ix_(rows, rows)], atol=1e-8)
    assert pool.noise_std == 0.5
    variance = np.diagonal(covariance)[rows]
    np.testing.assert_allclose(pool.sharpness, np.pi / np.sqrt(6 * (variance + 0.25)))


@pytest.mark.slow
def test_pools_of_draws_and_of_the_gaussian_agree():
    exact, rows = pool_of(result_of(2, gq.inference.PCN(), n_samples=4000, thin=5, rng=1))
    close, _ = pool_of(result_of(2))
    scale = np.sqrt(np.diagonal(close.covariance))
    difference = np.abs(exact.covariance - close.covariance) / np.outer(scale, scale)
    assert difference.max() < 0.25
    assert np.abs(exact.probabilities - close.probabilities).max() < 0.1
    assert len(rows) == 70


def test_a_batch_is_conditioned_on_all_its_picks():
    """Three picks in turn are equal to one inversion with the precision of three."""
    pool = random_pool()
    precision = np.zeros(12)
    later, left = pool, np.arange(12)
    for row in (104, 100, 111):
        at = int(np.flatnonzero(later.rows == row)[0])
        p = later.probabilities[at]
        precision[left[at]] = (later.sharpness[at] ** 2 * p * (1 - p)).max()
        later, left = later.given(at), np.delete(left, at)
    expected = np.linalg.inv(np.linalg.inv(pool.covariance) + np.diag(precision))
    np.testing.assert_allclose(later.covariance, expected[np.ix_(left, left)])
    np.testing.assert_allclose(later.cross_covariance[:, :12], expected[left])
    assert later.rows.tolist() == (left + 100).tolist()


def test_columns_are_those_of_the_whole_matrices():
    """With a variance that a row shares with no other, as a tail gives it."""
    rng = np.random.default_rng(0)
    joint = JointCovariance(rng.normal(size=(6, 3)), rng.normal(size=(4, 3)), rng.random(6))
    for _ in range(3):
        matrix, across = joint.matrix, joint.across
        np.testing.assert_allclose(joint.variance, np.diagonal(matrix))
        np.testing.assert_allclose(joint.column(2), matrix[:, 2])
        np.testing.assert_allclose(joint.with_targets(2), across[2])
        np.testing.assert_allclose(joint.with_targets(2, np.array([3, 1])), across[2, [3, 1]])
        joint = joint.given(2, 0.1)
        left = np.arange(len(matrix)) != 2
        expected = matrix - 0.1 * np.outer(matrix[2], matrix[2])
        np.testing.assert_allclose(joint.matrix, expected[np.ix_(left, left)])
        expected = across - 0.1 * np.outer(matrix[2], across[2])
        np.testing.assert_allclose(joint.across, expected[left])


def test_probabilities_move_towards_the_label():
    pool = random_pool()
    for label in range(3):
        later = pool.given(4, label)
        np.testing.assert_allclose(later.target_probabilities, moved(pool, 4, label), atol=1e-11)
        np.testing.assert_allclose(
            later.probabilities, later.target_probabilities[:12][later.rows - 100]
        )
        targets = np.array([2, 7])
        np.testing.assert_allclose(
            pool.target_probabilities_given(4, label, targets), later.target_probabilities[targets]
        )
    likeliest = int(pool.probabilities[4].argmax())
    np.testing.assert_allclose(pool.given(4).probabilities, pool.given(4, likeliest).probabilities)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_look_ahead_explains_most_of_a_new_fit(n_classes):
    """Three uncertain nodes get each a label, and expectation propagation is run again."""
    result = result_of(n_classes)
    pool, rows = pool_of(result)
    before, posterior = result.probabilities, result.posterior
    changes, errors = [], []
    for at in np.argsort(pool.probabilities.max(axis=1))[:5:2]:
        label = int(pool.probabilities[at].argmax())
        labels = np.append(posterior.labels, label if n_classes > 2 else 2 * label - 1)
        more = gq.Posterior(
            posterior.spectrum,
            posterior.prior,
            posterior.likelihood,
            np.append(posterior.labelled, rows[at]),
            labels,
        )
        refit = gq.infer(more, "expectation-propagation").probabilities
        later = pool.given(int(at), label)
        changes.append(refit[later.rows] - before[later.rows])
        errors.append(refit[later.rows] - later.probabilities)
    assert np.abs(changes).max() > 0.05
    assert np.square(errors).sum() < 0.4 * np.square(changes).sum()


def test_candidates_of_large_data_stand_for_all(monkeypatch):
    """20 of 70 rows are kept: the ten least certain, and ten that stand for 60."""
    monkeypatch.setattr("graphuq.acquisition.pool.MAX_ROWS", 20)
    result = result_of()
    pool, rows = pool_of(result)
    least = rows[np.argsort(gq.results.margin(result)[rows])[:10]]
    assert set(pool.rows[:10]) == set(least)
    assert len(np.unique(pool.rows)) == 20
    assert set(pool.rows) <= set(rows)
    assert pool.n_represented.tolist() == [1.0] * 10 + [6.0] * 10
    later = pool.given(3)
    assert later.n_represented.tolist() == [1.0] * 9 + [6.0] * 10
    assert later.cross_covariance.shape == (19, 20)


def test_a_point_is_refused():
    result = result_of(method=gq.inference.MAP())
    with pytest.raises(IncompatibleParts, match="without uncertainty"):
        pool_of(result)
