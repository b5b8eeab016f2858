"""A classifier that follows labels as they change: updates where possible, else new fits."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Int

from graphuq.classifier.classifier import GraphClassifier
from graphuq.errors import GraphuqError
from graphuq.labelling.classes import PageClasses
from graphuq.results.result import Result
from graphuq.spectrum.solve import DEFAULT_EIGENPAIRS
from graphuq.utils.lazy_imports import paused_collection
from graphuq.utils.user_warnings import held_warnings

T = TypeVar("T")

REFIT_FACTOR = 2.0  # growth of the number of labels after which hyperparameters are chosen again


class SharedBasis:
    """The basis of a graph, which the first fit makes and all later ones take."""

    basis: Any = None


class FollowingClassifier:
    """Settings, and the fit to the latest labels.

    Parameters
    ----------
    settings : GraphClassifier
        With a ready-made graph of the N items and ``missing_label=None``.
    shared : SharedBasis
        Of all classifiers of this graph, whose settings of eigenpairs are the same.
    classes : PageClasses
        Which order the classes have.
    """

    def __init__(
        self, settings: GraphClassifier, shared: SharedBasis, classes: PageClasses
    ) -> None:
        self._settings, self._shared, self._classes = settings, shared, classes
        self._n_labels_of_fit = 0
        self.fitted: GraphClassifier | None = None

    def wants_refit(self, n_labels: int) -> bool:
        """Return whether labels are so many more that hyperparameters should be chosen again."""
        return n_labels >= REFIT_FACTOR * self._n_labels_of_fit

    def forget(self) -> None:
        """Begin anew with the next labels."""
        self.fitted = None

    def follow(self, labels: Mapping[int, str], refit: bool = False) -> Result:
        """Return the posterior given labels of two classes or more.

        Parameters
        ----------
        labels : mapping of int to str
        refit : bool, default False
            Choose hyperparameters again.
        """
        if refit or self.fitted is None or not self._update(self.fitted, labels):
            self._fit(labels)
        assert self.fitted is not None
        return self.fitted.result_

    def _update(self, fitted: GraphClassifier, labels: Mapping[int, str]) -> bool:
        """Add and change labels; return whether that was possible."""
        order = self._classes.for_fit(labels.values())
        if order and order != list(map(str, fitted.classes_)):
            return False
        known = fitted.result_.posterior
        names = fitted.result_.classes[_codes(known)]
        old = dict(zip(known.labelled.tolist(), map(str, names), strict=True))
        rows = sorted(r for r in {*old, *labels} if old.get(r) != labels.get(r))
        if rows:
            try:
                fitted.add_labels(rows, np.array([labels.get(r, "") for r in rows], dtype=object))
            except GraphuqError:  # such as a likelihood for two classes: a new fit chooses another
                return False
        return True

    def _fit(self, labels: Mapping[int, str]) -> None:
        y = np.full(self._settings.graph.n_nodes, "", dtype=object)
        for row, label in labels.items():
            y[row] = label
        self.fitted, self._n_labels_of_fit = None, len(labels)
        fitted = GraphClassifier(**self._settings.get_params(deep=False))
        fitted.ordered = self._classes.for_fit(labels.values())
        is_usual = len(set(labels.values())) <= DEFAULT_EIGENPAIRS  # more classes have more pairs
        with paused_collection():
            from graphuq.classifier.fitting import fit_classifier  # imports Numba
        fit_classifier(fitted, None, y, None, self._shared.basis if is_usual else None)
        if is_usual:
            self._shared.basis = fitted._basis
        self.fitted = fitted


def _codes(posterior: Any) -> Int[np.ndarray, " J"]:
    """Return the class of each given label as an index from 0."""
    labels = posterior.labels
    return (labels if posterior.likelihood.has_codes else labels > 0).astype(np.int64)


def with_notes(act: Callable[[], T]) -> tuple[T, tuple[str, ...]]:
    """Return what a function returns, and warnings of graphuq as sentences."""
    with held_warnings() as held:
        found = act()
    return found, tuple(dict.fromkeys(" ".join(str(warning).split()) for warning in held))
