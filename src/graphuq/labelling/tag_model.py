"""Posterior of tags that people change: one of two answers for each tag, on one graph."""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.base import clone

from graphuq.acquisition.several_tags import query_tags
from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.multilabel.classifier import template_of
from graphuq.errors import GraphuqError
from graphuq.labelling.classes import PageClasses
from graphuq.labelling.following import REFIT_FACTOR, SharedBasis, with_notes
from graphuq.labelling.model import QUEUE, SUSPECTS, Model, Snapshot, intervals_of, suspects_of
from graphuq.labelling.tag_text import text_of
from graphuq.labelling.tags import PageTags, codes_of
from graphuq.results.probability_intervals import ProbabilityIntervals
from graphuq.results.result import Result
from graphuq.utils.concurrency import cached_property
from graphuq.utils.lazy_imports import paused_collection

Codes = Int[np.ndarray, "N T"]
Unknown = Callable[[], Mapping[int, Collection[str]]]


class TagResult(NamedTuple):
    """Posteriors of tags.

    Attributes
    ----------
    classes : tuple of str, length T
        Tags that some labelled item has and another one has not.
    results : tuple of Result, length T
    """

    classes: tuple[str, ...]
    results: tuple[Result, ...]

    @property
    def probabilities(self) -> Float[np.ndarray, "N T"]:
        """Probability of each tag at each item."""
        return np.column_stack([result.probabilities[:, 1] for result in self.results])


