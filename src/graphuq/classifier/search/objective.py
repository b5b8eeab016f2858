"""Evidence of a classifier's labels as a function of the parameters that are searched."""

import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.given_graph import require_rows
from graphuq.classifier.labels import check_classes, split_labels
from graphuq.classifier.options import (
    builder_weights,
    check_numbers,
    check_words,
    graph_from,
    is_word,
    model_of,
    n_pairs_of,
    neighbors_of,
    weights_of,
)
from graphuq.classifier.types import Labels, Table
from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.evidence.graph_gradient import GraphEvidence
from graphuq.graphs import Epsilon, Graph, GraphBuilder, Unweighted, from_adjacency
from graphuq.graphs.equal_rows import among_distinct_rows
from graphuq.graphs.features import check_space
from graphuq.graphs.neighbors import (
    Neighbors,
    nearest_neighbors,
    neighbors_within,
)
from graphuq.graphs.pairs import AllNodePairs, NodePairs
from graphuq.graphs.principal import main_axes
from graphuq.graphs.row_distances import all_distances
from graphuq.graphs.signs import require_no_signs
from graphuq.inference import Approximation
from graphuq.models import LargestEvidence
from graphuq.models.evidence import likelihood_of, prior_of
from graphuq.run.words import inference_from

PARTS = ("graph", "weights", "prior", "likelihood")
TOLERANCE = 1e-7  # relative residual of conjugate gradients during a search


