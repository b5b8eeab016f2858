"""Row blocks of the graph of nearest neighbours, and of its normalised Laplacian.

Two rows are joined if either has the other among its neighbours. The part of a row owns all edges
of the row: it finds the edges that others begin in files that their parts have sorted by owner.
"""

import dataclasses

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from graphuq.engine.store import Stage
from graphuq.engine.tasks import Tasks
from graphuq.errors import DisconnectedGraphWarning, require
from graphuq.graphs.graph import NEGLIGIBLE_WEIGHT
from graphuq.graphs.weights import WeightFunction
from graphuq.utils.user_warnings import warn_user


@dataclasses.dataclass(frozen=True)
class GraphBlock:
    """Rows of the normalised adjacency matrix that a part owns.

    Attributes
    ----------
    weights : scipy.sparse.csr_array, shape (n, n + h)
        ``w_ij / √(d_i d_j)``. Columns are the part's own rows, then those of `halo`.
    halo : numpy.ndarray of int, shape (h,)
        Places of the rows of other parts that have an edge into this part, in order.
    """

    weights: sparse.csr_array
    halo: Int[np.ndarray, " h"]


def build(
    stage: Stage, rows: Stage, neighbors: Stage, weight: WeightFunction, tasks: Tasks
) -> None:
    """Make the row blocks of the graph.

    The stage then holds, for part p, the arrays of `load_block`, ``degree-p``, ``component-p``,
    the connected component of each row, and ``profile-p``, the null vector of its component.
    """
    starts = rows.record["starts"]
    parts = range(len(starts) - 1)
    names = ("outward", "outward_counts", "lengths", "inward", "ends", "pointers", "local", "links")
    tasks.map(_send, [(stage, neighbors, starts, p) for p in parts])
    tasks.map(_receive, [(stage, neighbors, starts, p, weight) for p in parts], "graph")
    found = tasks.map(_normalise, [(stage, starts, p) for p in parts], "graph")
    tasks.map(_link, [(stage, starts, p) for p in parts])
    n_components = _join_components(stage, starts)
    squares, sizes = sum(tasks.map(_sums, [(stage, p, n_components) for p in parts]))
    tasks.map(_profile, [(stage, p, squares) for p in parts])
    stage.finish(
        {
            "n_components": n_components,
            "largest": int(sizes.max()),
            "n_isolated": int(sum(isolated for isolated, _, _ in found)),
            "n_edges": int(sum(edges for _, edges, _ in found)) // 2,
            "halo": int(sum(halo for _, _, halo in found)),
        },
        temporary=names,
    )


def warn_if_disconnected(record: dict[str, int], n_rows: int) -> None:
    """Warn that labels inform their own component only."""
    if record["n_components"] > 1:
        warn_user(
            f"the graph has {record['n_components']} connected components (largest "
            f"{record['largest']} of {n_rows} rows, {record['n_isolated']} isolated): labels "
            "inform only their own component, and in a component without labels the posterior is "
            "the prior; use a larger n_neighbors to join components",
            DisconnectedGraphWarning,
        )


def _send(stage: Stage, neighbors: Stage, starts: list[int], p: int) -> None:
    """Sort the edges that begin in a part by the owner of their other end."""
    if stage.has("outward_counts", p):
        return
    near, distance = neighbors.load("near", p), neighbors.load("distance", p)
    target = near.ravel()
    owner = np.searchsorted(starts, target, side="right") - 1
    order = np.argsort(owner, kind="stable")
    source = starts[p] + order // max(1, near.shape[1])
    stage.save("outward", p, np.stack([source, target[order]]))
    stage.save("lengths", p, distance.ravel()[order])
    stage.save("outward_counts", p, np.bincount(owner, minlength=len(starts) - 1))


def _receive(
    stage: Stage, neighbors: Stage, starts: list[int], p: int, weight: WeightFunction
) -> None:
    """Join the edges that begin and that end in a part, and weigh them."""
    if stage.has("degree", p):
        return
    near, distance = neighbors.load("near", p), neighbors.load("distance", p)
    n_own, k = near.shape
    inward, lengths = [], []
    for q in range(len(starts) - 1):
        ends = np.append(0, np.cumsum(stage.load("outward_counts", q)))
        part = slice(ends[p], ends[p + 1])
        inward.append(stage.load("outward", q)[:, part])
        lengths.append(stage.load("lengths", q)[part])
    source, target = np.concatenate(inward, axis=1)
    own = np.concatenate([np.repeat(np.arange(n_own), k), target - starts[p]])
    other = np.concatenate([near.ravel(), source])
    length = np.concatenate([distance.ravel(), *lengths])
    key = own * starts[-1] + other
    first = np.unique(key, return_index=True)[1]
    own, other, length = own[first], other[first], length[first].astype(np.float64)
    scale = np.asarray(neighbors.load("scale", p))
    scales = neighbors.parts("scale", starts).take(other)
    values = weight.weight(length, scale[own], scales)
    stage.save("ends", p, other)
    stage.save("inward", p, values)
    pointers = np.append(0, np.cumsum(np.bincount(own, minlength=n_own)))
    stage.save("pointers", p, pointers)
    stage.save("degree", p, np.bincount(own, values, n_own))


