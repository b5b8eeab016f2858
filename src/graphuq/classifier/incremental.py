"""Labels and rows that are added to a fitted classifier."""

import dataclasses
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Int
from sklearn.utils.validation import check_is_fitted, validate_data

from graphuq.classifier.labels import codes_among, label_array, split_labels
from graphuq.classifier.types import Labels, Table
from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.utils.checks import array_of
from graphuq.utils.concurrency import one_at_a_time
from graphuq.utils.progress import Progress, reporting

if TYPE_CHECKING:
    from graphuq.graphs import FeatureSpace, Graph
    from graphuq.posterior.posterior import Posterior
    from graphuq.results.result import Result

NOT_FITTED = (
    "This %(name)s is not fitted; fit it with a label of at least two classes. Before any label "
    "choose rows at random, or by the page of graphuq.label, which starts without labels."
)
Own = TypeVar("Own", bound="Incremental")


class Incremental:
    """Methods of `GraphClassifier` that update a fit with more labels or rows."""

    classes_: np.ndarray
    graph_: "Graph"
    withdrawn_: np.ndarray
    _queried: np.ndarray  # rows that `query` returned since the fit
    result_: "Result"
    inference: Any
    class_proportions: Any
    max_classes: Any
    ordered: Any
    missing_label: Any
    progress: Any
    _basis: Any
    _stored: Any
    _feature_space: "FeatureSpace | None"

    @abstractmethod
    def _explore(
        self, posterior: "Posterior", inference: Any, shares: Any = None, **more: Any
    ) -> None:
        """Run inference, with more arguments of `infer`, and set the attributes of every row."""

    @one_at_a_time
    def add_labels(self: Own, rows: Labels, labels: Labels, inference: Any = None) -> Own:
        """Add, correct or withdraw labels without a new fit.

        Graph, spectrum and hyperparameters stay as `fit` found them, also with another number of
        classes. If `fit` averaged over models, the average is made again for the new labels. Class
        proportions are applied again. If the labels cannot be used, nothing changes. Calls from
        several threads wait for each other.

        Parameters
        ----------
        rows : array_like of int, shape (M,)
            Row numbers of the ``X`` of `fit`, each once; or names of the nodes of a graph.
        labels : array_like, shape (M,)
            Their classes. A class that is new is added to ``classes_``; a class that has no label
            any more is removed. A missing label withdraws the label of its row, if there is one.
        inference : str, Sampler or Approximation, optional
            By default `ExpectationPropagation` with a tolerance of 0.001, from the sites of the
            result before. Otherwise as for the constructor; "auto" samples, and averages again, as
            `fit` does.

        Returns
        -------
        GraphClassifier
            The classifier itself, with a new `result_` and new row attributes.

        Raises
        ------
        InvalidInput
            If a row does not exist or is given twice, if labels mix text and numbers, or if
            fewer than two classes are left; if the fit had soft labels or annotators.
        IncompatibleParts
            If the likelihood is for two classes, and there are more.
        """
        from graphuq.classifier.update import inference_of_update

        check_is_fitted(self)
        require(
            not self.result_.posterior.likelihood.has_soft_labels,
            "labels",
            "added to a fit of soft labels",
            "write them into the matrix of the fit, and fit again",
        )
        method = inference_of_update(self.inference, inference)
        rows = np.atleast_1d(array_of(rows, "rows", "give row numbers"))
        if rows.dtype.kind in "OU" and self._stored is None and self.graph_.names is not None:
            from graphuq.classifier.given_graph import numbers_of_names

            rows = np.array(numbers_of_names(rows.tolist(), self.graph_, "rows"), dtype=np.int64)
        values, given = split_labels(
            np.atleast_1d(label_array(labels, "labels")), self.missing_label, False, "labels"
        )
        require(
            len(values) == len(rows),
            "labels",
            f"{len(values)} values",
            f"give {len(rows)}, as rows",
        )
        changed = rows.astype(np.int64) if len(rows) == 0 else rows
        if self._stored is None:
            known = self.result_.posterior.labelled
            self._take_in(self.result_.posterior, changed, values, given, method)
        else:
            from graphuq.classifier.stored.fit import changed_labels

            known = self._stored.given.rows
            changed_labels(self, changed, values, given, method)
        withdrawn = changed[~given & np.isin(changed, known)]
        self.withdrawn_ = np.union1d(np.setdiff1d(self.withdrawn_, changed), withdrawn)
        return self

    def query(
        self,
        n: int = 10,
        rule: Any = "auto",
        candidates: Any = None,
    ) -> Int[np.ndarray, " n"]:
        """Return rows to label next, the most useful first.

        Give their labels to `add_labels`: it knows that these rows were not chosen class by class.
        A new fit of all labels does not, unless ``model=gq.models.Average("random")`` says so.

        Parameters
        ----------
        n : int, default 10
            Number of rows. There are fewer if fewer candidates are left.
        rule : str or Rule, default "auto"
            See `graphuq.acquisition.query`.
        candidates : array_like of int, optional
            Rows to choose from; by default all. Labelled rows, and rows whose label was
            withdrawn, are left out.

        Returns
        -------
        numpy.ndarray of int, shape (n,)
            The batch is diverse: after each row the posterior is conditioned as if that row were
            labelled.

        Raises
        ------
        InvalidInput
            If ``n`` is not positive, the rule is unknown, or a candidate does not exist.
        IncompatibleParts
            If the result is a point, which has no uncertainty.

        Examples
        --------
        >>> import numpy as np, graphuq as gq
        >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
        >>> y = np.full(200, -1)
        >>> y[:10] = moons.classes[:10]
        >>> classifier = gq.GraphClassifier(inference="expectation-propagation")
        >>> rows = classifier.fit(moons.features, y).query(n=5)
        >>> classifier.add_labels(rows, moons.classes[rows]).result_.posterior.labels.shape
        (15,)
        """
        from graphuq.acquisition.query import query, unlabelled

        check_is_fitted(self, msg=NOT_FITTED)
        hidden = self.withdrawn_
        if self._stored is not None:
            candidates = None if candidates is None else self._stored.nodes(candidates)
            hidden = self._stored.nodes(hidden)
        rows = unlabelled(self.result_, candidates)
        shown = np.ones(len(self.result_.has_evidence), dtype=bool)
        shown[hidden] = False
        found = query(self.result_, n, rule, rows[shown[rows]])
        found = found if self._stored is None else self._stored.sample[found]
        self._queried = np.union1d(self._queried, found)
        return found

    @one_at_a_time
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
        from graphuq.classifier.update import inference_of_update
        from graphuq.graphs.containers import plain_table
        from graphuq.graphs.inputs import check_kind
        from graphuq.graphs.knn import grown_graph

        check_is_fitted(self)
        require(
            self._stored is None, "store", "given beside rows that are added", "fit all rows again"
        )
        method = inference_of_update(self.inference, inference)
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
        X = plain_table(X, "X")
        check_kind(X, "X")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        posterior, n_old = self.result_.posterior, len(self.result_.has_evidence)
        rows, values, given = np.arange(0), self.classes_[:0], np.zeros(0, dtype=bool)
        if y is not None:
            values, given = split_labels(y, self.missing_label, needed=False)
            require(
                len(values) == X.shape[0], "y", f"{len(values)} values", f"X has {X.shape[0]} rows"
            )
            codes_among(values[given], self.classes_)  # raise for an unknown class
            rows = np.arange(len(values))
        graph = grown_graph(self.graph_, X)
        if eigenpairs == "extend":
            known: Any = posterior.spectrum
            if not known.has_eigenpairs:
                raise IncompatibleParts(
                    f"eigenpairs='extend' needs a series of eigenvectors, and {posterior.prior} "
                    "was solved exactly; use eigenpairs='recompute'"
                )
            assert self._feature_space is not None  # or the graph had not grown
            basis = known.extended(self._feature_space.connect(X))
        else:
            with reporting(self.progress) as report:
                basis = _recomputed(graph, posterior.spectrum, report)
        posterior = dataclasses.replace(posterior, spectrum=basis)
        before = self.graph_, self._feature_space
        self.graph_, self._feature_space = graph, graph.feature_space  # blocks are made of its rows
        try:
            self._take_in(posterior, n_old + rows, values, given, method)
        except BaseException:
            self.graph_, self._feature_space = before
            raise
        return self

    def _take_in(
        self, posterior: "Posterior", rows: np.ndarray, values: Any, given: Any, method: Any
    ) -> None:
        """Run inference with changed labels, and apply class proportions again."""
        from graphuq.classifier.class_order import is_ordered
        from graphuq.classifier.contradictions import warn_of_contradictions
        from graphuq.classifier.relabelling import relabelled
        from graphuq.classifier.update import warm_started
        from graphuq.results.class_proportions import shares_of

        posterior, classes = relabelled(
            posterior, self.classes_, rows, values, given, is_ordered(self.ordered)
        )
        several = posterior.likelihood.has_codes
        codes = np.asarray(posterior.labels if several else posterior.labels > 0).astype(np.int64)
        warn_of_contradictions(self, posterior.labelled, classes[codes], rows[given])
        whole: Any = self
        posterior, start = warm_started(whole, posterior, classes, codes, rows, method)
        shares = shares_of(self.class_proportions, classes, codes, self.max_classes)
        before, self.classes_ = self.classes_, classes
        try:
            self._explore(posterior, method, shares, start=start)
        except BaseException:
            self.classes_ = before
            raise


def _recomputed(graph: "Graph", known: Any, progress: Progress | None) -> Any:
    """Return the basis of a grown graph, with as many eigenpairs as before (or all)."""
    from graphuq.spectrum import Basis, Laplacian
    from graphuq.spectrum.solve import DENSE_BELOW

    kind = known.settings["laplacian"]
    if not known.has_eigenpairs:
        return Laplacian(graph, kind)
    n_pairs, n_nodes = known.n_eigenpairs, graph.n_nodes
    if n_pairs == known.n_nodes and n_nodes < DENSE_BELOW:
        n_pairs = n_nodes
    found = Basis.of(
        graph, kind, n_pairs, tail_eigenvalue=known.settings["tail_eigenvalue"], progress=progress
    )
    return found.with_functions(graph.features, known) if known.blocks else found.spectrum
