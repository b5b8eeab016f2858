"""Sweeps over items and people given probabilities of the classes, compiled by Numba.

A sweep draws class and ease of each item given the people, then ability and levels of each person
given the items, and the numbers that people share. All are draws from a grid, so nothing is
rejected. To be imported late.
"""

import math
from typing import Any, NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float, Int

from graphuq.inference.collapsed_gibbs.reading_prior import ReadingPrior
from graphuq.utils.arrays import njit_cached

TINY = float(np.finfo(float).tiny)


class People(NamedTuple):
    """What is drawn of the people: numbers of values on the grids of `ReadingPrior`.

    Attributes
    ----------
    means, difficulties : numpy.ndarray of int, shape (K,)
    spreads : numpy.ndarray of int, shape (2,)
        Numbers of τ and s.
    abilities : numpy.ndarray of int, shape (A,)
    levels : numpy.ndarray of int, shape (A, K)
    shares : numpy.ndarray, shape (A, K, K)
        Log share of each class among wrong readings; 0 on the diagonal.
    """

    means: Int[np.ndarray, " K"]
    difficulties: Int[np.ndarray, " K"]
    spreads: Int[np.ndarray, " 2"]
    abilities: Int[np.ndarray, " A"]
    levels: Int[np.ndarray, "A K"]
    shares: Float[np.ndarray, "A K K"]

    @staticmethod
    def first(prior: ReadingPrior, n_people: int, n_classes: int) -> "People":
        """Return people of whom nothing is known, of medium difficulty."""
        middle, spread = len(prior.abilities) // 2, len(prior.spreads) // 2
        mean = int(prior.log_means.argmax())
        level = int(np.abs(prior.levels - prior.means[mean]).argmin())
        shares = np.full((n_people, n_classes, n_classes), -math.log(max(n_classes - 1, 1)))
        shares[:, np.arange(n_classes), np.arange(n_classes)] = 0.0
        return People(
            np.full(n_classes, mean),
            np.full(n_classes, len(prior.difficulties) // 2),
            np.full(2, spread),
            np.full(n_people, middle),
            np.full((n_people, n_classes), level),
            shares,
        )

    def copy(self) -> "People":
        """Return a copy, since sweeps write into what they are given."""
        return People(*(part.copy() for part in self))


def log_table(prior: ReadingPrior, people: People) -> Float[np.ndarray, "A K Q K"]:
    """Return the log probability of each reading, given person, class and ease."""
    found = np.empty((*people.levels.shape, len(prior.eases), people.levels.shape[1]))
    _write_table(prior.log_right, prior.log_wrong, *people[1:2], *people[4:], found)
    return found


def run(
    rng: np.random.Generator,
    starts: Int[np.ndarray, " n"],
    who: Int[np.ndarray, " R"],
    said: Int[np.ndarray, " R"],
    log_shares: Float[np.ndarray, "J K"],
    prior: ReadingPrior,
    people: People,
    n_sweeps: int,
) -> tuple[Float[np.ndarray, "J K"], Int[np.ndarray, " J"], Int[np.ndarray, " J"]]:
    """Change people in place by some sweeps.

    Return mean class probabilities given the people, and the last classes and eases.

    Parameters
    ----------
    starts : numpy.ndarray of int, shape (J + 1,)
        Readings of item j are those from ``starts[j]`` to ``starts[j + 1]``.
    who, said : numpy.ndarray of int, shape (R,)
        Person and label of each reading.
    log_shares : numpy.ndarray, shape (J, K)
        Log probability of each class before the readings.
    """
    n_items, n_classes = log_shares.shape
    members = np.zeros((n_items, n_classes))
    classes, ease = np.empty(n_items, np.int64), np.empty(n_items, np.int64)
    with np.errstate(divide="ignore"):
        logs = np.log(prior.levels_given), np.log(prior.abilities_given)
    _run(
        rng, starts, who, said, log_shares, prior.log_eases, prior.log_means, prior.log_right,
        prior.log_wrong, prior.levels_given, prior.abilities_given, *logs, prior.other, *people,
        n_sweeps, members, classes, ease,
    )  # fmt: skip
    return members / n_sweeps, classes, ease


@njit_cached
@no_type_check
def _run(
    rng: Any, starts: Any, who: Any, said: Any, log_shares: Any, log_eases: Any, log_means: Any,
    log_right: Any, log_wrong: Any, levels_given: Any, abilities_given: Any, log_levels: Any,
    log_abilities: Any, other: Any, means: Any, difficulties: Any, spreads: Any, abilities: Any,
    levels: Any, shares: Any, n_sweeps: Any, members: Any, classes: Any, ease: Any,
) -> None:  # fmt: skip
    n_people, n_classes = levels.shape
    n_eases = log_right.shape[1]
    table = np.empty((n_people, n_classes, n_eases, n_classes))
    right = np.empty((n_people, n_classes, n_eases))
    wrong = np.empty((n_people, n_classes, n_eases))
    counts = np.empty((n_people, n_classes, n_classes))
    for number in range(n_sweeps):
        if number > 0:
            _draw_difficulties(
                rng, starts, who, said, log_eases, log_right, log_wrong, levels, classes,
                difficulties,
            )  # fmt: skip
        _write_table(log_right, log_wrong, difficulties, levels, shares, table)
        _draw_items(rng, starts, who, said, log_shares, log_eases, table, members, classes, ease)
        _write_counts(starts, who, said, classes, ease, right, wrong, counts)
        _draw_people(
            rng, right, wrong, counts, log_right, log_wrong, levels_given, abilities_given, other,
            means, difficulties, spreads, abilities, levels, shares,
        )  # fmt: skip
        _draw_shared(rng, log_means, log_levels, log_abilities, means, spreads, abilities, levels)


@njit_cached
@no_type_check
def _write_table(
    log_right: Any, log_wrong: Any, difficulties: Any, levels: Any, shares: Any, table: Any
) -> None:
    """Write the log probability of each reading, given person, class and ease."""
    n_people, n_classes, n_eases, _ = table.shape
    for a in range(n_people):
        for k in range(n_classes):
            for q in range(n_eases):
                for r in range(n_classes):
                    if r == k:
                        table[a, k, q, r] = log_right[difficulties[k], q, levels[a, k]]
                    else:
                        table[a, k, q, r] = log_wrong[difficulties[k], q, levels[a, k]]
                        table[a, k, q, r] += shares[a, k, r]


@njit_cached
@no_type_check
def _draw_items(
    rng: Any, starts: Any, who: Any, said: Any, log_shares: Any, log_eases: Any, table: Any,
    members: Any, classes: Any, ease: Any,
) -> None:  # fmt: skip
    """Draw class and ease of each item, and add the probabilities of its classes to ``members``."""
    _, n_classes, n_eases, _ = table.shape
    logs = np.empty((n_classes, n_eases))
    for j in range(len(classes)):
        largest = -np.inf
        for k in range(n_classes):
            for q in range(n_eases):
                logs[k, q] = log_shares[j, k] + log_eases[q]
        for i in range(starts[j], starts[j + 1]):
            for k in range(n_classes):
                for q in range(n_eases):
                    logs[k, q] += table[who[i], k, q, said[i]]
        for k in range(n_classes):
            for q in range(n_eases):
                largest = max(largest, logs[k, q])
        total = 0.0
        for k in range(n_classes):
            for q in range(n_eases):
                logs[k, q] = math.exp(logs[k, q] - largest)
                total += logs[k, q]
        for k in range(n_classes):
            members[j, k] += logs[k].sum() / total
        drawn = _draw(rng, logs.ravel(), total)
        classes[j], ease[j] = drawn // n_eases, drawn % n_eases


@njit_cached
@no_type_check
def _write_counts(
    starts: Any, who: Any, said: Any, classes: Any, ease: Any, right: Any, wrong: Any, counts: Any
) -> None:
    """Write how many readings of each person are right and wrong, by class and ease, and which."""
    right[:], wrong[:], counts[:] = 0.0, 0.0, 0.0
    for j in range(len(classes)):
        k, q = classes[j], ease[j]
        for i in range(starts[j], starts[j + 1]):
            if said[i] == k:
                right[who[i], k, q] += 1.0
            else:
                wrong[who[i], k, q] += 1.0
                counts[who[i], k, said[i]] += 1.0


@njit_cached
@no_type_check
def _draw_from_logs(rng: Any, logs: Any) -> int:
    """Draw a number with given log weights, which are overwritten."""
    largest, total = logs.max(), 0.0
    for i in range(len(logs)):
        logs[i] = math.exp(logs[i] - largest)
        total += logs[i]
    return _draw(rng, logs, total)


@njit_cached
@no_type_check
def _draw(rng: Any, weights: Any, total: Any) -> int:
    left = rng.random() * total
    for i in range(len(weights)):
        left -= weights[i]
        if left < 0.0:
            return i
    return len(weights) - 1


@njit_cached
@no_type_check
def _draw_difficulties(
    rng: Any, starts: Any, who: Any, said: Any, log_eases: Any, log_right: Any, log_wrong: Any,
    levels: Any, classes: Any, difficulties: Any,
) -> None:  # fmt: skip
    """Draw σ of each class given classes and levels, with the ease of each item integrated out."""
    n_values, n_eases, _ = log_right.shape
    logs, grid = np.zeros((levels.shape[1], n_values)), np.empty(n_eases)
    for j in range(len(classes)):
        k = classes[j]
        for d in range(n_values):
            for q in range(n_eases):
                grid[q] = log_eases[q]
            for i in range(starts[j], starts[j + 1]):
                m = levels[who[i], k]
                for q in range(n_eases):
                    grid[q] += log_right[d, q, m] if said[i] == k else log_wrong[d, q, m]
            largest, total = grid.max(), 0.0
            for q in range(n_eases):
                total += math.exp(grid[q] - largest)
            logs[k, d] += largest + math.log(total)
    for k in range(len(logs)):
        difficulties[k] = _draw_from_logs(rng, logs[k])


@njit_cached
@no_type_check
def _write_fits(
    a: Any, right: Any, wrong: Any, log_right: Any, log_wrong: Any, difficulties: Any, fits: Any
) -> None:
    """Write the probability of the readings of a person in each class, for each level."""
    _, n_classes, n_eases = right.shape
    for k in range(n_classes):
        fits[k] = 0.0
        for q in range(n_eases):
            n, n_wrong, d = right[a, k, q], wrong[a, k, q], difficulties[k]
            if n + n_wrong > 0.0:
                for m in range(fits.shape[1]):
                    fits[k, m] += n * log_right[d, q, m] + n_wrong * log_wrong[d, q, m]
        largest = fits[k].max()
        for m in range(fits.shape[1]):
            fits[k, m] = math.exp(fits[k, m] - largest)


@njit_cached
@no_type_check
def _draw_people(
    rng: Any, right: Any, wrong: Any, counts: Any, log_right: Any, log_wrong: Any,
    levels_given: Any, abilities_given: Any, other: Any, means: Any, difficulties: Any,
    spreads: Any, abilities: Any, levels: Any, shares: Any,
) -> None:  # fmt: skip
    """Draw ability, levels and shares of wrong classes of each person, given the items."""
    n_people, n_classes, _ = right.shape
    n_levels = log_right.shape[2]
    fits = np.empty((n_classes, n_levels))
    weights, own = np.empty(abilities_given.shape[1]), np.empty(n_levels)
    for a in range(n_people):
        _write_fits(a, right, wrong, log_right, log_wrong, difficulties, fits)
        total = 0.0
        for g in range(len(weights)):
            weights[g] = abilities_given[spreads[0], g]
            for k in range(n_classes):
                sum_ = 0.0
                for m in range(n_levels):
                    sum_ += levels_given[spreads[1], means[k], g, m] * fits[k, m]
                weights[g] *= sum_
            total += weights[g]
        abilities[a] = _draw(rng, weights, total)
        for k in range(n_classes):
            total = 0.0
            for m in range(n_levels):
                own[m] = levels_given[spreads[1], means[k], abilities[a], m] * fits[k, m]
                total += own[m]
            levels[a, k] = _draw(rng, own, total)
            if n_classes > 2:
                _draw_shares(rng, k, other, counts[a, k], shares[a, k])


@njit_cached
@no_type_check
def _draw_shares(rng: Any, k: Any, other: Any, counts: Any, shares: Any) -> None:
    """Draw log shares of the wrong readings of a person in class k, from a Dirichlet."""
    sum_ = 0.0
    for r in range(len(shares)):
        if r != k:
            shares[r] = max(rng.standard_gamma(other + counts[r]), TINY)
            sum_ += shares[r]
    for r in range(len(shares)):
        if r != k:
            shares[r] = math.log(shares[r] / sum_)


@njit_cached
@no_type_check
def _draw_shared(
    rng: Any, log_means: Any, log_levels: Any, log_abilities: Any, means: Any, spreads: Any,
    abilities: Any, levels: Any,
) -> None:  # fmt: skip
    """Draw μ of each class, τ and s, given abilities and levels."""
    n_people, n_classes = levels.shape
    logs = np.empty(len(log_means))
    for k in range(n_classes):
        logs[:] = log_means
        for h in range(len(logs)):
            for a in range(n_people):
                logs[h] += log_levels[spreads[1], h, abilities[a], levels[a, k]]
        means[k] = _draw_from_logs(rng, logs)
    logs = np.zeros(len(log_abilities))
    for s in range(len(logs)):
        for a in range(n_people):
            logs[s] += log_abilities[s, abilities[a]]
    spreads[0] = _draw_from_logs(rng, logs)
    logs = np.zeros(len(log_abilities))
    for s in range(len(logs)):
        for a in range(n_people):
            for k in range(n_classes):
                logs[s] += log_levels[s, means[k], abilities[a], levels[a, k]]
    spreads[1] = _draw_from_logs(rng, logs)
