"""Parts are immutable values, equal by their fields, and trees of arrays to JAX."""

import dataclasses
import pickle

import numpy as np
import pytest

from graphuq.utils import part as parts
from graphuq.utils.part import Part, follow_classes, part_field, unchecked
from graphuq.utils.with_jax import eqx, jax, jnp


class Base(Part):
    """Part with a number that must be positive."""

    std: float = part_field(default=1, converter=float)

    def __check_init__(self):
        if self.std <= 0:
            raise ValueError("base")


class Derived(Base):
    """Part with an array and a name besides."""

    values: np.ndarray | None = None
    name: str = part_field(default="normal", static=True)

    def __check_init__(self):
        if self.name == "wrong":
            raise ValueError("derived")


def test_values_are_converted_and_checked_by_every_class():
    assert type(Derived().std) is float
    assert Derived(2).std == 2.0
    for arguments in ({"std": -1}, {"name": "wrong"}, {"std": -1, "name": "wrong"}):
        with pytest.raises(ValueError, match="derived" if "name" in arguments else "base"):
            Derived(**arguments)
    with pytest.raises(ValueError, match="base"):
        dataclasses.replace(Derived(), std=-1.0)
    assert unchecked(Derived(), {"std": -1}).std == -1


def test_values_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Derived().std = 2.0


def test_parts_are_equal_by_class_and_fields():
    first, second = (Derived(2.0, np.arange(3.0)) for _ in range(2))
    assert first == second
    assert first != Derived(2.0, np.arange(4.0))
    assert first != Derived(2.0, np.arange(3.0) + 1)
    assert first != Derived(2.0)
    assert Base(2.0) != Derived(2.0)
    assert hash(Derived(2.0)) == hash(Derived(2.0))
    with pytest.raises(TypeError, match="unhashable"):
        hash(first)
    assert pickle.loads(pickle.dumps(first)) == first


def test_text_has_what_differs_from_the_defaults():
    assert repr(Derived()) == "Derived()"
    assert repr(Derived(1.0)) == "Derived()"
    assert repr(Derived(np.float64(0.5), np.zeros((2, 3)), "other")) == (
        "Derived(std=0.5, values=float64[2,3], name='other')"
    )


def test_jax_sees_numbers_as_children_and_static_fields_as_structure():
    part = Derived(2.0, np.arange(3.0), "other")
    leaves, structure = jax.tree.flatten(part)
    assert leaves[0] == 2.0
    np.testing.assert_array_equal(leaves[1], np.arange(3.0))
    assert jax.tree.unflatten(structure, leaves) == part
    assert structure != jax.tree.structure(Derived(2.0, np.arange(3.0)))
    assert [
        jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(part)
    ] == [
        ".std",
        ".values",
    ]


def test_each_class_is_followed_once(monkeypatch):
    class Other(Base):
        pass

    class Both(Derived, Other):
        pass

    monkeypatch.setattr(parts, "_followers", [])
    found = []
    follow_classes(found.append)
    assert found.count(Both) == found.count(Other) == found.count(Derived) == 1

    class Last(Both):
        pass

    assert found.count(Last) == 1


def test_a_class_defined_later_is_compiled_and_differentiated():
    class Later(Derived):
        def total(self, x):
            return (self.values * x).sum() * self.std

    part = Later(2.0, jnp.arange(3.0))
    assert eqx.filter_jit(lambda p, x: p.total(x))(part, jnp.ones(3)) == 6.0
    slopes = eqx.filter_grad(lambda p: p.total(jnp.ones(3)))(part)
    np.testing.assert_array_equal(slopes.values, [2.0, 2.0, 2.0])
    assert slopes.std is None  # a number of Python is no array