def _normalise(stage: Stage, starts: list[int], p: int) -> tuple[int, int, int]:
    """Divide weights by the roots of both degrees, without negligible edges; number columns."""
    begin, end = starts[p], starts[p + 1]
    if not stage.has("local", p):
        other, values = np.asarray(stage.load("ends", p)), stage.load("inward", p)
        pointers, n_own = stage.load("pointers", p), end - begin
        own = np.repeat(np.arange(n_own), np.diff(pointers))
        degrees = stage.parts("degree", starts)
        product = np.asarray(stage.load("degree", p))[own] * degrees.take(other)
        root = np.sqrt(product)
        kept = (values > 0) & (values >= NEGLIGIBLE_WEIGHT * root) & (root > 0)
        other, scaled, own = other[kept], (values[kept] / root[kept]).astype(np.float32), own[kept]
        is_own = (other >= begin) & (other < end)
        halo = np.unique(other[~is_own])
        columns = np.where(is_own, other - begin, n_own + np.searchsorted(halo, other))
        require(
            len(columns) < np.iinfo(np.int32).max,
            "n_parts",
            f"part {p} has {len(columns):,} ends of edges",
            "use more parts",
        )
        pointers = np.append(0, np.cumsum(np.bincount(own, minlength=n_own)))
        stage.save("values", p, scaled)
        stage.save("columns", p, columns.astype(np.int32))
        stage.save("pointer", p, pointers.astype(np.int32))
        stage.save("halo", p, halo)
        block = load_block(stage, p)
        inside = block.weights[:, : end - begin]
        stage.save("local", p, connected_components(inside, directed=False)[1].astype(np.int64))
    block = load_block(stage, p)
    isolated = int((np.diff(block.weights.indptr) == 0).sum())
    return isolated, block.weights.nnz, len(block.halo)


def load_block(stage: Stage, p: int) -> GraphBlock:
    """Return the row block of a part, mapped from its files."""
    pointer, halo = stage.load("pointer", p), stage.load("halo", p)
    shape = (len(pointer) - 1, len(pointer) - 1 + len(halo))
    entries = stage.load("values", p), stage.load("columns", p), pointer
    return GraphBlock(sparse.csr_array(entries, shape=shape), halo)


def _link(stage: Stage, starts: list[int], p: int) -> None:
    """Collect which components inside parts are joined by edges between parts."""
    if stage.has("links", p):
        return
    block, own = load_block(stage, p), np.asarray(stage.load("local", p))
    n_own = len(own)
    rows = np.repeat(np.arange(n_own), np.diff(block.weights.indptr))
    outside = block.weights.indices >= n_own
    there = stage.parts("local", starts)
    far = block.halo[block.weights.indices[outside] - n_own]
    owner = np.searchsorted(starts, far, side="right") - 1
    links = np.stack([own[rows[outside]], owner, there.take(far)], axis=1).astype(np.int64)
    stage.save("links", p, np.unique(links, axis=0))


def _join_components(stage: Stage, starts: list[int]) -> int:
    """Number the components of the whole graph in the order of their first row."""
    parts = range(len(starts) - 1)
    counts = [int(stage.load("local", p).max(initial=-1)) + 1 for p in parts]
    offsets = np.append(0, np.cumsum(counts))
    links = [np.asarray(stage.load("links", p)) for p in parts]
    begin = np.concatenate([offsets[p] + links[p][:, 0] for p in parts])
    end = np.concatenate([offsets[links[p][:, 1]] + links[p][:, 2] for p in parts])
    size = int(offsets[-1])
    joined = sparse.csr_array((np.ones(len(begin)), (begin, end)), shape=(size, size))
    n_components, label = connected_components(joined, directed=False)
    for p in parts:
        own = label[offsets[p] : offsets[p + 1]]
        stage.save("component", p, own[stage.load("local", p)].astype(np.int64))
    return int(n_components)


def _squares(stage: Stage, p: int) -> np.ndarray:
    """Return the squares of the null vectors before they are normalised: degrees, or 1."""
    degree = np.asarray(stage.load("degree", p))
    isolated = np.diff(stage.load("pointer", p)) == 0
    return np.where(isolated, 1.0, degree)


def _sums(stage: Stage, p: int, n_components: int) -> np.ndarray:
    """Return the sums of `_squares` and the numbers of rows by component."""
    component = stage.load("component", p)
    return np.stack([np.bincount(component, w, n_components) for w in (_squares(stage, p), None)])


def _profile(stage: Stage, p: int, squares: Float[np.ndarray, " c"]) -> None:
    """Write the null vector of each row's component at the row."""
    profile = np.sqrt(_squares(stage, p) / squares[stage.load("component", p)])
    stage.save("profile", p, profile)
