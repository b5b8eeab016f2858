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
from graphuq.graphs.inputs import check_kind, check_no_gaps
from graphuq.spectrum.basis import SMALLEST_DEGREE, NodeBasis
from graphuq.utils.user_warnings import warn_user

SHOWN = 3  # columns that a warning names


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


def located(estimator: Any, X: Table) -> Located:
    """Return the rows of X in the basis of a classifier, whose graph is in memory."""
    result = estimator.result_
    weights, nodes = connected_rows(estimator, X, "each class has the same probability")
    rows = in_basis(estimator, weights, result.posterior.spectrum)
    return Located(*rows, nodes, reached_by(weights, nodes, result.has_evidence))


def rows_in_basis(
    estimator: Any, X: Table, basis: NodeBasis, consequence: str
) -> tuple[Float[np.ndarray, "M L"], Float[np.ndarray, " M"], Int[np.ndarray, " M"]]:
    """Return eigenvector rows, scales, and nodes (−1 outside the graph) of the rows of X.

    Parameters
    ----------
    estimator : GraphClassifier or GraphRegressor
        With ``graph``, ``out_of_sample`` and the feature space of its fit.
    X : array_like, shape (M, d), or graph
    basis : NodeBasis
    consequence : str
        What is predicted for rows without neighbours, for a warning.

    Raises
    ------
    InvalidInput
        If the graph cannot take new rows, or weights are negative and those of the graph are not.
    """
    weights, nodes = connected_rows(estimator, X, consequence)
    return *in_basis(estimator, weights, basis), nodes


def in_basis(
    estimator: Any, weights: sparse.csr_array, basis: NodeBasis
) -> tuple[Float[np.ndarray, "M L"], Float[np.ndarray, " M"]]:
    """Return eigenvector rows and scales of rows with weights to the nodes."""
    if estimator._feature_space is not None and estimator.out_of_sample != "mean":
        return basis.combine(weights)
    return basis.extend(weights), basis.extend_scale(weights)


def reached_by(
    weights: sparse.csr_array, nodes: Int[np.ndarray, " M"], has_evidence: Bool[np.ndarray, " N"]
) -> Bool[np.ndarray, " M"]:
    """Return whether each row is, or is joined to, a node that the labels inform."""
    joined = np.asarray(abs(weights) @ has_evidence.astype(np.float64)).ravel() > 0
    return np.where(nodes >= 0, has_evidence[nodes], joined)


def connected_rows(
    estimator: Any, X: Table, consequence: str
) -> tuple[sparse.csr_array, Int[np.ndarray, " M"]]:
    """Return weights of the rows of X to the nodes, and their nodes (−1 outside the graph)."""
    X = plain_table(rows_to_predict(estimator, X), "X")
    check_kind(X, "X")
    if is_frame(X) or is_polars(X):
        check_no_gaps(X, "X")
    X = validate_data(estimator, X, reset=False, accept_sparse="csr", dtype=np.float64)
    space = estimator._feature_space
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
        rows, points = space.in_space(X), space.features
        dense = isinstance(rows, np.ndarray) and isinstance(points, np.ndarray)
        if dense and space.weight.metric == "euclidean" and not known.all():
            warn_of_other_ranges(estimator, rows, known, space.ranges)
    return weights, nodes


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
