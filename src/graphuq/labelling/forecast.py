"""The answer of the page, and how many errors it has: an average over models, beside the page."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphuq.classifier.classifier import GraphClassifier
from graphuq.classifier.options import model_of
from graphuq.errors import GraphuqError, IncompatibleParts, require
from graphuq.labelling.following import FollowingClassifier, with_notes
from graphuq.labelling.model import Model, Snapshot
from graphuq.labelling.records import GIVES_LABEL, Record
from graphuq.labelling.tag_model import FollowingTags, TagModel, TagResult
from graphuq.results.errors_left import ErrorCount, expected_errors, expected_wrong_tags
from graphuq.results.result import Result

if TYPE_CHECKING:
    from graphuq.labelling.session import Session

POLL_S = 0.2  # seconds between looks at the session
MARGIN = 1.1  # by which ends are moved out: docs/measurements/errors_left.md
# By which the thread is nicer than the others. With more, a busy machine would let it wait while it
# holds Python's global lock, and the page with it.
NICENESS = 3
REST = 2.0  # seconds of rest for each second of work, so that the page has the processor


class ErrorsLeft(NamedTuple):
    """Number of unlabelled items of which the answer predicts a wrong class, or of wrong tags.

    Attributes
    ----------
    n_labels : int
        Labels that were known.
    n_left : int
        Unlabelled items then.
    expected : float
    lower, upper : float
        Ends of the 90 % interval.
    is_average : bool
        Whether the answer is an average over models, or the model of the page itself.
    by_tag : tuple of tuple of str and float
        Where items have tags, expected wrong answers of each tag. Then all numbers but ``n_labels``
        count tags, so many for each item, and not items.
    """

    n_labels: int
    n_left: int
    expected: float
    lower: float
    upper: float
    is_average: bool
    by_tag: tuple[tuple[str, float], ...] = ()

    @property
    def accuracy(self) -> tuple[float, float, float]:
        """Expected accuracy of the unlabelled items, and the ends of its 90 % interval."""
        expected, lower, upper = (
            1 - n / max(1, self.n_left) for n in (self.expected, self.upper, self.lower)
        )
        return expected, lower, upper


class Answer(NamedTuple):
    """Posterior whose predictions are the answer, and its errors.

    Attributes
    ----------
    result : Result, TagResult or None
        None without labels of two classes.
    errors : ErrorsLeft or None
        None, too, for a point, which has no uncertainty.
    """

    result: Result | TagResult | None = None
    errors: ErrorsLeft | None = None

    @property
    def expected_errors(self) -> float | None:
        """Expected number of errors."""
        return None if self.errors is None else self.errors.expected


class Answerer:
    """The model of the answer, which follows the labels.

    One model that is chosen for its evidence is quick enough to follow each label, but its
    probabilities do not know that the choice is uncertain. So the answer is the default of
    `GraphClassifier`, an average over models, whose errors are counted better. A model of the
    user's own gives the answer itself.

    Parameters
    ----------
    model : Model
        Of the page, with the graph.
    """

    def __init__(self, model: Model) -> None:
        self.is_average = model_of(model.settings.model).replaces_average
        self._follower = FollowingClassifier(averaged(model.settings), model.shared, model.classes)

    def answer(self, snapshot: Snapshot) -> Answer:
        """Return the answer for the labels of a posterior."""
        labels = snapshot.labels
        if snapshot.result is None:
            self._follower.forget()
            return Answer()
        result, _ = with_notes(lambda: self._result(snapshot.result, labels))
        n_left = len(result.probabilities) - len(labels)
        try:
            count, _ = with_notes(lambda: widened(expected_errors(result), n_left))
        except IncompatibleParts:
            return Answer(result)
        return Answer(result, ErrorsLeft(len(labels), n_left, *count, is_average=self.is_average))

    def _result(self, own: Any, labels: Mapping[int, str]) -> Result:
        """Return the average for labels, or the user's own model."""
        if not self.is_average:
            return own
        return self._follower.follow(labels, self._follower.wants_refit(len(labels)))


class TagAnswerer:
    """The answer of tags: for each an average over models, as of `MultilabelClassifier`.

    Parameters
    ----------
    model : TagModel
        Of the page, with the graph.
    """

    def __init__(self, model: TagModel) -> None:
        self._model = model
        self.is_average = model_of(model.settings.model).replaces_average
        self._follower = FollowingTags(averaged(model.settings), model.shared)

    def answer(self, snapshot: Snapshot) -> Answer:
        """Return the answer for the labels of a posterior."""
        labels, result = snapshot.labels, snapshot.result
        if result is None:
            self._follower.forget()
            return Answer()
        if self.is_average:
            refit = self._follower.wants_refit(len(labels))
            given = self._model.codes(labels)
            result, _ = with_notes(lambda: self._follower.follow(*given, refit))
        free = self._model.unlabelled(labels)
        n_left = len(free) * len(result.classes)
        try:
            count, _ = with_notes(lambda: expected_wrong_tags(result.results, free))
        except IncompatibleParts:
            return Answer(result)
        p = result.probabilities[free]
        each = np.minimum(p, 1 - p).sum(axis=0).tolist()
        by_tag = tuple(zip(result.classes, each, strict=True))
        ends = widened(count, n_left)
        return Answer(result, ErrorsLeft(len(labels), n_left, *ends, self.is_average, by_tag))


