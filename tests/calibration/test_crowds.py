"""Ranks of simulated truths among draws of people, for crowds drawn from the model."""

import numpy as np
import pytest
from scipy import stats

from graphuq.inference.collapsed_gibbs.reading_prior import ReadingPrior
from graphuq.inference.collapsed_gibbs.reading_sampler import ReadingSampler

N_ITEMS, N_PEOPLE, N_RUNS, N_DRAWS = 40, 6, 200, 19
PRIOR = ReadingPrior.of(2)
SHARES = np.array([0.6, 0.4])


def simulated(rng):
    """Return readings, and the accuracy of the first person on items like these."""

    def number(probabilities):
        return rng.choice(len(probabilities), p=probabilities / probabilities.sum())

    classes = rng.choice(2, N_ITEMS, p=SHARES)
    ease = rng.choice(len(PRIOR.eases), N_ITEMS, p=np.exp(PRIOR.log_eases))
    tau, s = rng.integers(len(PRIOR.spreads), size=2)
    means = [number(np.exp(PRIOR.log_means)) for _ in range(2)]
    sigma = rng.integers(len(PRIOR.difficulties), size=2)
    readings, accuracy = np.empty((N_ITEMS, N_PEOPLE), int), []
    for a in range(N_PEOPLE):
        ability = number(PRIOR.abilities_given[tau])
        level = [number(PRIOR.levels_given[s, means[k], ability]) for k in range(2)]
        log_right = np.array([PRIOR.log_right[sigma[k], :, level[k]] for k in range(2)])
        right = rng.uniform(size=N_ITEMS) < np.exp(log_right[classes, ease])
        readings[:, a] = np.where(right, classes, 1 - classes)
        own = np.exp(log_right) @ np.exp(PRIOR.log_eases)
        accuracy.append(own @ np.bincount(classes, minlength=2) / N_ITEMS)
    return readings, accuracy[0]


def p_value(prior):
    """Return that of the χ² test of uniform ranks."""
    ranks = []
    for seed in range(N_RUNS):
        rng = np.random.default_rng(seed)
        readings, truth = simulated(rng)
        log_shares = np.tile(np.log(SHARES), (N_ITEMS, 1))
        draws = ReadingSampler(readings, 2, rng, prior).draws(log_shares, N_DRAWS, 40, 400)
        ranks.append((draws.accuracy[0, :, 0] < truth).sum())
    counts = np.bincount(ranks, minlength=N_DRAWS + 1).reshape(5, 4).sum(axis=1)
    return stats.chisquare(counts).pvalue


@pytest.mark.slow
def test_ranks_of_accuracies_are_uniform():
    assert p_value(PRIOR) > 1e-3


@pytest.mark.slow
def test_ranks_show_that_items_were_taken_as_equally_easy():
    assert p_value(ReadingPrior.of(2, difficulties=np.zeros(1))) < 1e-3