class SearchProblem:
    """Data and settings that stay fixed during a search; distances are computed once.

    Parameters
    ----------
    estimator : GraphClassifier
    criterion : str
    X, y : array_like
        As for `GraphClassifier.fit`.
    """

    def __init__(
        self, estimator: GraphClassifier, criterion: str, X: Table | None, y: Labels
    ) -> None:
        self.estimator = estimator
        ready = isinstance(estimator.graph, Graph)  # searched like a matrix of weights
        if not ready:
            require_rows(X, estimator.graph)
        rows: Any = estimator.graph.weights if ready else X
        self.X: Any = rows if sparse.issparse(rows) else np.asarray(rows)
        if ready or is_word(estimator.graph, "precomputed"):
            weights = sparse.csr_array(self.X)
            require_no_signs(weights, "a search takes none; GraphClassifier does")
        values, given = split_labels(y, estimator.missing_label)
        require(
            len(values) == self.X.shape[0],
            "y",
            f"{len(values)} values",
            f"X has {self.X.shape[0]} rows",
        )
        self.classes, self.codes = np.unique(values[given], return_inverse=True)
        check_classes(self.classes, estimator.missing_label)
        self.labelled = np.flatnonzero(given)
        inference = inference_from(estimator.inference)
        check_numbers(estimator)
        if criterion == "auto":
            method = inference if isinstance(inference, Approximation) else Approximation
            criterion = method.criterion
        self.criterion = criterion
        self._most_neighbors, self._largest_radius = 0, 0.0
        self._found: dict[str, Any] = {}

    def fingerprint(self) -> str:
        """Return a digest of rows, labels, criterion and model, which determine the search."""
        own = self.estimator
        names = ("graph", "n_neighbors", "metric", "laplacian", "n_eigenpairs")
        words = [
            repr(getattr(own, name)) for name in (*names, "tail_eigenvalue", "weights", "model")
        ]
        arrays = [self.X]
        if sparse.issparse(self.X):
            stored = sparse.csr_array(self.X)
            arrays = [stored.data, stored.indices, stored.indptr]
        digest = hashlib.sha256(" ".join([self.criterion, *words]).encode())
        for array in (*arrays, self.labelled, self.codes):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def expect(self, combinations: list[dict[str, Any]]) -> None:
        """Prepare for combinations: neighbours are found once, for the largest number or radius."""
        own = self.estimator
        for plain in combinations:
            k = plain.get("n_neighbors", own.n_neighbors)
            if not isinstance(k, str):
                most = min(int(k), self.X.shape[0] - 1)
                self._most_neighbors = max(self._most_neighbors, most)
            radius = plain.get("graph__radius", 0.0)
            self._largest_radius = max(self._largest_radius, float(radius))

    def with_parameters(self, values: dict[str, Any]) -> GraphClassifier:
        """Return the classifier with these parameters, including those of its parts."""
        plain = {k: v for k, v in values.items() if "__" not in k}
        classifier = clone(self.estimator).set_params(**plain)
        for part in PARTS:
            own = _own(values, part)
            if own:
                changed = {
                    k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in own.items()
                }
                found = dataclasses.replace(self._part(classifier, part), **changed)
                if part in ("prior", "likelihood"):
                    own_model = model_of(classifier.model)
                    require(
                        isinstance(own_model, LargestEvidence) or own_model == model_of("auto"),
                        "model",
                        f"{own_model} beside a search of {part}__{next(iter(own))}",
                        "leave it out, or use 'largest-evidence' or 'fixed'",
                    )
                    model = dataclasses.replace(_parts_of(classifier), **{part: found})
                    classifier.set_params(model=model)
                else:
                    classifier.set_params(**{part: found})
                if part == "weights":  # the weight function holds the metric
                    classifier.set_params(metric=None)
        return classifier

    def value_of(self, name: str, plain: dict[str, Any]) -> Any:
        """Return the present value of a numeric parameter of a part."""
        part, _, own = name.partition("__")
        classifier = self.with_parameters(plain)
        found = getattr(self._part(classifier, part), own, None)
        number = isinstance(found, int | float | tuple) and not isinstance(found, bool)
        require(
            number,
            "parameters",
            f"{name} is {found!r} in {self._part(classifier, part)}",
            "search a number that the part has",
        )
        return found

    def model(self, values: dict[str, Any]) -> GraphEvidence:
        """Return the evidence with these parameters set."""
        classifier = self.with_parameters(values)
        check_words(graph_from(classifier.graph), classifier.n_neighbors, classifier.n_eigenpairs)
        weight, prior, likelihood = (self._part(classifier, part) for part in PARTS[1:])
        learnt = {**prior.learnt, **likelihood.learnt}
        if learnt or likelihood.uses_all_nodes:
            raise IncompatibleParts(
                f"{prior} and {likelihood} have no evidence: "
                + (f"{', '.join(learnt)} learnt by sampling" if learnt else "all nodes have a term")
                + "; give numbers, or use another likelihood"
            )
        labels = self.codes if likelihood.has_codes else 2 * self.codes - 1
        pairs = self._pairs(classifier, weight)
        return GraphEvidence(
            pairs=pairs,
            weight=weight,
            laplacian=classifier.laplacian,
            n_eigenpairs=n_pairs_of(classifier.n_eigenpairs, pairs.n_nodes),
            tail_eigenvalue=classifier.tail_eigenvalue,
            prior=prior,
            likelihood=likelihood,
            labelled=self.labelled,
            labels=labels.astype(float),
            criterion=self.criterion,
            tolerance=TOLERANCE,
        )

    def _part(self, classifier: GraphClassifier, part: str) -> Any:
        if part == "prior":
            return prior_of(_parts_of(classifier).prior)
        if part == "likelihood":
            return likelihood_of(_parts_of(classifier).likelihood, len(self.classes))
        kind = graph_from(classifier.graph)
        if part == "graph":
            require(
                isinstance(kind, GraphBuilder),
                "parameters",
                f"graph__… beside graph={kind!r}, which has no fields",
                "give a builder, such as Epsilon(radius=0.4)",
            )
            return kind
        if isinstance(kind, Graph) or is_word(kind, "precomputed"):
            return Stored()
        if isinstance(kind, GraphBuilder):
            if not kind.takes_weights:
                return Stored()
            found = builder_weights(kind, classifier.weights, classifier.metric)
            return Unweighted() if found is None else found
        return weights_of(kind, classifier.weights, classifier.metric)

    def _pairs(self, classifier: GraphClassifier, weight: Any) -> Any:
        """Return the pairs of nodes before weights; distances are kept for later calls."""
        kind = graph_from(classifier.graph)
        if isinstance(kind, GraphBuilder) and not isinstance(kind, Epsilon):
            weights = builder_weights(kind, classifier.weights, classifier.metric)
            kind = self._once(f"{kind!r} {weights!r}", lambda: kind.build(self.X, weights))
        if isinstance(kind, Graph):
            return NodePairs.of_directed(sparse.csr_array(kind.weights))
        if is_word(kind, "precomputed"):
            return self._once(
                "precomputed",
                lambda: NodePairs.of_directed(sparse.csr_array(from_adjacency(self.X).weights)),
            )
        space = f"{weight.metric} {getattr(weight, 'feature_scales', None)}"
        features: Any = self._once(f"features {space}", lambda: check_space(self.X, weight))
        scaled = getattr(weight, "feature_scales", None) is not None
        unscaled = np.asarray(self.X, dtype=float) if scaled else None
        if isinstance(kind, Epsilon):
            radius = kind.radius
            most = max(self._largest_radius, float(radius))
            near = self._once(
                f"within {most} {space}",
                lambda: neighbors_within(features, most, weight.metric),
            )
            rows = np.repeat(np.arange(near.shape[0]), np.diff(near.indptr))
            inside = near.data <= radius
            kept = sparse.csr_array(
                (near.data[inside], near.indices[inside], _pointers(rows[inside], near.shape[0])),
                shape=near.shape,
            )
            pairs = NodePairs.of_directed(kept, features=unscaled)
            require(len(pairs.rows) > 0, "radius", f"no pair within {radius}", "use a larger one")
            return pairs
        k = neighbors_of(kind, classifier.n_neighbors, self.X.shape[0])
        if kind == "complete":
            distance = self._once(
                f"distances {space}", lambda: all_distances(features, weight.metric)
            )
            scales = np.partition(distance, min(k, len(distance) - 1), axis=1)
            return AllNodePairs(distance, scales[:, min(k, len(distance) - 1)], unscaled)
        if not 1 <= k < self.X.shape[0]:
            raise InvalidInput("n_neighbors", f"{k}", f"use 1 to {self.X.shape[0] - 1}")
        most = max(k, self._most_neighbors)
        points = self._once(f"points {space}", lambda: _points(features, weight))
        distances, indices = self._once(
            f"nearest {most} {space}",
            lambda: nearest_neighbors(points, most, weight.metric)[:2],
        )
        nearest = Neighbors(distances[:, :k], indices[:, :k])
        distinct = self._once(
            f"distinct {k} {space}",
            lambda: among_distinct_rows(points, nearest, weight.metric),
        )
        found = nearest if distinct is None else distinct
        return NodePairs.of_neighbors(found.distances, found.indices, unscaled)

    def _once(self, key: str, find: Callable[[], Any]) -> Any:
        if key not in self._found:
            self._found[key] = find()
        return self._found[key]


def _points(features: Any, weight: Any) -> Any:
    """Return the points between which the default graph measures distances."""
    axes = main_axes(features, weight, "auto")
    return features if axes is None else axes.scores(features)


def _parts_of(classifier: GraphClassifier) -> LargestEvidence:
    """Return the model as one prior and one likelihood; "auto" of any other model."""
    model = model_of(classifier.model)
    return model if isinstance(model, LargestEvidence) else LargestEvidence()


def _own(values: dict[str, Any], part: str) -> dict[str, Any]:
    return {k.partition("__")[2]: v for k, v in values.items() if k.startswith(f"{part}__")}


def _pointers(rows: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the row pointers of ascending row numbers."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))])


@dataclasses.dataclass(frozen=True)
class Stored:
    """Weight function of a ready-made graph, whose pairs store weights instead of distances."""

    metric: str = "precomputed"

    def weight(self, distance: Any, scale_rows: Any, scale_columns: Any) -> Any:
        """Return the stored weights."""
        return distance
