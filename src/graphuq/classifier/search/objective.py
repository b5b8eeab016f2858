"""A classifier's data and settings → the evidence as a function of what is searched."""

import dataclasses
import hashlib
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.labels import check_classes, split_labels
from graphuq.classifier.options import (
    check_words,
    likelihood_of,
    method_of,
    neighbors_of,
    prior_of,
    weights_of,
)
from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.evidence.graph_gradient import GraphEvidence
from graphuq.graphs import Graph, from_adjacency
from graphuq.graphs.features import check_space
from graphuq.graphs.neighbors import all_distances, nearest_neighbors, neighbors_within
from graphuq.graphs.pairs import AllNodePairs, NodePairs
from graphuq.inference import Laplace

PARTS = ("weights", "prior", "likelihood")
TOLERANCE = 1e-7  # of conjugate gradients while searching


class SearchProblem:
    """What stays the same while hyperparameters are searched; distances are found once.

    Parameters
    ----------
    estimator : GraphClassifier
    criterion : str
    X, y : array_like
        As `GraphClassifier.fit` takes them.
    """

    def __init__(self, estimator: GraphClassifier, criterion: str, X: Any, y: Any) -> None:
        self.estimator = estimator
        if isinstance(estimator.graph, Graph):  # searched like a matrix of weights
            X = estimator.graph.weights
        self.X = X if sparse.issparse(X) else np.asarray(X)
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
        method = method_of(estimator.inference)
        if criterion == "auto":
            laplace = isinstance(method, Laplace)
            criterion = "laplace" if laplace else "expectation-propagation"
        self.criterion = criterion
        self._most_neighbors, self._largest_radius = 0, 0.0
        self._found: dict[str, Any] = {}

    def fingerprint(self) -> str:
        """A digest of rows, labels, criterion and the classifier's model: all that decides."""
        own = self.estimator
        names = ("graph", "n_neighbors", "scale", "metric", "radius", "laplacian", "n_eigenpairs")
        words = [repr(getattr(own, name)) for name in (*names, "tail_eigenvalue", *PARTS)]
        arrays = [self.X]
        if sparse.issparse(self.X):
            stored = sparse.csr_array(self.X)
            arrays = [stored.data, stored.indices, stored.indptr]
        digest = hashlib.sha256(" ".join([self.criterion, *words]).encode())
        for array in (*arrays, self.labelled, self.codes):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def expect(self, combinations: list[dict[str, Any]]) -> None:
        """Say beforehand which numbers of neighbours and radii will come: the largest is found."""
        own = self.estimator
        for plain in combinations:
            k = plain.get("n_neighbors", own.n_neighbors)
            if not isinstance(k, str):
                most = min(int(k), self.X.shape[0] - 1)
                self._most_neighbors = max(self._most_neighbors, most)
            radius = plain.get("radius", own.radius)
            if radius is not None:
                self._largest_radius = max(self._largest_radius, float(radius))

    def with_parameters(self, values: dict[str, Any]) -> GraphClassifier:
        """The classifier with these parameters, those of parts included."""
        plain = {k: v for k, v in values.items() if "__" not in k}
        classifier = clone(self.estimator).set_params(**plain)
        for part in PARTS:
            own = _own(values, part)
            if own:
                changed = {
                    k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in own.items()
                }
                classifier.set_params(
                    **{part: dataclasses.replace(self._part(classifier, part), **changed)}
                )
                if part == "weights":  # which say both themselves
                    classifier.set_params(scale=None, metric=None)
        return classifier

    def value_of(self, name: str, plain: dict[str, Any]) -> Any:
        """Where a number stands, as the classifier has it."""
        part, _, own = name.partition("__")
        classifier = self.with_parameters(plain)
        found = getattr(self._part(classifier, part), own, None)
        number = isinstance(found, int | float | tuple) and not isinstance(found, bool)
        require(
            number,
            "parameters",
            f"{name} is {found!r} in {self._part(classifier, part)}",
            "search numbers that the part has",
        )
        return found

    def model(self, values: dict[str, Any]) -> GraphEvidence:
        """The evidence where all of these are set."""
        classifier = self.with_parameters(values)
        check_words(classifier.graph, classifier.n_neighbors, classifier.n_eigenpairs)
        weight, prior, likelihood = (self._part(classifier, part) for part in PARTS)
        learnt = {**prior.learnt, **likelihood.learnt}
        if learnt or likelihood.uses_all_nodes:
            raise IncompatibleParts(
                f"{prior} and {likelihood} have no evidence: "
                + ("something is learnt by sampling" if learnt else "they speak of every node")
            )
        labels = self.codes if likelihood.is_multiclass else 2 * self.codes - 1
        n_pairs = classifier.n_eigenpairs
        return GraphEvidence(
            pairs=self._pairs(classifier, weight),
            weight=weight,
            laplacian=classifier.laplacian,
            n_eigenpairs=None if isinstance(n_pairs, str) else n_pairs,
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
            return prior_of(classifier.prior)
        if part == "likelihood":
            return likelihood_of(classifier.likelihood, len(self.classes))
        if isinstance(classifier.graph, Graph) or classifier.graph == "precomputed":
            return Stored()
        own = (classifier.weights, classifier.scale, classifier.metric)
        return weights_of(classifier.graph, *own)

    def _pairs(self, classifier: GraphClassifier, weight: Any) -> Any:
        """The graph before it has weights; distances are kept for the next."""
        kind = classifier.graph
        if isinstance(kind, Graph):
            return NodePairs.of_directed(sparse.csr_array(kind.weights))
        if kind == "precomputed":
            return self._once(
                "precomputed",
                lambda: NodePairs.of_directed(sparse.csr_array(from_adjacency(self.X).weights)),
            )
        space = f"{weight.metric} {getattr(weight, 'feature_scales', None)}"
        features = self._once(f"features {space}", lambda: check_space(self.X, weight))
        scaled = getattr(weight, "feature_scales", None) is not None
        unscaled = np.asarray(self.X, dtype=float) if scaled else None
        if kind == "epsilon":
            radius = classifier.radius
            require(radius is not None, "radius", "missing", "graph='epsilon' needs a distance")
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
        distances, indices = self._once(
            f"nearest {most} {space}",
            lambda: nearest_neighbors(features, most, weight.metric)[:2],
        )
        return NodePairs.of_neighbors(distances[:, :k], indices[:, :k], unscaled)

    def _once(self, key: str, find: Any) -> Any:
        if key not in self._found:
            self._found[key] = find()
        return self._found[key]


def _own(values: dict[str, Any], part: str) -> dict[str, Any]:
    return {k.partition("__")[2]: v for k, v in values.items() if k.startswith(f"{part}__")}


def _pointers(rows: np.ndarray, n_rows: int) -> np.ndarray:
    """Row pointers of ascending row numbers."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))])


@dataclasses.dataclass(frozen=True)
class Stored:
    """Weights of a ready-made graph, kept where others keep distances."""

    metric: str = "precomputed"

    def weight(self, distance: Any, scale_rows: Any, scale_columns: Any) -> Any:
        """What is stored."""
        return distance
