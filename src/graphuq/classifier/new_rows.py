"""Rows of a fitted estimator's X: nodes of its graph, or new rows joined to their neighbours."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse
from sklearn.utils.validation import validate_data

from graphuq.classifier.given_graph import rows_to_predict
from graphuq.classifier.types import Table
from graphuq.errors import FarRowsWarning, require
from graphuq.graphs.column_ranges import ColumnRanges
from graphuq.graphs.containers import is_frame, is_polars, plain_table
from graphuq.graphs.inputs import Features, check_kind, check_no_gaps
from graphuq.spectrum.basis import SMALLEST_DEGREE
from graphuq.spectrum.new_rows import dense, functions_of_rows
from graphuq.utils.user_warnings import warn_user

SHOWN = 3  # columns that a warning names
KEPT = "_functions_of_rows"  # name under which a basis keeps them


class Located(NamedTuple):
    """Rows of X in the basis of a fit.

    Attributes
    ----------
    eigenvectors : numpy.ndarray, shape (M, L)
    scale : numpy.ndarray, shape (M,)
    nodes : numpy.ndarray of int, shape (M,)
        −1 outside the graph.
    has_evidence : numpy.ndarray of bool, shape (M,)
        Whether each row is, or is joined to, a node that the labels inform.
    """

    eigenvectors: Float[np.ndarray, "M L"]
    scale: Float[np.ndarray, " M"]
    nodes: Int[np.ndarray, " M"]
    has_evidence: Bool[np.ndarray, " M"]


class Connected(NamedTuple):
    """Rows of X with weights to the nodes.

    Attributes
    ----------
    weights : scipy.sparse.csr_array, shape (M, N)
    nodes : numpy.ndarray of int, shape (M,)
        −1 outside the graph.
    features : numpy.ndarray or scipy.sparse.csr_array, shape (M, d), or None
        Those of the rows as the nodes have them; None without any.
    """

    weights: sparse.csr_array
    nodes: Int[np.ndarray, " M"]
    features: Features | None


def located(estimator: Any, X: Table) -> Located:
    """Return the rows of X in the basis of a classifier, whose graph is in memory."""
    result = estimator.result_
    joined = connected_rows(estimator, X, "each class has the same probability")
    rows = in_basis(estimator, joined, result.posterior.spectrum)
    return Located(*rows, joined.nodes, reached_by(joined, result.has_evidence))


def in_basis(
    estimator: Any, rows: Connected, basis: Any
) -> tuple[Float[np.ndarray, "M L"], Float[np.ndarray, " M"]]:
    """Return rows of the basis and scales of connected rows.

    Functions of the features have their own values at each row that has neighbours, unless the
    answer is to be that of the nearest node.
    """
    weights, space = rows.weights, estimator._feature_space
    if space is not None and estimator.out_of_sample != "mean":
        found, scale = basis.combine(weights)
    else:
        found, scale = basis.extend(weights), basis.extend_scale(weights)
    if rows.features is None or estimator.out_of_sample == "nearest":
        return found, scale
    near = np.asarray(abs(weights).sum(axis=1)).ravel() >= SMALLEST_DEGREE
    for name, values in _functions_at(estimator, basis, rows.features).items():
        found[near, basis.columns_of(name)] = (values / scale[:, None])[near]
    return found, scale


def _functions_at(estimator: Any, basis: Any, rows: Features) -> dict[str, np.ndarray]:
    """Return the functions of the features at rows; what it takes is kept for the next ones."""
    space, blocks = estimator._feature_space, getattr(basis, "blocks", ())
    nodes = space.rows_of_nodes(basis.n_nodes)
    if not blocks or nodes is None or not space.makes_edges:
        return {}
    used = _used_blocks(estimator, [block.name for block in blocks])
    known = vars(basis).setdefault(KEPT, {})
    missing = [block for block in blocks if block.name in used - known.keys()]
    if missing:
        names = [block.name for block in missing]
        found_now = dict.fromkeys(names) | functions_of_rows(nodes, missing)
        known |= found_now  # in one step, since other threads may predict
    found = {name: one for name, one in known.items() if name in used and one is not None}
    return {name: one.at(dense(rows)) for name, one in found.items()}


def _used_blocks(estimator: Any, names: list[str]) -> set[str]:
    """Return the blocks of which an answer has components, or all."""
    result: Any = getattr(estimator, "result_", None)
    numbers = None if result is None else getattr(result.answer, "numbers", None)
    if numbers is None:
        return set(names)
    prior = result.posterior.prior
    return {name for name in names if prior.uses(name)[numbers].any()}


def reached_by(rows: Connected, has_evidence: Bool[np.ndarray, " N"]) -> Bool[np.ndarray, " M"]:
    """Return whether each row is, or is joined to, a node that the labels inform."""
    joined = np.asarray(abs(rows.weights) @ has_evidence.astype(np.float64)).ravel() > 0
    return np.where(rows.nodes >= 0, has_evidence[rows.nodes], joined)


def connected_rows(estimator: Any, X: Table, consequence: str) -> Connected:
    """Return the rows of X with their weights to the nodes.

    ``consequence`` is what is predicted for rows without neighbours, for a warning.
    """
    X = plain_table(rows_to_predict(estimator, X), "X")
    check_kind(X, "X")
    if is_frame(X) or is_polars(X):
        check_no_gaps(X, "X")
    X = validate_data(estimator, X, reset=False, accept_sparse="csr", dtype=np.float64)
    space, rows = estimator._feature_space, None
    if space is None:
        require(
            not isinstance(estimator.metric, str) or estimator.metric != "precomputed",
            "X",
            "rows outside a graph that was made from distances",
            "fit again with them among the rows, or make the graph from features",
        )
        weights, nodes = sparse.csr_array(X), np.full(X.shape[0], -1)
        fit = getattr(estimator, "result_", None)  # numbers are refused on a graph with signs
        require(
            (fit is not None and fit.posterior.spectrum.is_signed)
            or weights.nnz == 0
            or bool(weights.data.min() >= 0),
            "X",
            "negative weights to the nodes of a graph without any",
            "give similarities >= 0",
        )
    else:
        weights, nodes = space.connect(X, estimator.out_of_sample), space.find(X)
        degree = np.asarray(abs(weights).sum(axis=1)).ravel()
        known = (nodes >= 0) | warn_of_far_rows(degree, nodes >= 0, consequence)
        rows, points = space.unit_rows(space.in_space(X)), space.features
        is_dense = isinstance(rows, np.ndarray) and isinstance(points, np.ndarray)
        if is_dense and space.weight.metric == "euclidean" and not known.all():
            warn_of_other_ranges(estimator, rows, known, space.ranges)
    return Connected(weights, nodes, rows)


def warn_of_far_rows(
    degree: Float[np.ndarray, " M"], is_node: Bool[np.ndarray, " M"], consequence: str
) -> Bool[np.ndarray, " M"]:
    """Warn if new rows are so far from all nodes that every weight is zero, and return which."""
    is_far: Bool[np.ndarray, " M"] = ~is_node & (degree < SMALLEST_DEGREE)
    far = np.flatnonzero(is_far)
    if len(far):
        warn_user(
            f"X: {len(far)} of {len(degree)} rows, such as row {far[0]}, are too far from the "
            f"graph to have neighbours, so {consequence}; transform new rows as those of the fit, "
            "or use out_of_sample='nearest'",
            FarRowsWarning,
        )
    return is_far


def warn_of_other_ranges(
    estimator: Any,
    X: Float[np.ndarray, "M d"],
    known: Bool[np.ndarray, " M"],
    ranges: ColumnRanges,
) -> None:
    """Warn if new rows have values far outside those of the fit, as in other units.

    Parameters
    ----------
    estimator : GraphClassifier or GraphRegressor
    X : numpy.ndarray, shape (M, d)
        Rows in the space of the features. Sparse ones, and metrics other than the Euclidean, are
        not checked.
    known : numpy.ndarray of bool, shape (M,)
        Rows that are nodes, or of which another warning says that they are far.
    ranges : ColumnRanges
        Those of the rows of the fit.
    """
    beyond = ranges.beyond(X) & ~known[:, None]
    rows, columns = np.flatnonzero(beyond.any(axis=1)), np.flatnonzero(beyond.any(axis=0))
    if not len(rows):
        return
    names = getattr(estimator, "feature_names_in_", getattr(estimator, "_names_of_columns", None))
    shown = [str(k) if names is None else repr(str(names[k])) for k in columns[:SHOWN]]
    more = f" and {len(columns) - SHOWN} more" if len(columns) > SHOWN else ""
    warn_user(
        f"X: {len(rows)} of {len(X)} rows, such as row {rows[0]}, have values far outside those of "
        f"the fit, in column{'s' * (len(columns) > 1)} {', '.join(shown)}{more}; if units or "
        "scaling are other ones, convert them, else do not rely on these rows",
        FarRowsWarning,
    )
