"""How many labels are wrong, where the number of wrong ones has a distribution in closed form."""

import numpy as np
import pytest
from scipy.stats import binom, norm

import graphuq as gq
from graphuq.results import errors_left
from graphuq.results.joint_draws import coefficient_draws
from known_fields import independent_nodes, nodes_with_one_field

N_DRAWS = 500  # of the field, from which ends of an interval are quantiles


@pytest.mark.parametrize("n_nodes", [40, 6000])
@pytest.mark.parametrize("seed", range(4))
def test_the_interval_is_around_the_mean_of_a_binomial_number(n_nodes, seed):
    """A fifth of the nodes have either class with probability 1/2, and others are certain.

    The number of errors is binomial, so an interval of equal tails has its mean in the middle. For
    6,000 nodes draws are of a third of them, which have another share of uncertain nodes.
    """
    rng, n_free = np.random.default_rng(seed), n_nodes - 2
    uncertain = np.append([False, False], rng.permutation(n_free) < n_free // 5)
    count = gq.expected_errors(independent_nodes(np.where(uncertain, 0.0, 6.0)))
    law = binom(uncertain.sum(), 0.5)
    assert count.expected == pytest.approx(law.mean(), abs=1e-3)
    assert law.cdf(count.upper) - law.cdf(count.lower - 1) > 0.9
    z = norm.ppf(0.95)
    std = (count.upper - count.lower) / (2 * z)
    assert std < 2 * law.std() + 1  # a third of the nodes counts thrice: √3 times as much
    error = np.sqrt(0.05 * 0.95 / N_DRAWS / 2) / norm.pdf(z) * std  # of the mean of both ends
    assert abs((count.lower + count.upper) / 2 - law.mean()) < 1 + 4 * error  # 1: whole numbers


@pytest.mark.parametrize("n_labels", [3, 6, 7, 8, 9])
def test_nodes_that_are_wrong_together(n_labels):
    """All nodes or none are wrong. Where that is rarer than a tail, its mean is the upper end.

    The interval of a rare number has its mean outside: with 40 errors once in 100 draws 95 % of
    them have none. The mean of the worst 5 % is then 8.
    """
    result = nodes_with_one_field(np.append(-1, np.ones(n_labels - 1)))
    n, wrong = 42 - n_labels, float(1 - result.probabilities[-1].max())
    count = gq.expected_errors(result)
    assert count.expected == pytest.approx(n * wrong, rel=1e-4)
    assert (n_labels < 7) == (wrong > 0.05)
    assert count.lower == 0
    upper = n if wrong > 0.05 else n * wrong / 0.05
    assert abs(count.upper - upper) <= 1 + n / N_DRAWS / 0.05  # whole numbers, and one draw
    assert upper > 3 * count.expected


def test_each_node_is_wrong_as_often_as_its_probability_says():
    """Draws of a Gaussian of ten classes alone would be wrong a quarter more often."""
    digits = gq.datasets.load_digits()
    y = np.full(400, -1)
    y[:40] = digits.target[:40]
    classifier = gq.GraphClassifier(
        model="largest-evidence", inference="expectation-propagation", random_state=0
    )
    result = classifier.fit(digits.data[:400], y).result_
    nodes = np.arange(40, 400)
    counts = errors_left._error_draws(result, nodes)
    expected = (1 - result.probabilities[nodes].max(axis=1)).sum()
    error = np.sqrt(expected / N_DRAWS)  # a node is wrong in S (1 − max p) draws, but for rounding
    assert abs(counts.mean() - expected) < 4 * error
    assert counts.std() > 2 * np.sqrt(expected)  # not as independent nodes
    count = gq.expected_errors(result)
    assert count.lower <= count.expected <= count.upper


def wrong_grades(result, nodes, n_draws, rng):
    """Return draws of the number of wrong grades: a component, its field, and its own noise."""
    answer, posterior, found = result.answer, result.posterior, []
    best = result.probabilities[nodes].argmax(axis=1)[:, None]
    scale, basis = posterior.spectrum.node_scale[nodes, None], posterior.spectrum.basis[nodes]
    counts = rng.multinomial(n_draws, answer.weights)
    for one, number, count in zip(answer.components, answer.numbers, counts, strict=True):
        if count == 0:
            continue
        own = posterior.component(int(number))
        coefficients = coefficient_draws(one, own, int(count), rng)[:, 0]
        u = scale * (np.asarray(basis) @ coefficients.T)
        u += scale * own.field.one_class.tail_std * rng.normal(size=u.shape)
        noisy = u + float(np.ravel(own.likelihood.noise_std)[0]) * rng.normal(size=u.shape)
        grades = np.searchsorted(np.asarray(own.likelihood.thresholds), noisy)
        found.append((grades != best).sum(axis=0))
    return np.concatenate(found)


def test_errors_of_grades_know_that_their_noise_is_uncertain():
    """Each component of the average has a noise of its own, so all rows are wrong together."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    grades = np.digitize(X[:, 0] + rng.normal(size=400), [-0.7, 0.0, 0.7])
    y = np.where(np.arange(400) < 24, grades, -1)
    classifier = gq.GraphClassifier(ordered=True, inference="expectation-propagation")
    result, nodes = classifier.fit(X, y).result_, np.arange(24, 400)
    draws, drawn = wrong_grades(result, nodes, 4_000, rng), errors_left._error_draws(result, nodes)
    assert drawn.mean() == pytest.approx(draws.mean(), abs=4 * draws.std() / np.sqrt(N_DRAWS))
    error = draws.std() / np.sqrt(2 * N_DRAWS)  # of a deviation of 500 draws
    assert error < 1.2
    assert drawn.std() == pytest.approx(draws.std(), abs=4 * error)  # 24.1 with one noise for all
    assert draws.std() - 24.1 > 4 * error
