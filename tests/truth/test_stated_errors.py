"""Answers of random problems lie within their stated errors of the exact posterior.

`benchmarks/bench_false_greens.py` has hundreds of such problems; these are some of each kind.
"""

import itertools

import numpy as np
import pytest

from bench_false_greens import compare
from graphuq.inference.model_average.component_weights import _back_and_forth

pytestmark = pytest.mark.filterwarnings("ignore::graphuq.errors.GraphuqWarning")


def test_gaussians_stand_for_all_components_of_an_average():
    """Thirty of them, in the order of their scale, were off by 0.02 to 0.05, and stated 0."""
    found = compare(85)
    assert (found["answer"], found["asked"]) == ("approximation", "average")
    assert found["judged"]
    assert found["claims"]
    assert not found["outside"]
    assert found["largest"] < 0.01


@pytest.mark.parametrize(
    "seed", [4, 5, 6, *(pytest.param(k, marks=pytest.mark.slow) for k in (0, 10, 13))]
)
def test_other_answers_are_within_their_error(seed):
    found = compare(seed)
    assert found["judged"]
    assert found["claims"]
    assert not found["outside"]


@pytest.mark.parametrize("seed", [115, 153])
def test_a_stated_error_holds_at_labelled_nodes(seed):
    """Laplace's method was off by 0.025 and 0.040 there, and stated 0.011 and 0.027."""
    found = compare(seed)
    assert (found["asked"], found["judged"]) == ("laplace", True)
    assert found["largest"] > 0.02
    assert not found["outside"]


def test_neighbours_in_the_order_of_components_differ_in_one_number():
    rows = np.array(list(itertools.product([0.0, 1.0], [0.3, 1.0, 3.0], [0.1, 0.2, 0.5], [2, 5])))
    shuffled = np.random.default_rng(0).permutation(rows)
    ordered = shuffled[_back_and_forth(shuffled.tolist())]
    assert len(np.unique(ordered, axis=0)) == len(rows)
    assert ((ordered[1:] != ordered[:-1]).sum(axis=1) == 1).all()
