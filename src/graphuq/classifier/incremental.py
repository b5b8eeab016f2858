"""Labels and rows that are added to a fitted classifier."""

import dataclasses
from abc import abstractmethod
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from graphuq.classifier.labels import codes_among, label_array, split_labels
from graphuq.classifier.options import method_of
from graphuq.classifier.types import Labels, Table
from graphuq.errors import InvalidInput, require
from graphuq.graphs import FeatureSpace, Graph
from graphuq.graphs.knn import grown_graph
from graphuq.posterior.posterior import Posterior
from graphuq.results.class_proportions import shares_of
from graphuq.results.result import Result
from graphuq.spectrum import Laplacian, Spectrum, laplacian_spectrum
from graphuq.spectrum.solve import DENSE_BELOW
from graphuq.utils.deprecation import warn_renamed
from graphuq.utils.progress import Progress, reporting

Own = TypeVar("Own", bound="Incremental")


class Incremental:
    """Methods of `GraphClassifier` that update a fit with more labels or rows."""

    classes_: np.ndarray
    graph_: Graph
    result_: Result
    class_proportions: Any
    max_classes: Any
    missing_label: Any
    progress: Any
    _feature_space: FeatureSpace | None

    @abstractmethod
    def _explore(self, posterior: Posterior, method: Any, shares: Any = None) -> None:
        """Run inference and set the attributes of every row."""

    def add_labels(
        self: Own, rows: Labels, labels: Labels, inference: Any = "expectation-propagation"
    ) -> Own:
        """Add labels of more rows, or change given labels, without a new fit.

        Graph, spectrum and hyperparameters stay as `fit` found them. Label means of 70,000 nodes
        and two classes take a quarter of a second (docs/scale.md). Class proportions are applied
        again.

        Parameters
        ----------
        rows : array_like of int, shape (M,)
            Row numbers of the ``X`` of `fit`, each once.
        labels : array_like, shape (M,)
            Their classes, which must be among ``classes_``. Rows with a missing label are left as
            they are.
        inference : str, Sampler or Approximation, default "expectation-propagation"
            As for the constructor; "auto" samples as `fit` does.

        Returns
        -------
        GraphClassifier
            The classifier itself, with a new `result_` and new row attributes.

        Raises
        ------
        InvalidInput
            If a row does not exist or is given twice, or a class is unknown.
        """
        check_is_fitted(self)
        method = method_of(inference)
        rows = np.atleast_1d(np.asarray(rows))
        values, given = split_labels(
            np.atleast_1d(label_array(labels)), self.missing_label, False, "labels"
        )
        require(
            len(values) == len(rows),
            "labels",
            f"{len(values)} values",
            f"give {len(rows)}, as rows",
        )
        codes = codes_among(values[given], self.classes_)
        self._take_in(self.result_.posterior, rows[given], codes, method)
        return self

    def add_rows(
        self: Own,
        X: Table,
        y: Labels = None,
        *,
        eigenpairs: str = "recompute",
        inference: Any = "expectation-propagation",
    ) -> Own:
        """Add rows to the graph, with or without labels.

        The graph becomes that of all rows; neighbours of old rows are searched again only where
        new rows change them (`graphuq.graphs.grown_graph`). Hyperparameters stay as `fit` found
        them.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (M, d)
        y : array_like, shape (M,), optional
            Class of each row, among ``classes_``, or ``missing_label``, NaN, None or "".
        eigenpairs : {"recompute", "extend"}, default "recompute"
            "recompute": eigenpairs of the grown graph. "extend", which is quick: each new row
            has the weighted mean of its neighbours, as in `predict`. New rows without labels then
            do not change the posterior of other rows. `docs/scale.md` has run times.
        inference : str, Sampler or Approximation, default "expectation-propagation"
            As for the constructor; "auto" samples as `fit` does.

        Returns
        -------
        GraphClassifier
            The classifier itself; new rows come after the old ones.

        Raises
        ------
        InvalidInput
            If features do not fit or a class is unknown; if the graph is not a nearest-neighbour
            graph of features; if the classifier was read from a file, which holds no graph.
        IncompatibleParts
            If ``eigenpairs="extend"`` and the prior was solved exactly, without eigenpairs.
        """
        check_is_fitted(self)
        method = method_of(inference)
        renamed = {"anew": "recompute", "extended": "extend"}
        if eigenpairs in renamed:
            warn_renamed(f"eigenpairs={eigenpairs!r}", f"eigenpairs={renamed[eigenpairs]!r}")
            eigenpairs = renamed[eigenpairs]
        choices = ("recompute", "extend")
        require(
            eigenpairs in choices,
            "eigenpairs",
            f"{eigenpairs!r} is unknown",
            f"use one of {', '.join(choices)}",
        )
        if not hasattr(self, "graph_"):
            raise InvalidInput(
                "X", "rows for a classifier without its graph", "fit again: files do not hold it"
            )
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        posterior, n_old = self.result_.posterior, self.result_.n_nodes
        rows, codes = np.arange(0), np.arange(0)
        if y is not None:
            values, given = split_labels(y, self.missing_label, needed=False)
            require(
                len(values) == X.shape[0], "y", f"{len(values)} values", f"X has {X.shape[0]} rows"
            )
            rows, codes = np.flatnonzero(given), codes_among(values[given], self.classes_)
        graph = grown_graph(self.graph_, X)
        if eigenpairs == "extend":
            assert self._feature_space is not None  # or the graph had not grown
            basis = posterior.spectrum.extended(self._feature_space.connect(X))
        else:
            with reporting(self.progress) as report:
                basis = _recomputed(graph, posterior.spectrum, report)
        posterior = dataclasses.replace(posterior, spectrum=basis)
        self._take_in(posterior, n_old + rows, codes, method)
        self.graph_, self._feature_space = graph, graph.feature_space
        return self

    def _take_in(
        self, posterior: Posterior, rows: np.ndarray, codes: np.ndarray, method: Any
    ) -> None:
        """Run inference with more labels, and apply class proportions again."""
        several = posterior.likelihood.is_multiclass
        posterior = posterior.relabelled(rows, codes if several else 2 * codes - 1)
        given = posterior.labels if several else posterior.labels > 0
        shares = shares_of(
            self.class_proportions, self.classes_, given.astype(np.int64), self.max_classes
        )
        self._explore(posterior, method, shares)


def _recomputed(graph: Graph, known: Any, progress: Progress | None) -> Spectrum | Laplacian:
    """Return the spectrum of a grown graph, with as many eigenpairs as before (or all)."""
    kind = known.settings["laplacian"]
    if not known.has_eigenpairs:
        return Laplacian(graph, kind)
    n_pairs = known.n_eigenpairs
    if n_pairs == known.n_nodes and graph.n_nodes < DENSE_BELOW:
        n_pairs = graph.n_nodes
    return laplacian_spectrum(
        graph, kind, n_pairs, tail_eigenvalue=known.settings["tail_eigenvalue"], progress=progress
    )
