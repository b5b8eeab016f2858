"""Posterior of labels that people change: fits, updates, and what the page needs of each."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from graphuq.acquisition.query import rule_of
from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.options import basis_of, build_graph, graph_from, model_of
from graphuq.errors import IncompatibleParts, require
from graphuq.graphs import Graph
from graphuq.graphs.neighbors import TREE_COLUMNS
from graphuq.labelling.classes import PageClasses
from graphuq.labelling.features import default_classifier
from graphuq.labelling.following import FollowingClassifier, SharedBasis, with_notes
from graphuq.labelling.similarity import Similarity
from graphuq.results.label_checks import suspect_labels
from graphuq.results.probability_intervals import ProbabilityIntervals
from graphuq.results.result import Result
from graphuq.results.uncertainty import rank_by_uncertainty
from graphuq.utils.concurrency import cached_property
from graphuq.utils.extras import has_extra
from graphuq.utils.progress import Progress

MANY = 5_000  # items, above which their graph takes more than a moment
LARGE = 20_000  # items, above which neighbours are searched in inverted lists where faiss is there
N_SAMPLED = 2_000  # of them, whose graph shows what to begin with
QUEUE = 16  # items that are chosen with one posterior
SUSPECTS = 8  # labels to look at again


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
    result : Result, TagResult or None
        The posterior itself.
    queue : numpy.ndarray of int
        Items to label next; those of the posterior before until `is_queued`.
    is_queued : bool
        Whether the queue was chosen with this posterior.
    intervals : ProbabilityIntervals, TagIntervals or None
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
    result: Any = None
    queue: Int[np.ndarray, " n"] = dataclasses.field(default_factory=lambda: np.arange(0))
    is_queued: bool = False
    intervals: Any = None
    suspects: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()

    def ranked(self, n_items: int) -> Iterator[int]:
        """Yield rows to label, the best first: the queue, then the least certain. Rows repeat."""
        yield from self.queue.tolist()
        yield from _any_order(n_items) if self.probabilities is None else self._by_certainty

    def likeliest(self, row: int) -> tuple[str, float] | None:
        """Return the likeliest label of an item and its probability, if there is a posterior."""
        if self.probabilities is None:
            return None
        best = int(self.probabilities[row].argmax())
        return self.classes[best], float(self.probabilities[row, best])

    @property
    def certainty(self) -> Float[np.ndarray, " N"] | None:
        """Probability of the likeliest label of each item."""
        return None if self.probabilities is None else self.probabilities.max(axis=1)

    def has_class(self, name: str) -> Bool[np.ndarray, " N"]:
        """Return whether a class, which has a probability, is in the likeliest label."""
        assert self.probabilities is not None
        return np.asarray(self.probabilities.argmax(axis=1) == self.classes.index(name))

    @cached_property
    def _by_certainty(self) -> list[int]:
        assert self.probabilities is not None
        return list(map(int, rank_by_uncertainty(self.probabilities)))


@functools.cache
def _any_order(n_items: int) -> list[int]:
    """Return all rows in an order that tells nothing, as that of the data may follow classes."""
    return list(map(int, rank_by_uncertainty(np.zeros(n_items))))


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
        self.classes = PageClasses(classifier.ordered)
        takes_order = not self.classes.order or model_of(classifier.model).takes_order
        remedy = "leave it out, or use 'auto'"
        require(takes_order, "model", f"{classifier.model!r} beside ordered classes", remedy)
        self._X = X
        self._rule = rule_of(rule)
        self._settings = GraphClassifier(
            **{**classifier.get_params(deep=False), "missing_label": None}
        )
        self.shared = SharedBasis()
        self._follower = FollowingClassifier(self._settings, self.shared, self.classes)
        self._n_labels = 0
        self._graph_notes: tuple[str, ...] = ()
        self.n_items = 0

    def first_rows(self) -> Int[np.ndarray, " n"]:
        """Return items to begin with while the graph of many items is built; none of few.

        They are those that tell most about a random sample of the items, by its own graph.
        """
        X = self._X
        is_table = isinstance(X, np.ndarray) or sparse.issparse(X)
        if self._settings.graph != "knn" or not is_table or X.shape[0] <= MANY:
            return np.arange(0)
        rows = np.sort(np.random.default_rng(0).choice(X.shape[0], N_SAMPLED, replace=False))
        part = X[rows] if isinstance(X, np.ndarray) else X.tocsr()[rows]
        graph, _ = with_notes(lambda: self._graph_of(part))
        similarity, _ = with_notes(lambda: Similarity.of_graph(graph))
        return rows[similarity.central_rows(QUEUE)]

    def _graph_of(self, X: Any, progress: Progress | None = None) -> Graph:
        s, graph = self._settings, graph_from(self._settings.graph)
        is_large = isinstance(X, np.ndarray) and X.shape[0] > LARGE and X.shape[1] > TREE_COLUMNS
        search = "approximate" if is_large and has_extra("neighbors") else "auto"
        return build_graph(graph, X, s.n_neighbors, s.weights, s.metric, progress, search=search)

    def prepare(self, progress: Progress | None = None) -> None:
        """Build the graph and its basis, once, and what follows from these alone.

        Of more than 20,000 rows of numbers, neighbours are searched in inverted lists, which find
        99 % of them, if faiss is installed.

        Parameters
        ----------
        progress : callable, optional
            As of `graphuq.infer`; its phases are "neighbours" and "eigenpairs".
        """
        s = self._settings
        graph, self._graph_notes = with_notes(lambda: self._graph_of(self._X, progress))
        s.set_params(graph=graph, n_neighbors="auto", weights="auto", metric=None)
        self.n_items = graph.n_nodes
        basis, _ = with_notes(lambda: self._basis_of(graph, progress))
        self.similarity, _ = with_notes(lambda: Similarity.of_graph(graph, basis))

    def _basis_of(self, graph: Graph, progress: Progress | None) -> Any:
        """Return the basis of all fits, which the similarity of items shares."""
        s = self._settings
        self.shared.basis = basis_of(
            graph, s.laplacian, s.n_eigenpairs, s.tail_eigenvalue, model_of(s.model), progress
        )
        return self.shared.basis

    @property
    def settings(self) -> GraphClassifier:
        """Settings, with the graph of the items after `prepare`."""
        return self._settings

    @property
    def wants_refit(self) -> bool:
        """Whether there are so many new labels that evidence should choose hyperparameters."""
        return self._follower.wants_refit(self._n_labels)

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
        self._n_labels = len(labels)
        if len(snapshot.classes) < 2:
            self._follower.forget()
            return snapshot
        result, notes = with_notes(lambda: self._follower.follow(labels, refit))
        return dataclasses.replace(
            snapshot,
            classes=tuple(str(name) for name in result.classes),
            probabilities=result.probabilities.astype(np.float32),
            result=result,
            intervals=intervals_of(result),
            notes=(*self._graph_notes, *notes),
        )

    def with_queue(self, snapshot: Snapshot, without: Any = ()) -> Snapshot:
        """Return the latest posterior with the items to label next."""
        fitted = self._follower.fitted
        if fitted is None or snapshot.probabilities is None:
            rows = self.similarity.central_rows(QUEUE, list(snapshot.labels), without)
            return dataclasses.replace(snapshot, queue=rows, is_queued=True)
        rows = self.unlabelled(snapshot.labels, without)
        if len(rows):
            query = fitted.query
            rows, _ = with_notes(lambda: np.asarray(query(QUEUE, self._rule, rows)))
        return dataclasses.replace(snapshot, queue=rows, is_queued=True)

    def with_checks(self, snapshot: Snapshot) -> Snapshot:
        """Return the latest posterior with suspect labels."""
        result = snapshot.result
        if result is None:
            return snapshot
        return dataclasses.replace(snapshot, suspects=tuple(suspects_of(result)))

    def unlabelled(self, labels: Mapping[int, str], without: Any = ()) -> np.ndarray:
        """Return the rows without a label."""
        free = np.ones(self.n_items, dtype=bool)
        free[list(labels)] = False
        free[np.asarray(without, dtype=np.int64)] = False
        return np.flatnonzero(free)


def suspects_of(result: Result) -> list[dict[str, Any]]:
    """Return labels to look at again, the least probable first."""
    table, _ = with_notes(lambda: suspect_labels(result, SUSPECTS, likely_wrong=True))
    return [
        {
            "row": int(found["node"]),
            "given": str(found["given"]),
            "probability": float(found["probability"]),
            "other": str(found["other"]),
        }
        for found in table.to_dict("records")
    ]


def intervals_of(result: Result) -> ProbabilityIntervals | None:
    """Return the intervals of a result, compiled, or None if its likelihood has none."""
    try:
        found = ProbabilityIntervals(result)
    except IncompatibleParts:
        return None
    found.at(np.arange(1))  # compiles, so that no request waits for that
    return found