def averaged(settings: GraphClassifier) -> GraphClassifier:
    """Return settings with the default model, an average."""
    default = {"model": "auto", "inference": "expectation-propagation"}
    return GraphClassifier(**{**settings.get_params(deep=False), **default})


def widened(count: ErrorCount, n_left: int) -> ErrorCount:
    """Return a number of errors with wider ends, as all models of an average can be wrong.

    On 28 data sets the 90 % interval of the average held the number in 0.84 of the fits, and with
    ends that are a tenth further out in 0.89.
    """
    lower, upper = np.floor(count.lower / MARGIN), np.ceil(count.upper * MARGIN)
    return ErrorCount(count.expected, float(lower), float(min(upper, n_left)))


class Forecasts:
    """Answers and their errors, in a thread of its own, for each posterior of a session.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._answerer: Answerer | TagAnswerer | None = None
        self._history = history_of(session.store.records, session.given)
        self._known: tuple[Mapping[int, str], int] | None = None  # labels and version that are done
        self._failure: str | None = None
        self._thread = threading.Thread(target=self._run, name="graphuq-forecast", daemon=True)

    def start(self) -> "Forecasts":
        """Answer until the session is closed."""
        self._thread.start()
        return self

    def wait(self, timeout: float = 120.0) -> Answer:
        """Wait until the answer is that of the latest labels, and return it."""
        until = time.monotonic() + timeout
        while not self.is_current:
            require(time.monotonic() < until, "timeout", f"{timeout} s were too short", "wait on")
            time.sleep(POLL_S / 10)
        return self._session.answer

    @property
    def state(self) -> dict[str, Any]:
        """What the page shows: ``errors``, their ``history``, and a ``failure`` of the count."""
        found = self._session.answer.errors
        shown = None if found is None else {**found._asdict(), "accuracy": found.accuracy}
        history = [[n, *values] for n, values in sorted(self._history.items())]
        return {"errors": shown, "history": history, "uncounted": self._failure}

    @property
    def is_current(self) -> bool:
        """Whether the answer is that of the latest labels."""
        snapshot, labels = self._session.latest
        known = self._known
        return known is not None and known == (labels, snapshot.version)

    def _run(self) -> None:
        _give_way()
        session = self._session
        while not session.is_closed:
            snapshot, _ = session.latest
            if session.model is None or self._known == (snapshot.labels, snapshot.version):
                time.sleep(POLL_S)
                continue
            began = time.monotonic()
            self._answer(snapshot)
            until = time.monotonic() + REST * (time.monotonic() - began)
            while time.monotonic() < until and not session.is_closed:
                time.sleep(POLL_S)

    def _answer(self, snapshot: Snapshot) -> None:
        """Answer for the labels of a posterior, and show the errors."""
        if self._answerer is None:
            model = self._session.model
            assert model is not None  # `_run` waits for it
            self._answerer = TagAnswerer(model) if isinstance(model, TagModel) else Answerer(model)
        try:
            found, self._failure = self._answerer.answer(snapshot), None
        except Exception as error:
            if self._session.is_closed:  # pools of threads may have ended with the process
                return
            name = "" if isinstance(error, GraphuqError) else f"{type(error).__name__}: "
            found, self._failure = Answer(), f"{name}{error}"
        if found.errors is not None:
            count = found.errors
            self._history[count.n_labels] = [count.expected, count.lower, count.upper]
        self._known = snapshot.labels, snapshot.version
        self._session.show_answer(found)


def _give_way() -> None:
    """Let other threads go first, where threads have priorities of their own: on Linux."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            thread = threading.get_native_id()
            own = os.getpriority(os.PRIO_PROCESS, thread)
            os.setpriority(os.PRIO_PROCESS, thread, min(own + NICENESS, 19))


def history_of(records: Sequence[Record], given: Mapping[int, str]) -> dict[int, list[float]]:
    """Return the expected errors that were shown, by the number of labels at that time."""
    found: dict[int, list[float]] = {}
    labelled = set(given)
    for record in records:
        if record.expected_errors is not None:
            value = float(record.expected_errors)
            found[len(labelled)] = [value, value, value]
        if record.kind not in GIVES_LABEL:
            continue
        if record.label is None:
            labelled.discard(record.row)
        else:
            labelled.add(record.row)
    return found
