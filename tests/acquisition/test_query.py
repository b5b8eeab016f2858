"""Batches, the forecast of errors, and the audit."""

import numpy as np
import pytest
from pools import result_of
from scipy.stats import binom

import graphuq as gq
from graphuq.acquisition import Pool, audited_errors, forecast_errors, query
from graphuq.errors import InvalidInput
from graphuq.results.joint_labels import joint_labels


class LargestRow:
    def scores(self, pool):
        return pool.rows.astype(float)


class Wrong:
    def scores(self, pool):
        return np.full(len(pool.rows), np.nan)


def test_a_batch_is_the_best_candidate_again_and_again():
    result, rule = result_of(3), gq.acquisition.VarianceReduction()
    free = np.setdiff1d(np.arange(80), result.posterior.labelled)
    pool, expected = Pool.of(result, free, np.random.default_rng(0)), []
    for _ in range(6):
        best = int(np.argmax(rule.scores(pool)))
        expected.append(int(pool.rows[best]))
        pool = pool.given(best)
    assert query(result, 6, rule).tolist() == expected
    once = np.argsort(-rule.scores(Pool.of(result, free, np.random.default_rng(0))))[:6]
    assert set(free[once]) != set(expected)  # without conditioning, rows repeat each other


def test_own_rules():
    result = result_of()
    assert query(result, 3, LargestRow()).tolist() == [79, 78, 77]
    assert query(result, 9, LargestRow(), candidates=[3, 0, 5]).tolist() == [5, 3]
    with pytest.raises(InvalidInput, match="one number"):
        query(result, 3, Wrong())
    with pytest.raises(InvalidInput, match="1 row or more"):
        query(result, 0)


def test_random_rows_are_a_uniform_sample():
    """Each of 70 rows is in a sample of seven with probability 1/10; 400 samples."""
    result, counts = result_of(), np.zeros(80)
    for seed in range(400):
        counts[query(result, 7, "random", rng=seed)] += 1
    free = np.setdiff1d(np.arange(80), result.posterior.labelled)
    tail = binom.cdf(counts[free].min(), 400, 0.1), binom.sf(counts[free].max() - 1, 400, 0.1)
    assert min(tail) * len(free) > 0.001


def test_forecast_falls_with_labels():
    result = result_of(labelled=np.array([0, 40, 44, 79]))
    now = gq.expected_errors(result).expected
    later = [forecast_errors(result, n) for n in (5, 20, 76)]
    assert now > later[0].expected > later[1].expected > later[2].expected
    assert later[2] == (0.0, 0.0, 0.0)  # every row has a label
    assert later[1].lower <= later[1].expected <= later[1].upper
    with pytest.raises(InvalidInput, match="1 label or more"):
        forecast_errors(result, 0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_errors_left_are_whole_numbers_that_draws_of_all_labels_have(n_classes):
    result = result_of(n_classes)
    free = np.setdiff1d(np.arange(80), result.posterior.labelled)
    labels = joint_labels(result, free, 2000, np.random.default_rng(1))
    counts = (labels != result.probabilities[free].argmax(axis=1)[:, None]).sum(axis=0)
    count = gq.expected_errors(result)
    assert count.lower == round(count.lower)
    assert count.upper == round(count.upper)
    held = ((count.lower <= counts) & (counts <= count.upper)).mean()
    assert held > 0.9 - 4 * np.sqrt(0.09 / 500)  # the ends come from 500 draws
    assert abs(count.expected - counts.mean()) < 4 * counts.std() / np.sqrt(500)


def test_joint_labels_have_the_probabilities_of_the_posterior():
    """Each of 2,000 draws gives every node a label; frequencies are its class probabilities."""
    for n_classes in (2, 3):
        result, nodes = result_of(n_classes), np.array([1, 30, 52, 77])
        labels = joint_labels(result, nodes, 2000, np.random.default_rng(0))
        shares = (labels[:, :, None] == np.arange(n_classes)).mean(axis=1)
        np.testing.assert_allclose(shares, result.probabilities[nodes], atol=0.05)
    near = joint_labels(result_of(2), np.array([36, 36]), 500, np.random.default_rng(0))
    assert (near[0] == near[1]).all()  # one node has one label in a draw


def test_audit_interval_holds_the_truth_as_often_as_it_says():
    """The probability of missing the true share is summed over all outcomes."""
    n_audited, n_rows, share = 30, 1000, 0.1
    held = 0.0
    for k in range(n_audited + 1):
        wrong = np.arange(n_audited) < k
        count = audited_errors(wrong, n_rows)
        assert count.expected == pytest.approx(n_rows * k / n_audited)
        if count.lower <= share * n_rows <= count.upper:
            held += binom.pmf(k, n_audited, share)
    assert 0.9 <= held < 0.99
    with pytest.raises(InvalidInput, match="audit 1 row"):
        audited_errors([], 10)
    with pytest.raises(InvalidInput, match="booleans"):
        audited_errors([2], 10)
