"""Graphs of a known shape, namely paths, rings, grids and small worlds."""

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from graphuq.errors import require
from graphuq.graphs.graph import Graph, make_graph
from graphuq.utils.checks import describe, generator, require_integer


def path_graph(n_nodes: int) -> Graph:
    """Make the unweighted path ``0 — 1 — … — n−1``.

    Parameters
    ----------
    n_nodes : int
        Number of nodes n >= 2.

    Returns
    -------
    Graph

    Raises
    ------
    InvalidInput
        If the number is no integer or too small.

    Examples
    --------
    >>> import graphuq as gq
    >>> gq.graphs.path_graph(4)
    Graph(4 nodes, 3 edges, 1 component)
    """
    require_integer("n_nodes", n_nodes, 2)
    return grid_graph((n_nodes,))


def ring_graph(n_nodes: int) -> Graph:
    """Make an unweighted path whose ends are joined.

    Parameters
    ----------
    n_nodes : int
        Number of nodes >= 3.

    Returns
    -------
    Graph

    Raises
    ------
    InvalidInput
        If the number is no integer or too small.
    """
    require_integer("n_nodes", n_nodes, 3)
    return grid_graph((n_nodes,), periodic=True)


def grid_graph(shape: Sequence[int], periodic: bool | Sequence[bool] = False) -> Graph:
    """Make an unweighted grid, in which each node is joined to its two neighbours on each axis.

    The grid may have any number of axes. `laplacian_spectrum` uses the closed form of its
    unnormalised Laplacian.

    Parameters
    ----------
    shape : sequence of int
        Number of nodes on each axis. Nodes are numbered as in a NumPy array of this shape.
    periodic : bool or sequence of bool, default False
        Whether an axis is closed to a ring, for all axes or for each.

    Returns
    -------
    Graph

    Raises
    ------
    InvalidInput
        If an axis has fewer than 2 nodes, or fewer than 3 if it is closed; or if flags and axes
        differ in number.

    Examples
    --------
    >>> import graphuq as gq
    >>> gq.graphs.grid_graph((3, 3))
    Graph(9 nodes, 12 edges, 1 component)
    """
    require(
        np.iterable(shape) and not isinstance(shape, str),
        "shape",
        f"{describe(shape)} is not a sequence",
        "give the number of nodes on each axis, such as (10, 20)",
    )
    for n in shape:
        require_integer("shape", n, 1)
    sizes = tuple(int(n) for n in shape)
    closed = (periodic,) * len(sizes) if isinstance(periodic, bool) else tuple(periodic)
    require(len(sizes) > 0, "shape", f"{shape!r}", "give at least one axis")
    require(
        len(closed) == len(sizes),
        "periodic",
        f"{len(closed)} flags for {len(sizes)} axes",
        "give one for each axis, or one for all",
    )
    for n, ring in zip(sizes, closed, strict=True):
        minimum = 3 if ring else 2
        require(n >= minimum, "shape", f"an axis of {n} node(s)", f"use {minimum} or more")
    total = sparse.csr_array((1, 1))
    for n, ring in zip(sizes, closed, strict=True):
        ones = np.ones(n)
        axis = sparse.diags_array([ones[1:], ones[1:]], offsets=[-1, 1], shape=(n, n))
        if ring:
            corner = sparse.coo_array(([1.0, 1.0], ([0, n - 1], [n - 1, 0])), shape=(n, n))
            axis = axis + corner
        total = sparse.kronsum(axis, total, format="csr")
    return make_graph(
        sparse.csr_array(total),
        argument="shape",
        settings={"graph": "grid", "shape": list(sizes), "periodic": list(closed)},
    )


def small_world_graph(
    n_nodes: int = 1000,
    n_neighbors: int = 2,
    rewiring: float = 0.25,
    *,
    both_ends: bool = False,
    rng: int | np.random.Generator = 0,
) -> Graph:
    """Make the largest component of a ring with randomly rewired edges (Watts & Strogatz 1998).

    Each edge of the ring keeps its first end. With the given probability its second end is
    replaced by a uniformly chosen node. Self-loops and repeated edges are dropped. Hartog & van
    Zanten 2018, §5.1, report 848 of 1,000 nodes in the largest component. That agrees with
    rewiring of both ends (822 to 876 nodes for eight seeds). With one end there are 419 to 971.

    Parameters
    ----------
    n_nodes : int, default 1000
        Number of nodes of the ring, >= 4.
    n_neighbors : int, default 2
        Even number of neighbours of each node in the ring, half of them on either side.
    rewiring : float, default 0.25
        Probability of rewiring an end, in [0, 1].
    both_ends : bool, default False
        Whether the first end is also rewired, with the same probability.
    rng : int or numpy.random.Generator, default 0

    Returns
    -------
    Graph

    Raises
    ------
    InvalidInput
        If a number is out of range.
    """
    require_integer("n_nodes", n_nodes, 4)
    require_integer("n_neighbors", n_neighbors, 2)
    require(
        n_neighbors % 2 == 0 and n_neighbors < n_nodes,
        "n_neighbors",
        f"{n_neighbors}",
        "use an even number below n_nodes",
    )
    require(0 <= rewiring <= 1, "rewiring", f"{rewiring!r}", "use a probability in [0, 1]")
    rng = generator(rng)
    first = np.tile(np.arange(n_nodes), n_neighbors // 2)
    second = (first + np.repeat(np.arange(1, n_neighbors // 2 + 1), n_nodes)) % n_nodes
    moved = rng.uniform(size=len(first)) < rewiring
    second = np.where(moved, rng.integers(n_nodes, size=len(first)), second)
    if both_ends:
        moved = rng.uniform(size=len(first)) < rewiring
        first = np.where(moved, rng.integers(n_nodes, size=len(first)), first)
    kept = first != second
    edges = sparse.coo_array(
        (np.ones(kept.sum()), (first[kept], second[kept])), shape=(n_nodes, n_nodes)
    ).tocsr()
    adjacency = sparse.csr_array(((edges + edges.T) > 0).astype(np.float64))
    _, components = connected_components(adjacency, directed=False)
    largest = np.flatnonzero(components == np.bincount(components).argmax())
    return make_graph(
        sparse.csr_array(adjacency[largest][:, largest]),
        argument="rewiring",
        settings={
            "graph": "small-world",
            "n_ring": n_nodes,
            "n_neighbors": n_neighbors,
            "rewiring": rewiring,
            "both_ends": both_ends,
        },
    )