class TagIntervals(NamedTuple):
    """Intervals of the probabilities of tags at single items."""

    of_tags: tuple[ProbabilityIntervals, ...]

    def at(self, rows: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n T 2"]:
        """Return the ends of the 90 % interval of each tag at items."""
        return np.stack([one.at(rows)[:, 1] for one in self.of_tags], axis=1)


@dataclasses.dataclass(frozen=True)
class TagSnapshot(Snapshot):
    """The posterior of tags given some labels; ``probabilities`` has a column for each tag."""

    def likeliest(self, row: int) -> tuple[str, float] | None:
        """Return the tags that an item has with more than 1/2, and the chance of just these."""
        if self.probabilities is None or self.certainty is None:
            return None
        has = self.probabilities[row] > 0.5
        names = [name for name, own in zip(self.classes, has, strict=True) if own]
        return text_of(names), float(self.certainty[row])

    @cached_property
    def certainty(self) -> Float[np.ndarray, " N"] | None:
        """Chance that all tags of an item are predicted right, if they are independent."""
        p = self.probabilities
        return None if p is None else np.maximum(p, 1 - p).prod(axis=1)

    def has_class(self, name: str) -> Bool[np.ndarray, " N"]:
        """Return whether an item has a tag with a probability of more than 1/2."""
        assert self.probabilities is not None
        return np.asarray(self.probabilities[:, self.classes.index(name)] > 0.5)

    @cached_property
    def _by_certainty(self) -> list[int]:
        """Rows by the expected number of wrong tags, the largest first."""
        assert self.probabilities is not None
        p = self.probabilities
        errors = np.minimum(p, 1 - p).sum(axis=1)
        return list(map(int, np.argsort(-errors, kind="stable")))


class FollowingTags:
    """Settings, and the fits of tags to the latest labels.

    Parameters
    ----------
    settings : GraphClassifier
        With a ready-made graph of the N items.
    shared : SharedBasis
    """

    def __init__(self, settings: GraphClassifier, shared: SharedBasis) -> None:
        self._settings, self._shared = settings, shared
        self._names: tuple[str, ...] = ()
        self._codes = np.zeros((0, 0), dtype=np.int64)
        self._fits: list[GraphClassifier] = []
        self._n_labels_of_fit = 0

    def wants_refit(self, n_labels: int) -> bool:
        """Return whether labels are so many more that hyperparameters should be chosen again."""
        return n_labels >= REFIT_FACTOR * self._n_labels_of_fit

    def forget(self) -> None:
        """Begin anew with the next labels."""
        self._names, self._fits = (), []

    def follow(self, names: tuple[str, ...], codes: Codes, refit: bool = False) -> TagResult:
        """Return the posteriors given codes as of `codes_of`, of one tag or more."""
        if refit or names != self._names or not self._update(codes):
            self._fit(names, codes)
        self._names, self._codes = names, codes
        return TagResult(names, tuple(fit.result_ for fit in self._fits))

    def _update(self, codes: Codes) -> bool:
        """Add and change labels of each tag; return whether that was possible."""
        for fit, before, now in zip(self._fits, self._codes.T, codes.T, strict=True):
            rows = np.flatnonzero(before != now)
            try:
                if len(rows):
                    fit.add_labels(rows, now[rows])
            except GraphuqError:
                return False
        return True

    def _fit(self, names: tuple[str, ...], codes: Codes) -> None:
        self.forget()
        self._n_labels_of_fit = int((codes >= 0).any(axis=1).sum())
        fits = [clone(self._settings).set_params(missing_label=-1) for _ in names]
        with paused_collection():
            from graphuq.classifier.fitting import fit_together  # imports Numba
        basis = self._shared.basis
        fit_together(fits, None, list(codes.T), codes, None, basis, rows_were_chosen=True)
        self._fits = fits


class TagModel(Model):
    """Classifiers of tags that follow labels as they change. One thread uses them.

    Parameters
    ----------
    X, classifier, rule
        As of `Model`. All tags have these settings.

    Attributes
    ----------
    unknown : callable
        Returns by row the tags of which nothing is known, as `unknown_tags`; by default none.
    """

    def __init__(
        self, X: Any, classifier: GraphClassifier | None = None, rule: Any = "auto"
    ) -> None:
        template_of(classifier)
        super().__init__(X, classifier, rule)
        self.classes: PageClasses = PageTags()
        self.unknown: Unknown = dict
        self._tags = FollowingTags(self.settings, self.shared)

    def codes(self, labels: Mapping[int, str]) -> tuple[tuple[str, ...], Codes]:
        """Return the tags that can be learnt from some labels, and which items have them."""
        return codes_of(labels, self.unknown(), self.n_items)

    @property
    def wants_refit(self) -> bool:
        """Whether there are so many new labels that evidence should choose hyperparameters."""
        return self._tags.wants_refit(self._n_labels)

    def renew(self, labels: Mapping[int, str], version: int, refit: bool = False) -> Snapshot:
        """Return the posterior given labels, without its queue and suspects; see `Model`."""
        names, codes = self.codes(labels)
        snapshot = TagSnapshot(version, dict(labels))
        self._n_labels = len(labels)
        if not names:
            self._tags.forget()
            return snapshot
        found, notes = with_notes(lambda: self._tags.follow(names, codes, refit))
        ends = [intervals_of(result) for result in found.results]
        known = tuple(one for one in ends if one is not None)
        return dataclasses.replace(
            snapshot,
            classes=names,
            probabilities=found.probabilities.astype(np.float32),
            result=found,
            intervals=TagIntervals(known) if len(known) == len(ends) else None,
            notes=(*self._graph_notes, *notes),
        )

    def with_queue(self, snapshot: Snapshot, without: Any = ()) -> Snapshot:
        """Return the latest posterior with the items to label next."""
        found = snapshot.result
        if found is None:
            return super().with_queue(snapshot, without)
        rows = self.unlabelled(snapshot.labels, without)
        if len(rows):
            results, rule = found.results, self._rule
            rows, _ = with_notes(lambda: query_tags(results, QUEUE, rule, rows))
        return dataclasses.replace(snapshot, queue=rows, is_queued=True)

    def with_checks(self, snapshot: Snapshot) -> Snapshot:
        """Return the latest posterior with suspect labels, the least probable first."""
        found = snapshot.result
        if found is None:
            return snapshot
        suspects = [
            {**one, "given": words[one["given"]], "other": words[one["other"]]}
            for name, result in zip(found.classes, found.results, strict=True)
            for words in [{"0": f"without {name}", "1": f"with {name}"}]
            for one in suspects_of(result)
        ]
        least = sorted(suspects, key=lambda one: one["probability"])[:SUSPECTS]
        return dataclasses.replace(snapshot, suspects=tuple(least))
