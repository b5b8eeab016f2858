"""Metropolis's rule for independent proposals, step by step."""

import numpy as np

from graphuq.inference.model_average.walk import Moves, walk

# One chain: log ratios of the state and of seven proposals, and uniform numbers.
FIRST, RATIOS = 1.0, np.array([2.0, 1.0, 1.9, 0.0, 5.0, 4.0, 4.5])
UNIFORM = np.array([0.9, 0.5, 0.8, 0.1, 0.99, 0.2, 0.99])
# e^(2−1) > 1: taken. e^(1−2) = 0.37 < 0.5: not. e^(1.9−2) = 0.90 > 0.8: taken. e^(0−1.9) = 0.15 >
# 0.1: taken. e^(5−0) > 1: taken. e^(4−5) = 0.37 > 0.2: taken. e^(4.5−4) > 1: taken.
TAKEN = [0, 0, 2, 3, 4, 5, 6]


def made(numbers, ratios):
    """Return proposals of one chain that bear their numbers."""
    numbers = np.asarray(numbers, float)[None]
    return Moves(numbers[..., None], 10 + numbers, np.asarray(ratios, float)[None], 20 + numbers)


def state(number, ratio):
    return Moves(*(array[:, 0] for array in made([number], [ratio])))


def test_a_proposal_is_taken_with_the_ratio_of_densities():
    last, kept = walk(state(-1, FIRST), made(range(7), RATIOS), UNIFORM[None])
    assert kept.coefficients[0, :, 0].tolist() == TAKEN
    assert (kept.component[0] - 10).tolist() == TAKEN
    assert (kept.log_likelihood[0] - 20).tolist() == TAKEN
    expected = np.exp(np.minimum([1, -1, -0.1, -1.9, 5, -1, 0.5], 0))
    np.testing.assert_allclose(kept.acceptance[0], expected)
    assert (last.coefficients[0, 0], last.log_ratio[0]) == (6, 4.5)
    assert kept.every(3).coefficients[0, :, 0].tolist() == [2, 5]


def test_two_blocks_are_one_walk():
    """The state after a block is where the next one starts, also if it is an old one."""
    for cut in range(1, 7):
        middle, first = walk(state(-1, FIRST), made(range(cut), RATIOS[:cut]), UNIFORM[None, :cut])
        rest = made(range(cut, 7), RATIOS[cut:])
        _, second = walk(middle, rest, UNIFORM[None, cut:])
        both = np.concatenate([first.coefficients, second.coefficients], axis=1)
        assert both[0, :, 0].tolist() == TAKEN


def test_chains_walk_on_their_own():
    several = [made(range(7), ratios) for ratios in (RATIOS, np.full(7, -50.0))]
    proposals = Moves(*(np.concatenate(arrays) for arrays in zip(*several, strict=True)))
    starts = Moves(*(np.repeat(array, 2, axis=0) for array in state(-1, FIRST)))
    last, kept = walk(starts, proposals, np.tile(UNIFORM, (2, 1)))
    assert kept.coefficients[..., 0].tolist() == [TAKEN, [-1] * 7]
    assert last.component.tolist() == [16, 9]
