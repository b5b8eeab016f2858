"""What a fitted classifier takes in later: further labels, further rows."""

import dataclasses
from abc import abstractmethod
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from graphuq.classifier.labels import codes_among, label_array, split_labels
from graphuq.classifier.options import method_of
from graphuq.errors import InvalidInput, require
from graphuq.graphs import FeatureSpace, Graph
from graphuq.graphs.knn import grown_graph
from graphuq.posterior.posterior import Posterior
from graphuq.results.class_proportions import shares_of
from graphuq.results.result import Result
from graphuq.spectrum import Laplacian, Spectrum, laplacian_spectrum
from graphuq.spectrum.solve import DENSE_BELOW
from graphuq.utils.deprecation import warn_renamed
from graphuq.utils.progress import reporting

Own = TypeVar("Own", bound="Incremental")


class Incremental:
    """A part of `GraphClassifier`."""

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
        """Infer, and describe every row."""

    def add_labels(
        self: Own, rows: Any, labels: Any, inference: Any = "expectation-propagation"
    ) -> Own:
        """Take in labels of a few more rows, or other labels of some, at once.

        Graph, spectrum and hyperparameters stay what `fit` found: label means of 70,000 nodes
        take a quarter of a second (of two classes; docs/scale.md). Class proportions hold again.

        Parameters
        ----------
        rows : array_like of int, shape (M,)
            Numbers of rows of the ``X`` of `fit`, each once.
        labels : array_like, shape (M,)
            Their classes, which must be among ``classes_``.
        inference : str, Sampler or Approximation, default "expectation-propagation"
            As of the constructor: "auto" samples as `fit` does.

        Returns
        -------
        GraphClassifier
            Itself, with new `result_` and all that comes of it.

        Raises
        ------
        InvalidInput
            If a row is not there, or given twice, or a class is unknown.
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
        X: Any,
        y: Any = None,
        *,
        eigenpairs: str = "recompute",
        inference: Any = "expectation-propagation",
    ) -> Own:
        """Take in further rows, which become nodes of the graph, and their labels.

        The graph becomes that of all rows: of the old ones' neighbours only what the new ones
        change is sought (`graphuq.graphs.grown_graph`). Hyperparameters stay what `fit` found.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (M, d)
        y : array_like, shape (M,), optional
            Class of each row, among ``classes_``, or ``missing_label``, NaN, None or "".
        eigenpairs : {"recompute", "extend"}, default "recompute"
            "recompute": those of the graph as it is now. "extend": at once, each new row has the
            weighted mean of its neighbours, as `predict` has it; rows without labels then change
            nothing of what is known of others. `docs/scale.md` has the seconds.
        inference : str, Sampler or Approximation, default "expectation-propagation"
            As of the constructor: "auto" samples as `fit` does.

        Returns
        -------
        GraphClassifier
            Itself; rows come after those that it had.

        Raises
        ------
        InvalidInput
            If features do not fit or a class is unknown; if the graph is not of nearest neighbours
            of features; if the classifier was read from a file, and so has no graph.
        IncompatibleParts
            If ``eigenpairs="extend"`` and the prior was solved for.
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

    def _take_in(self, posterior: Posterior, rows: Any, codes: np.ndarray, method: Any) -> None:
        """Explore the posterior with more labels; class proportions hold again."""
        several = posterior.likelihood.is_multiclass
        posterior = posterior.relabelled(rows, codes if several else 2 * codes - 1)
        given = posterior.labels if several else posterior.labels > 0
        shares = shares_of(
            self.class_proportions, self.classes_, given.astype(np.int64), self.max_classes
        )
        self._explore(posterior, method, shares)


def _recomputed(graph: Graph, known: Any, progress: Any) -> Spectrum | Laplacian:
    """Of a graph that grew, what a posterior had of it before: as many eigenpairs, or all."""
    kind = known.settings["laplacian"]
    if not known.has_eigenpairs:
        return Laplacian(graph, kind)
    n_pairs = known.n_eigenpairs
    if n_pairs == known.n_nodes and graph.n_nodes < DENSE_BELOW:
        n_pairs = graph.n_nodes
    return laplacian_spectrum(
        graph, kind, n_pairs, tail_eigenvalue=known.settings["tail_eigenvalue"], progress=progress
    )
