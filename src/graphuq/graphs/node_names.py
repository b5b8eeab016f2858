"""Order of the nodes of a graph: by names that are also elsewhere, such as those of rows."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from graphuq.errors import InvalidInput, require
from graphuq.graphs.feature_space import NodeFeatures
from graphuq.graphs.graph import Graph


def in_order(graph: Graph, order: Int[np.ndarray, " N"]) -> Graph:
    """Return a graph whose nodes are in another order.

    Raises
    ------
    InvalidInput
        If its edges were made from features, of which it has the rows.
    """
    space = graph.feature_space
    require(
        space is None or not space.makes_edges,
        "graph",
        f"{graph!r} of features, with its nodes in another order",
        "make it of rows in the same order",
    )
    names = np.empty(graph.n_nodes, dtype=object)
    names[:] = [graph.node_names[node] for node in order]
    weights = graph.weights[order][:, order]
    if not isinstance(weights, np.ndarray):
        weights.sort_indices()
    return dataclasses.replace(
        graph,
        weights=weights,
        degrees=graph.degrees[order],
        components=graph.components[order],
        feature_space=None if space is None else NodeFeatures.of_nodes(space.features[order]),
        names=names,
        others={name: in_order(other, order) for name, other in graph.others.items()},
    )


def order_of_names(
    graph: Graph, names: Sequence[Any], argument: str, what: str
) -> Int[np.ndarray, " N"] | None:
    """Return the node of each name, or None if they are in order or either has only numbers.

    Parameters
    ----------
    graph : Graph
    names : sequence of length N
        Numbers from 0 in order are no names, unless the nodes have these numbers as names.
    argument, what : str
        Argument, and what it holds, in the error.

    Raises
    ------
    InvalidInput
        If both have names, and these are not the same.
    """
    own, names = graph.node_names, list(names)
    if own == names:
        return None
    place = {name: node for node, name in enumerate(own)}
    new = next((name for name in names if name not in place), None)
    if new is None and len(set(names)) == len(own):
        return np.array([place[name] for name in names], dtype=np.int64)
    numbers = list(range(len(own)))
    if names == numbers or own == numbers:
        return None
    problem = "names repeat" if new is None else f"{new!r} is no node of {graph!r}"
    raise InvalidInput(
        argument,
        f"{what} do not have the names of the nodes: {problem}",
        f"use names such as {own[0]!r}; without names (reset_index(drop=True) of a table) rows "
        "and nodes are matched by their order",
    )


def is_shuffled(graph: Graph) -> bool:
    """Return whether the nodes are numbered from 0 in another order."""
    own = graph.node_names
    whole = all(isinstance(name, int | np.integer) for name in own)
    return whole and own != list(range(len(own))) and sorted(own) == list(range(len(own)))
