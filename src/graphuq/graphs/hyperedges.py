"""Graph of groups of nodes: votes, teams, baskets, tags, authors of a paper."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from graphuq.errors import InvalidInput, require
from graphuq.graphs.graph import Graph, make_graph
from graphuq.graphs.graph_objects import name_array
from graphuq.graphs.inputs import weights_of

MAX_PAIRS = 100_000_000  # of members of a group, whose weights fill about 3 GB


def from_hyperedges(
    groups: Iterable[Iterable[Any]],
    weight: ArrayLike | None = None,
    *,
    nodes: Sequence[Any] | np.ndarray | None = None,
) -> Graph:
    """Make a graph of nodes that are in groups together.

    A group (hyperedge) of m members and weight w joins each two of them with weight
    ``w / (m − 1)``. So it adds w to the degree of each member, and the random walk on the graph
    chooses one of the node's groups by weight, then another member at random. Groups of two are
    ordinary edges. But for the step to another member, in place of any, it is the walk of Zhou,
    Huang & Schölkopf (2006).

    Parameters
    ----------
    groups : iterable of iterables of length M
        Names of the members of each group: texts, numbers or other values. A member that occurs
        twice counts once. A group of one member joins nothing.
    weight : array_like, shape (M,), optional
        Weights >= 0; by default 1.
    nodes : sequence of length N, optional
        Names of all nodes, in their order. By default the names in the groups, in the order in
        which they first occur.

    Returns
    -------
    Graph
        With the names in ``Graph.names``.

    Raises
    ------
    InvalidInput
        If a name is missing or not among ``nodes``, a weight is negative, NaN or infinite, no
        group has two members, or groups are so large that their pairs do not fit into memory.

    Examples
    --------
    >>> import graphuq as gq
    >>> graph = gq.graphs.from_hyperedges([["ann", "bob", "cy"], ["cy", "di"]])
    >>> graph.weights.toarray()
    array([[0. , 0.5, 0.5, 0. ],
           [0.5, 0. , 0.5, 0. ],
           [0.5, 0.5, 0. , 1. ],
           [0. , 0. , 1. , 0. ]])
    """
    members = [_members(group, row) for row, group in enumerate(groups)]
    weights = weights_of(weight, len(members), "group")
    require(
        bool((np.isfinite(weights) & (weights >= 0)).all()),
        "weight",
        "negative, NaN or infinite numbers",
        "give a number >= 0 for each group",
    )
    found = dict.fromkeys(name for group in members for name in group)
    names = list(found) if nodes is None else list(nodes)
    place = {name: index for index, name in enumerate(names)}
    require(len(place) == len(names), "nodes", "names repeat", "give each node a name of its own")
    unknown = [name for name in found if name not in place]
    require(not unknown, "nodes", f"{unknown[:1]} is missing", "name every member of a group")
    sizes = np.array([len(group) for group in members], dtype=np.int64)
    require(bool((sizes > 1).any()), "groups", "no group has two members", "give groups of nodes")
    n_pairs = float((sizes.astype(float) ** 2).sum())
    require(
        n_pairs <= MAX_PAIRS,
        "groups",
        f"{n_pairs:.2g} pairs of members, the largest group has {sizes.max():,}",
        "leave out the largest groups, which tell least",
    )
    rows = np.array([place[name] for group in members for name in group], dtype=np.int64)
    columns = np.repeat(np.arange(len(members)), sizes)
    incidence = sparse.csr_array((np.ones(len(rows)), (rows, columns)), (len(names), len(members)))
    each = np.divide(weights, sizes - 1, out=np.zeros(len(sizes)), where=sizes > 1)
    pairs = sparse.csr_array(incidence @ sparse.diags_array(each) @ incidence.T)
    pairs = sparse.csr_array(pairs - sparse.diags_array(pairs.diagonal()))
    pairs.eliminate_zeros()
    settings = {"graph": "hyperedges"}
    return make_graph(pairs, argument="weight", settings=settings, names=name_array(names))


def _members(group: Any, row: int) -> list[Any]:
    """Return the members of a group, each once."""
    if isinstance(group, str) or not isinstance(group, Iterable):
        raise InvalidInput("groups", f"{group!r} at {row} is no group", "give lists of names")
    names = list(group)
    for name in names:
        if name is None or name != name or name == "":
            raise InvalidInput("groups", f"no name in group {row}", "name every member")
        require(
            isinstance(name, Hashable),
            "groups",
            f"a name of type {type(name).__name__}",
            "give texts, numbers or tuples as names",
        )
    return list(dict.fromkeys(names))
