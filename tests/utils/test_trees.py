"""Trees of arrays keep their form, and are the same trees as JAX's."""

from typing import NamedTuple

import numpy as np

from graphuq.utils.part import Part, part_field
from graphuq.utils.trees import form_of, leaves_of, tree_map, with_leaves
from graphuq.utils.with_jax import jax


class Pair(NamedTuple):
    """A named tuple."""

    first: object
    second: object


class Named(Part):
    """Part with a static field."""

    values: np.ndarray
    name: str = part_field(static=True, default="a")


TREE = {"b": [1.0, (np.arange(2.0), None)], "a": Pair(Named(np.ones(3)), {"x": 2.0})}


def test_leaves_are_those_of_jax():
    found, expected = list(leaves_of(TREE)), jax.tree.leaves(TREE)
    assert len(found) == len(expected) == 4
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, other)


def test_a_tree_is_made_again_with_other_leaves():
    doubled = tree_map(lambda first, second: first + second, TREE, TREE)
    expected = jax.tree.map(lambda leaf: 2 * leaf, TREE)
    assert type(doubled["a"]) is Pair
    assert doubled["a"] == expected["a"]
    assert doubled["b"][0] == 2.0
    assert doubled["b"][1][1] is None
    np.testing.assert_array_equal(doubled["b"][1][0], [0.0, 2.0])
    again = with_leaves(TREE, leaves_of(TREE))
    assert form_of(again) == form_of(TREE)


def test_the_form_has_static_fields_and_no_numbers():
    assert form_of(Named(np.ones(3))) == form_of(Named(np.zeros(5)))
    assert form_of(Named(np.ones(3))) != form_of(Named(np.ones(3), "b"))
    assert form_of((1.0, None)) != form_of((1.0, 2.0))
