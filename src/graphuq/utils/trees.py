"""Trees of arrays: tuples, lists, dictionaries and parts, nested, whose leaves are arrays."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from graphuq.utils.part import STATIC, Part, unchecked


def tree_map(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """Return a tree of what a function gives for the leaves of trees of the same form."""
    rest = [list(leaves_of(other)) for other in others]
    entries = zip(leaves_of(first), *rest, strict=True)
    return with_leaves(first, (function(*values) for values in entries))


def leaves_of(tree: Any) -> Iterator[Any]:
    """Yield the leaves in a fixed order; None and static fields of parts are none."""
    if tree is None:
        return
    children = _children(tree)
    if children is None:
        yield tree
        return
    for child in children.values():
        yield from leaves_of(child)


def with_leaves(tree: Any, leaves: Iterator[Any]) -> Any:
    """Return a tree of the same form with other leaves, taken from an iterator in their order."""
    if tree is None:
        return None
    children = _children(tree)
    if children is None:
        return next(leaves)
    changed = {name: with_leaves(child, leaves) for name, child in children.items()}
    if isinstance(tree, Part):
        return unchecked(tree, changed)
    if isinstance(tree, dict):
        return changed
    if hasattr(tree, "_fields"):  # a named tuple
        return type(tree)(**changed)
    return type(tree)(changed.values())


def form_of(tree: Any) -> str:
    """Return all of a tree but its leaves as text."""
    children = None if tree is None else _children(tree)
    if children is None:
        return "None" if tree is None else "*"
    inner = ", ".join(f"{name}={form_of(child)}" for name, child in children.items())
    return f"{type(tree).__module__}.{type(tree).__qualname__}({inner}){_static_fields(tree)}"


def _children(tree: Any) -> dict[Any, Any] | None:
    """Return the children of a tree by name, or None of a leaf."""
    if isinstance(tree, Part):
        fields = dataclasses.fields(tree)
        return {f.name: getattr(tree, f.name) for f in fields if not f.metadata.get(STATIC)}
    if isinstance(tree, dict):
        return {name: tree[name] for name in sorted(tree)}
    if not isinstance(tree, tuple | list):
        return None
    return dict(zip(getattr(tree, "_fields", range(len(tree))), tree, strict=True))


def _static_fields(tree: Any) -> str:
    fields = dataclasses.fields(tree) if isinstance(tree, Part) else ()
    static = {f.name: getattr(tree, f.name) for f in fields if f.metadata.get(STATIC)}
    return repr(static) if static else ""
