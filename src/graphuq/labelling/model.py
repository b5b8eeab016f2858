"""Posterior of labels that people change: fits, updates, and what the page needs of each."""

import dataclasses
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float, Int

from graphuq.acquisition.query import rule_of
from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.options import build_graph, graph_from
from graphuq.errors import GraphuqError, IncompatibleParts
from graphuq.labelling.features import default_classifier
from graphuq.labelling.intervals import ClassIntervals
from graphuq.labelling.similarity import Similarity
from graphuq.results.errors_left import expected_errors
from graphuq.results.label_checks import suspect_labels
from graphuq.results.result import Result

T = TypeVar("T")

QUEUE = 16  # items that are chosen with one posterior
SUSPECTS = 8  # labels to look at again
REFIT_FACTOR = 2.0  # growth of the number of labels after which evidence chooses again


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The posterior given some labels.

    Attributes
    ----------
    version : int
        Number of the posterior, from 1; 0 before the first one.
    labels : mapping of int to str
        The labels that it knows.
    classes : tuple of str
    probabilities : numpy.ndarray, shape (N, K), or None
        Class probabilities; None before there are labels of two classes.
    result : Result or None
        The posterior itself.
    queue : numpy.ndarray of int
        Items to label next; those of the posterior before until `is_queued`.
    is_queued : bool
        Whether the queue was chosen with this posterior.
    errors : tuple of 3 float, or None
        Expected number of wrong labels, and the ends of its 90 % interval, which are equal to it
        until they are computed.
    intervals : ClassIntervals or None
        Intervals of the probabilities of an item.
    suspects : tuple of dict
        Labels to look at again: ``row``, ``given``, ``probability``, ``other``.
    notes : tuple of str
        Warnings and errors of the fit.
    """

    version: int = 0
    labels: Mapping[int, str] = dataclasses.field(default_factory=dict)
    classes: tuple[str, ...] = ()
    probabilities: Float[np.ndarray, "N K"] | None = None
    result: Result | None = None
    queue: Int[np.ndarray, " n"] = dataclasses.field(default_factory=lambda: np.arange(0))
    is_queued: bool = False
    errors: tuple[float, float, float] | None = None
    intervals: ClassIntervals | None = None
    suspects: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()


class Model:
    """A classifier that follows labels as they change. One thread uses it.

    Parameters
    ----------
    X : array_like or None
        Features, as `GraphClassifier.fit` takes them.
    classifier : GraphClassifier, optional
        Settings; by default those of `default_classifier`.
    rule : str or Rule, default "auto"
        What is labelled next; see `graphuq.acquisition.query`.
    """

    def __init__(
        self, X: Any, classifier: GraphClassifier | None = None, rule: Any = "auto"
    ) -> None:
        if classifier is None:
            classifier = default_classifier()
        self._X = X
        self._rule = rule_of(rule)
        self._settings = GraphClassifier(
            **{**classifier.get_params(deep=False), "missing_label": None}
        )
        self._fitted: GraphClassifier | None = None
        self._labels: dict[int, str] = {}
        self._n_labels_of_fit = 0
        self._graph_notes: tuple[str, ...] = ()
        self.n_items = 0

    def prepare(self) -> None:
        """Build the graph, once, and what follows from it alone."""
        s = self._settings
        graph, self._graph_notes = _with_notes(
            lambda: build_graph(graph_from(s.graph), self._X, s.n_neighbors, s.weights, s.metric)
        )
        s.set_params(graph=graph, n_neighbors="auto", weights="auto", metric=None)
        self.n_items = graph.n_nodes
        self.similarity, _ = _with_notes(lambda: Similarity(graph))

    @property
    def graph(self) -> Any:
        """The graph of the items, after `prepare`."""
        return self._settings.graph

    @property
    def wants_refit(self) -> bool:
        """Whether there are so many new labels that evidence should choose hyperparameters."""
        return len(self._labels) >= REFIT_FACTOR * self._n_labels_of_fit

    def renew(self, labels: Mapping[int, str], version: int, refit: bool = False) -> Snapshot:
        """Return the posterior given labels, without its queue and suspects.

        Parameters
        ----------
        labels : mapping of int to str
        version : int
            Number of the new posterior.
        refit : bool, default False
            Choose hyperparameters again.
        """
        snapshot = Snapshot(version, dict(labels), tuple(sorted(set(labels.values()))))
        self._labels = dict(labels)
        if len(snapshot.classes) < 2:
            self._fitted = None
            return snapshot
        _, notes = _with_notes(lambda: self._update(labels, refit))
        assert self._fitted is not None
        p = self._fitted.result_.probabilities
        expected = float((1 - p[self._unlabelled(labels)].max(axis=1)).sum())
        return dataclasses.replace(
            snapshot,
            classes=tuple(str(name) for name in self._fitted.result_.classes),
            probabilities=p.astype(np.float32),
            result=self._fitted.result_,
            errors=(expected, expected, expected),
            intervals=self._intervals(),
            notes=(*self._graph_notes, *notes),
        )

    def with_queue(self, snapshot: Snapshot, without: Any = ()) -> Snapshot:
        """Return the latest posterior with the items to label next."""
        if self._fitted is None or snapshot.probabilities is None:
            rows = self.similarity.central_rows(QUEUE, list(snapshot.labels), without)
            return dataclasses.replace(snapshot, queue=rows, is_queued=True)
        rows = self._unlabelled(snapshot.labels, without)
        if len(rows):
            query = self._fitted.query
            rows, _ = _with_notes(lambda: np.asarray(query(QUEUE, self._rule, rows)))
        return dataclasses.replace(snapshot, queue=rows, is_queued=True)

    def with_checks(self, snapshot: Snapshot) -> Snapshot:
        """Return the latest posterior with suspect labels and the interval of errors."""
        if self._fitted is None or snapshot.probabilities is None:
            return snapshot
        result = self._fitted.result_
        table, _ = _with_notes(lambda: suspect_labels(result, SUSPECTS, likely_wrong=True))
        try:
            count, _ = _with_notes(partial(expected_errors, result))
            errors = (float(count.expected), float(count.lower), float(count.upper))
        except IncompatibleParts:  # a point has no uncertainty
            errors = snapshot.errors or (0.0, 0.0, 0.0)
        suspects = tuple(
            {
                "row": int(found["node"]),
                "given": str(found["given"]),
                "probability": float(found["probability"]),
                "other": str(found["other"]),
            }
            for found in table.to_dict("records")
        )
        return dataclasses.replace(snapshot, errors=errors, suspects=suspects)

    def _intervals(self) -> ClassIntervals | None:
        assert self._fitted is not None
        found = ClassIntervals.of(self._fitted.result_)
        if found is not None:
            found.at(0)  # compiles, so that no request waits for that
        return found

    def _unlabelled(self, labels: Mapping[int, str], without: Any = ()) -> np.ndarray:
        free = np.ones(self.n_items, dtype=bool)
        free[list(labels)] = False
        free[np.asarray(without, dtype=np.int64)] = False
        return np.flatnonzero(free)

    def _update(self, labels: Mapping[int, str], refit: bool) -> None:
        """Bring the classifier to some labels: only the changes if it is possible."""
        fitted = self._fitted
        if fitted is not None and not refit:
            known = fitted.result_.posterior
            names = fitted.result_.classes[_codes(known)]
            old = dict(zip(known.labelled.tolist(), map(str, names), strict=True))
            rows = sorted(r for r in {*old, *labels} if old.get(r) != labels.get(r))
            if not rows:
                return
            try:
                fitted.add_labels(rows, np.array([labels.get(r, "") for r in rows], dtype=object))
                return
            except GraphuqError:
                pass  # such as a likelihood for two classes: a new fit chooses another one
        y = np.full(self.n_items, "", dtype=object)
        for row, label in labels.items():
            y[row] = label
        self._fitted, self._n_labels_of_fit = None, len(labels)
        self._fitted = GraphClassifier(**self._settings.get_params(deep=False)).fit(None, y)


def _codes(posterior: Any) -> Int[np.ndarray, " J"]:
    """Return the class of each given label as an index from 0."""
    labels = posterior.labels
    return (labels if posterior.likelihood.is_multiclass else labels > 0).astype(np.int64)


def _with_notes(act: Callable[[], T]) -> tuple[T, tuple[str, ...]]:
    """Return what a function returns, and its warnings as sentences."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = act()
    return found, tuple(dict.fromkeys(" ".join(str(w.message).split()) for w in caught))
