"""JAX, for modules that need it: they import it from here, so that parts are trees of arrays to it.

The extra "jax" installs it. Without it, importing this module raises `MissingPackage`, which has
the command to install it.

Each class of parts, also one that is defined later, becomes a tree of JAX: its static fields belong
to the structure, and the others are its children.
"""

# ruff: noqa: E402  # the extra is asked for before its packages are imported
import dataclasses
from typing import Any

from graphuq.utils.extras import require_extra

require_extra("jax")

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.scipy.sparse.linalg
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from graphuq.utils.part import STATIC, Part, follow_classes, made

__all__ = ["Array", "PRNGKeyArray", "eqx", "jax", "jnp", "with_dtype"]


def with_dtype(tree: Any, dtype: Any) -> Any:
    """Convert all floating leaves to JAX arrays of one type.

    As arrays they are arguments of a compiled program, not constants in it.
    """

    def cast(leaf: object) -> Any:
        if isinstance(leaf, bool | int) or not eqx.is_inexact_array_like(leaf):
            return jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf
        # NumPy converts without compiling a program.
        return jnp.asarray(leaf if isinstance(leaf, jax.Array) else np.asarray(leaf, dtype), dtype)

    return jax.tree.map(cast, tree)


def _register(kind: type[Part]) -> None:
    """Register a class of parts as a tree."""
    fields = dataclasses.fields(kind)
    static = tuple(field.name for field in fields if field.metadata.get(STATIC))
    names = tuple(field.name for field in fields if field.name not in static)
    keys = tuple(map(jax.tree_util.GetAttrKey, names))

    def children(part: Part) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(getattr(part, name) for name in names), _static_of(part)

    def children_with_keys(part: Part) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple((key, getattr(part, key.name)) for key in keys), _static_of(part)

    def _static_of(part: Part) -> tuple[Any, ...]:
        return tuple(getattr(part, name) for name in static)

    def again(static_values: tuple[Any, ...], values: Any) -> Part:
        return made(kind, dict(zip((*static, *names), (*static_values, *values), strict=True)))

    jax.tree_util.register_pytree_with_keys(kind, children_with_keys, again, children)


follow_classes(_register)
