"""New rows, joined to their nearest neighbours among the rows of a store."""

from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq.classifier.new_rows import Located, warn_of_far_rows, warn_of_other_ranges
from graphuq.classifier.stored.fit import StoredFit, running
from graphuq.classifier.stored.table import has_evidence, nodes_of
from graphuq.engine.neighbors import nearest_in_part
from graphuq.engine.tasks import Tasks
from graphuq.graphs.containers import is_frame, is_polars, plain_table
from graphuq.graphs.inputs import check_kind, check_no_gaps
from graphuq.spectrum.basis import SMALLEST_DEGREE

ROWS = 1_024  # new rows whose neighbours' columns are in memory together


def located_in_store(classifier: Any, X: Any) -> Located:
    """Return where new rows are in the basis: each is a node, another row, or joined to rows.

    Rows are compared with all rows of the table.
    """
    from sklearn.utils.validation import validate_data

    X = plain_table(X, "X")
    check_kind(X, "X")
    if is_frame(X) or is_polars(X):
        check_no_gaps(X, "X")
    rows = validate_data(classifier, X, reset=False, dtype=np.float64)
    with running(classifier) as tasks:
        pieces = [
            _located(classifier, rows[begin : begin + ROWS], tasks)
            for begin in range(0, len(rows), ROWS)
        ]
        *found, is_same, degree = map(np.concatenate, zip(*pieces, strict=True))
        known = is_same | warn_of_far_rows(degree, is_same, "each class has the same probability")
        if not known.all():
            warn_of_other_ranges(classifier, rows, known, classifier._stored.stages.ranges(tasks))
    return Located(*found)


def _located(classifier: Any, rows: Float[np.ndarray, "M d"], tasks: Tasks) -> tuple[Any, ...]:
    """Return the parts of `Located`, whether each row is in the store, and its sum of weights."""
    fit: StoredFit = classifier._stored
    spectrum: Any = classifier.result_.posterior.spectrum
    near, weights, is_same = _joined(fit, rows, tasks)
    names, n_nodes = [block.name for block in spectrum.blocks], len(fit.sample)
    columns = fit.basis.columns_at(near.ravel(), names, n_nodes).reshape(*near.shape, -1)
    degrees = fit.basis.pairs.degrees(near.ravel()).reshape(near.shape)
    found = _extended(weights, columns, degrees, spectrum.n_eigenpairs)
    is_near = weights.sum(axis=1) >= SMALLEST_DEGREE
    for name in set(names).difference(fit.basis.others):
        found[is_near, spectrum.columns_of(name)] = fit.basis.at_rows(rows[is_near], name)
    found[is_same] = columns[is_same, 0]
    parts = fit.stages.first.parts
    own = parts.parts("row", fit.basis.pairs.starts).take(near[:, 0])
    nodes = np.where(is_same, nodes_of(own, fit.sample), -1)
    informed = has_evidence(fit.basis, near.ravel(), fit.posterior).reshape(near.shape)
    reached = np.where(is_same, informed[:, 0], (informed & (weights > 0)).any(axis=1))
    return found, np.ones(len(rows)), nodes, reached, is_same, weights.sum(axis=1)


def _joined(
    fit: StoredFit, rows: Float[np.ndarray, "M d"], tasks: Tasks
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return places of neighbours, nearest first, weights, and whether the first is the row."""
    stages, starts = fit.stages.first, fit.basis.pairs.starts
    k, asked = stages.options.n_neighbors, stages.measured(rows)
    parts = [(stages.points, p, asked, starts[p], k) for p in range(len(starts) - 1)]
    found = tasks.map(nearest_in_part, parts)
    distance = np.concatenate([some for some, _ in found], axis=1)
    near = np.concatenate([some for _, some in found], axis=1)
    order = np.argsort(distance, axis=1, kind="stable")[:, :k]
    near = np.take_along_axis(near, order, axis=1)
    points = stages.points.parts("features", starts).take(near.ravel())
    points = points.reshape(*near.shape, -1).astype(np.float64)
    distance = np.sqrt(((points - asked[:, None].astype(np.float64)) ** 2).sum(axis=2))
    order = np.lexsort((near, distance), axis=1)
    near, distance = (np.take_along_axis(some, order, axis=1) for some in (near, distance))
    scales = stages.neighbors.parts("scale", starts).take(near.ravel()).reshape(near.shape)
    weights = stages.options.weight.weight(distance, distance[:, -1:], scales)
    nearest = stages.parts.parts("features", starts).take(near[:, 0])
    return near, np.asarray(weights), (nearest == rows.astype(np.float32)).all(axis=1)


def _extended(
    weights: Float[np.ndarray, "M k"],
    columns: Float[np.ndarray, "M k L"],
    degrees: Float[np.ndarray, "M k"],
    n_pairs: int,
) -> Float[np.ndarray, "M L"]:
    """Return means of the neighbours' columns, as `graphuq.Basis.extend` does."""
    degree = weights.sum(axis=1)
    near = degree >= SMALLEST_DEGREE
    inverse = np.where(near, 1 / np.where(near, degree, 1.0), 0.0)[:, None]
    scaled = weights / np.sqrt(np.where(degrees > 0, degrees, 1.0))
    of_pairs = np.einsum("mk,mkl->ml", scaled, columns[:, :, :n_pairs])
    of_blocks = np.einsum("mk,mkl->ml", weights, columns[:, :, n_pairs:])
    return np.hstack([of_pairs * np.sqrt(degree)[:, None], of_blocks]) * inverse
