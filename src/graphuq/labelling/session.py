"""The loop between people and the posterior: labels never wait for it."""

import contextlib
import dataclasses
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from graphuq.errors import GraphuqError, require
from graphuq.labelling.cards import card_of, map_of, remarks_of, state_of, thumb_of, without_help
from graphuq.labelling.forecast import Answer
from graphuq.labelling.items import Items
from graphuq.labelling.model import Model, Snapshot
from graphuq.labelling.names import check_name
from graphuq.labelling.recent import RecentSnapshots
from graphuq.labelling.records import GIVES_LABEL, LABEL, SKIP
from graphuq.labelling.similarity import Similarity
from graphuq.labelling.store import LabelStore
from graphuq.labelling.tag_model import TagResult
from graphuq.labelling.turns import Turns
from graphuq.labelling.unaided import UnaidedRows
from graphuq.results.result import Result

POLL_S = 1.0  # seconds after which labels of other processes are seen
MAX_ROWS = 1_000  # labels that are given together


class Session:
    """Items, labels and the posterior that a thread renews in the background.

    Parameters
    ----------
    items : Items
    model : Model
    store : LabelStore
    given : mapping of int to str, optional
        Labels that were known before; those in the store replace them.
    classes : sequence of str, optional
        Classes that the page offers although they may have no label.
    overlap : float, default 0
        Share of the items that two people label.
    """

    def __init__(
        self,
        items: Items,
        model: Model,
        store: LabelStore,
        given: Mapping[int, str] | None = None,
        classes: Sequence[str] = (),
        overlap: float = 0.0,
    ) -> None:
        self.items, self.store = items, store
        self.unaided = UnaidedRows(store, len(items), overlap)
        self.given, self._model, self.classes = dict(given or {}), model, model.classes
        self._changed = threading.Condition()
        self._turns, self._offered_classes = Turns(), tuple(classes)
        self.answer = Answer()  # that was shown last
        self._recent, self._snapshot = RecentSnapshots(), Snapshot()
        self._version = max((r.model or 0 for r in store.records), default=0)
        self._ready, self._busy, self._revision = False, False, 0
        self._closed, self._ended = False, False  # the latter when its thread is over
        self._failure, self._stage = "", ""  # of a fit, and of the preparation, in words
        self._labels = self._current_labels()
        self.classes.check({*classes, *self.classes.counts(self._labels)}, "classes")
        self._thread = threading.Thread(target=self._run, name="graphuq-posterior", daemon=True)

    def start(self) -> "Session":
        """Start the thread that renews the posterior."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Let the thread and all who wait for news come to an end."""
        with self._changed:
            self._closed = True
            self._touch()

    def close(self, timeout: float | None = 10.0) -> None:
        """Stop the thread and close the file of labels."""
        self.stop()
        if self._thread.is_alive():
            self._thread.join(timeout)
        self.store.close()

    def wait_until_current(self, timeout: float | int = 120.0) -> Snapshot:
        """Wait until the posterior knows all labels, with its queue and checks.

        Raises
        ------
        InvalidInput
            If the time is too short, or the session ends before.
        """

        def is_there() -> bool:
            return self._failure != "" or (self._ready and not self._is_behind())

        with self._changed:
            done = self._changed.wait_for(lambda: is_there() or self._ended, timeout)
            require(done, "timeout", f"{timeout} s were too short", "wait longer")
            require(is_there(), "session", "ended before it knew all labels", "open it again")
            return self._snapshot

    @property
    def revision(self) -> int:
        """Number that grows with each change that the page may show."""
        return self._revision

    @property
    def latest(self) -> tuple[Snapshot, dict[int, str]]:
        """The latest posterior, which may not know the latest labels; and all labels."""
        with self._changed:
            return self._snapshot, dict(self._labels)

    @property
    def is_closed(self) -> bool:
        """Whether the session was stopped."""
        return self._closed

    def label(
        self,
        user: str,
        rows: Sequence[int],
        label: str | Collection[str],
        probabilities: Mapping[int, float] | None = None,
        version: int | None = None,
        kind: str = LABEL,
    ) -> None:
        """Store one class for some items; the labels are on the disk when this returns.

        Parameters
        ----------
        user : str
        rows : sequence of int
        label : str, or collection of str
            Name of a class, which may be new; names of all tags where items have several.
        probabilities : mapping of int to float, optional
            What was shown as the probability of this class, by row.
        version : int, optional
            Version of the posterior that was shown.
        kind : str, default "label"
            "blind" for an item of which neither label nor probabilities were shown, "decision" to
            end a disagreement. One that is not to be read so, or decided, has a plain label.

        Raises
        ------
        InvalidInput
            If a row does not exist or a name cannot be used.
        StorageError
            If the disk does not take the labels.
        """
        user, text = check_name(user, "user"), self.classes.label_of(label)
        self.check_rows(rows)
        kind, batch = self.unaided.kind_of(user, rows, kind)
        self.write(
            user,
            dict.fromkeys(map(int, rows), text),
            probabilities=probabilities,
            model=version,
            expected_errors=self.answer.expected_errors,
            kind=kind,
            batch=batch,
        )

    def write(self, user: str, labels: Mapping[int, str | None], **fields: Any) -> None:
        """Store records of some rows; see `LabelStore.append`."""
        self.check_rows(list(labels))
        self.store.append(check_name(user, "user"), labels, **fields)
        is_label = fields.get("kind", LABEL) in GIVES_LABEL
        self._note_labels(user if is_label else None, labels)

    def undo(self, user: str) -> list[int]:
        """Take back the latest act of a user, a label or a skip; return its rows."""
        rows = list(self.store.undo(check_name(user, "user")))
        self._note_labels()
        return rows

    def skip(self, user: str, rows: Sequence[int]) -> None:
        """Show some items to this user again only after all others, also in later runs."""
        self.check_rows(rows)
        self.write(user, dict.fromkeys(map(int, rows)), kind=SKIP)
        with self._changed:
            self._turns.skip(user.strip(), rows)

    def wish(self, rows: Sequence[int]) -> None:
        """Put some items at the head of the queue, such as those chosen on the map."""
        self.check_rows(rows)
        with self._changed:
            self._turns.wish(map(int, rows))
            self._touch()

    def queue(
        self, user: str, n: int = 8, without: Sequence[int] = (), tab: str = ""
    ) -> list[dict[str, Any]]:
        """Return cards of the next n items of a user, without waiting for the posterior.

        Parameters
        ----------
        user : str
        n : int, default 8
        without : sequence of int, optional
            Items that the user has already.
        tab : str, optional
            Which of several pages of the user asks.
        """
        user = check_name(user, "user")
        without = [row for row in without if 0 <= row < len(self.items)]  # a page may hold others
        with self._changed:
            due, later = self.unaided.due(user), self.unaided.put_off(user)
            ranked, snapshot = self._snapshot.ranked(len(self.items)), self._snapshot
            rows = self._turns.next_rows(user, tab, n, without, self._labels, ranked, due, later)
        return [self._card(row, snapshot, user) for row in rows]

    def card(self, row: int, user: str | None = None) -> dict[str, Any]:
        """Return all that the page shows of an item to a user."""
        self.check_rows([row])
        return self._card(int(row), self._snapshot, user)

    def thumbs(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Return small views of some items."""
        snapshot, labels = self.latest
        return [thumb_of(self.items, int(row), snapshot, labels) for row in rows]

    @property
    def similarity(self) -> Similarity | None:
        """Similarity of the items; None until the graph is there."""
        return self._model.similarity if self._ready else None

    @property
    def model(self) -> Model | None:
        """The model, whose thread is another one; None until its graph is there."""
        return self._model if self._ready else None

    @property
    def result(self) -> Result | TagResult | None:
        """Posterior whose predictions count: that of the answer, or at first the quick one."""
        return self.answer.result or self._snapshot.result

    def show_answer(self, answer: Answer) -> None:
        """Show how many errors are left."""
        with self._changed:
            self.answer = answer
            self._touch()

    def state(self, user: str, tab: str = "") -> dict[str, Any]:
        """Return counts, classes, and what to look at again."""
        self._see_others()
        with self._changed:
            self._turns.see(check_name(user, "user"), tab)
            snapshot, labels, disputed = self._snapshot, self._labels, self.store.disagreements()
            counts = self.classes.counts(labels)
            offered = [*self._offered_classes, *sorted(self.classes.counts(self.given))]
            later = [name for name in self.classes.in_order(self.store.classes()) if counts[name]]
            names = self.classes.in_order([*offered, *later, *snapshot.classes])
            return {
                "revision": self._revision,
                "ready": self._ready,
                "busy": self._is_behind(),
                "failure": self._failure,
                "stage": self._stage,
                "order": self.classes.order,
                "restored": self.store.n_restored,
                "people": self.store.standing.people,
                **state_of(self.items, snapshot, labels, names, counts, disputed),
            }

    def map(self) -> dict[str, Any]:
        """Return a place in the plane and the likeliest class of each item."""
        with self._changed:
            snapshot, labels, ready = self._snapshot, self._labels, self._ready
        if not ready:
            return {"x": [], "y": [], "color": [], "classes": [], "labelled": []}
        return map_of(self.items, self._model.similarity, snapshot, labels)

    def _card(self, row: int, snapshot: Snapshot, user: str | None) -> dict[str, Any]:
        card = card_of(self.items, row, snapshot, self._labels, self.similarity)
        reason = self.unaided.reason(row, user)
        if reason is not None:
            return without_help(card, reason)
        return {**card, **remarks_of(self.store.standing, row)}

    # ---- labels; the lock is held

    def _current_labels(self) -> dict[int, str]:
        return {**self.given, **self.store.labels()}

    def check_rows(self, rows: Sequence[int]) -> None:
        """Refuse rows that do not exist, none, and too many."""
        n = len(self.items)
        require(0 < len(rows) <= MAX_ROWS, "rows", f"{len(rows)} rows", f"give 1 to {MAX_ROWS}")
        for row in rows:
            require(0 <= row < n, "rows", f"{row}", f"use 0 to {n - 1}")

    def _see_others(self) -> None:
        """Take in labels that another process wrote."""
        if self.store.refresh():
            self._note_labels()

    def _note_labels(self, user: str | None = None, rows: Collection[int] = ()) -> None:
        """Tell the thread of new labels, of a user's act; restore the posterior that knows them."""
        with self._changed:
            if user is not None:
                self._turns.note_label(user, rows)
            self._labels = self._current_labels()
            self._turns.forget_wishes(self._labels)
            known = self._recent.of(self._labels)
            if known is not None:
                self._show(known)
            self._touch()

    def _touch(self) -> None:
        self._revision += 1
        self._changed.notify_all()

    def _show(self, snapshot: Snapshot) -> None:
        """Make a posterior the current one."""
        self._snapshot = snapshot
        self._recent.keep(snapshot)
        self._touch()

    def _is_behind(self) -> bool:
        return self._busy or self._snapshot.labels != self._labels

    # ---- the thread

    def _run(self) -> None:
        """Renew the posterior until the session is closed, and tell those who wait of the end."""
        try:
            self._follow_labels()
        finally:
            with self._changed:
                self._ended = True
                self._touch()

    def _follow_labels(self) -> None:
        """Renew the posterior whenever labels change, and choose hyperparameters when idle."""
        with self._failures_shown():
            self._snapshot = Snapshot(queue=self._model.first_rows())
            self._model.prepare(self._report)
            with self._changed:
                self._ready = True
            self._renew(self._labels)
        while self._ready and not self._closed:
            with self._changed:
                self._changed.wait_for(self._has_work, POLL_S)
                labels = self._labels
            with self._failures_shown():
                self._see_others()
                if labels != self._snapshot.labels:
                    self._renew(labels)
                elif self._model.wants_refit and self._snapshot.probabilities is not None:
                    self._renew(labels, refit=True)

    def _report(self, phase: str, done: int, total: int, _: float) -> None:
        """Tell the page how far the preparation is, at each whole percent."""
        stage = f"{phase}: {100 * min(done / total, 1.0):.0f} %"
        if stage != self._stage:
            with self._changed:
                self._stage = stage
                self._touch()

    def _has_work(self) -> bool:
        return self._closed or (not self._failure and self._labels != self._snapshot.labels)

    def _renew(self, labels: dict[int, str], refit: bool = False) -> None:
        """Compute and show the posterior of some labels, then its queue, then its checks."""
        with self._changed:
            self._busy = True
            self._version += 1
            version = self._version
        try:
            snapshot = self._model.renew(labels, version, refit)
            self._publish(dataclasses.replace(snapshot, queue=self._snapshot.queue))
            snapshot = self._model.with_queue(snapshot, self.store.standing.skipped)
            self._publish(snapshot)
            if labels == self._labels:
                self._publish(self._model.with_checks(snapshot))
        finally:
            with self._changed:
                self._busy = False
                self._touch()

    def _publish(self, snapshot: Snapshot) -> None:
        """Show a posterior, unless the one for the present labels is known already."""
        with self._changed:
            self._failure = ""
            if snapshot.labels == self._labels or self._recent.of(self._labels) is None:
                self._show(snapshot)

    @contextlib.contextmanager
    def _failures_shown(self) -> Iterator[None]:
        """Show an error of the fit on the page; labels go on to be stored."""
        try:
            yield
        except Exception as error:
            with self._changed:
                name = "" if isinstance(error, GraphuqError) else f"{type(error).__name__}: "
                self._failure = f"{name}{error}"
                self._snapshot = dataclasses.replace(self._snapshot, labels=dict(self._labels))
                self._touch()
