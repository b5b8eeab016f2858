"""What holds after the records of a file of labels, taken in order."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from graphuq.labelling.records import (
    AUDIT,
    BLIND,
    DECISION,
    DRAW,
    FLAG,
    GIVES_LABEL,
    NOTE,
    SKIP,
    Record,
)


@dataclasses.dataclass(frozen=True)
class Disagreement:
    """An item to which users gave different classes.

    Attributes
    ----------
    row : int
    labels : mapping of str to str
        Class that each user gave, the latest one last.
    """

    row: int
    labels: Mapping[str, str]


@dataclasses.dataclass
class Act:
    """What a person did at once, and can take back.

    Attributes
    ----------
    kind : str
        As of `Record`.
    labels : dict of int to str or None
        Former label of each row.
    batch : str or None
        Name of the audit, if the act is an answer of one.
    """

    kind: str
    labels: dict[int, str | None]
    batch: str | None = None


@dataclasses.dataclass
class Audit:
    """A random sample of items, and what people said of them.

    Attributes
    ----------
    name : str
    time : str
        UTC, when it was drawn.
    user : str
        Who drew it.
    model : int or None
        Version of the model whose predictions are judged.
    expected_errors : float or None
        Number of wrong predictions that the model expected then.
    drawn_from : int
        Unlabelled items from which the sample was drawn.
    predicted : dict of int to str
        Class that was predicted of each drawn item, in the order of the draw.
    answers : dict of int to str
        Class that a person gave to an item without seeing the prediction.
    """

    name: str
    time: str
    user: str
    model: int | None
    expected_errors: float | None
    drawn_from: int
    predicted: dict[int, str] = dataclasses.field(default_factory=dict)
    answers: dict[int, str] = dataclasses.field(default_factory=dict)

    @property
    def open_rows(self) -> list[int]:
        """Items without an answer, in the order of the draw."""
        drawn = list(self.predicted)  # a copy, as another thread may add items meanwhile
        return [row for row in drawn if row not in self.answers]

    def is_open(self, row: int) -> bool:
        """Return whether a row was drawn and has no answer."""
        return row in self.predicted and row not in self.answers


class Standing:
    """Labels that hold after some records: for each row and user the latest one.

    A decision stands above the labels of users until it is taken back.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.classes: dict[str, int] = {}  # number of the record in which each was first given
        self.latest_numbers: dict[int, int] = {}  # number of the latest label of each row
        self._n_labels = 0
        self.notes: dict[int, dict[str, str]] = {}  # by row and user
        self.flags: dict[int, dict[str, None]] = {}  # users who flagged a row
        self.audits: dict[str, Audit] = {}  # by name, in order
        self.single: dict[int, str] = {}  # who labelled a row that nobody else labelled
        self._pairs: dict[int, dict[str, str]] = {}  # labels that were given without the others
        self._by_row: dict[int, dict[str, str]] = {}
        self._decisions: dict[int, dict[str, str]] = {}
        self._people: dict[str, None] = {}  # in the order of their first labels
        self._skipped: dict[str, dict[int, None]] = {}  # by user, in order
        self._given: dict[str, list[Act]] = {}
        self._batch: dict[str, str | None] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Apply the next record of the file."""
        if record.kind in GIVES_LABEL:
            self._add_label(record)
            self._add_reading(record)
        elif record.kind == DRAW:
            self._add_draw(record)
        elif record.kind == SKIP:
            self._add_skip(record)
        elif record.kind == NOTE:
            self._remark(self.notes, record, record.text)
        elif record.kind == FLAG:
            self._remark(self.flags, record, None)

    def _add_label(self, record: Record) -> None:
        is_decision = record.kind == DECISION
        of_kind = self._decisions if is_decision else self._by_row
        labels = of_kind.setdefault(record.row, {})
        before = labels.pop(record.user, None)
        if record.label is not None:
            labels[record.user] = record.label  # the latest label is last
            self.classes.setdefault(record.label, self._n_labels)
            if not record.is_undo:
                self.latest_numbers[record.row] = self._n_labels
        self._n_labels += 1
        self._people.setdefault(record.user)
        self._note_act(record, before)

    def _note_act(self, record: Record, before: str | None) -> None:
        """Keep what a user can take back; records of one batch are one act."""
        acts = self._given.setdefault(record.user, [])
        in_batch = record.batch is not None and record.kind != AUDIT
        continues = in_batch and self._batch.get(record.user) == record.batch
        self._batch[record.user] = record.batch if in_batch else None
        if record.is_undo:
            if acts and not continues:
                acts.pop()
        elif acts and continues:
            acts[-1].labels[record.row] = before
        else:
            batch = record.batch if record.kind == AUDIT else None
            acts.append(Act(record.kind, {record.row: before}, batch))

    def _add_reading(self, record: Record) -> None:
        """Note who read a row alone, and answers of audits."""
        row, labels = record.row, self._by_row.get(record.row, {})
        if len(labels) == 1 and not self._decisions.get(row):
            self.single[row] = next(iter(labels))
        else:
            self.single.pop(row, None)
        if record.kind == BLIND:
            self._pairs.pop(row, None)
            if record.label is not None and len(labels) > 1:
                self._pairs[row] = dict(labels)
        elif record.kind == AUDIT and record.batch in self.audits:
            answers = self.audits[record.batch].answers
            answers.pop(row, None)
            if record.label is not None:
                answers[row] = record.label

    def _add_draw(self, record: Record) -> None:
        """Note an item of an audit; an undo ends the audit before the item has an answer."""
        name = record.batch or ""
        if name not in self.audits:
            self.audits[name] = Audit(name, record.time, record.user, record.model,
                                      record.expected_errors, record.drawn_from or 0)  # fmt: skip
        if record.is_undo:
            self.audits[name].predicted.pop(record.row, None)
        else:
            self.audits[name].predicted[record.row] = record.text
            for rows in list(self._skipped.values()):  # it is another question now
                rows.pop(record.row, None)

    def _add_skip(self, record: Record) -> None:
        """Note an item that a user puts off; an undo brings it back."""
        rows = self._skipped.setdefault(record.user, {})
        rows.pop(record.row, None)
        if not record.is_undo:
            rows[record.row] = None  # the latest one is last
        self._note_act(record, None)

    @staticmethod
    def _remark(kept: dict[int, dict[str, Any]], record: Record, value: Any) -> None:
        """Keep a remark of a user about a row; one without text takes it back."""
        remarks = kept.setdefault(record.row, {})
        remarks.pop(record.user, None)
        if record.text:
            remarks[record.user] = value
        if not remarks:
            del kept[record.row]

    def labels(self) -> dict[int, str]:
        """Return the class of each labelled row: the decision, or the one given last."""
        found = {row: list(by.values())[-1] for row, by in self._by_row.items() if by}
        found |= {row: list(by.values())[-1] for row, by in self._decisions.items() if by}
        return dict(sorted(found.items()))

    def label_of(self, row: int, user: str) -> str | None:
        """Return the class that a user gave to a row."""
        return self._by_row.get(row, {}).get(user)

    def readings(self) -> dict[int, dict[str, str]]:
        """Return the class that each user gave to each row, without decisions."""
        return {row: dict(by) for row, by in sorted(self._by_row.items()) if by}

    def pairs(self) -> dict[int, dict[str, str]]:
        """Return labels of rows that people labelled without seeing each other's label.

        They stay as they were given, also when somebody changes a label later.
        """
        return {row: dict(by) for row, by in sorted(self._pairs.items())}

    @property
    def people(self) -> list[str]:
        """Who ever labelled, in the order of their first labels."""
        return list(self._people)

    def skipped_by(self, user: str) -> list[int]:
        """Return the rows that a user puts off, in the order of the skips."""
        return list(self._skipped.get(user, ()))

    @property
    def skipped(self) -> list[int]:
        """Rows that anybody puts off."""
        return [row for user in list(self._skipped) for row in self.skipped_by(user)]

    @property
    def open_audit(self) -> Audit | None:
        """The latest audit, while items of it have no answer."""
        latest = list(self.audits.values())[-1:]
        return latest[0] if latest and latest[0].open_rows else None

    def latest_act(self, user: str) -> "Act | None":
        """Return the latest act of a user that was not taken back."""
        acts = self._given.get(user)
        return acts[-1] if acts else None

    def is_disputed(self, row: int) -> bool:
        """Return whether users gave different classes to a row, and nobody has decided."""
        return len(set(self._by_row.get(row, {}).values())) > 1 and not self._decisions.get(row)

    def labels_of(self, row: int) -> dict[str, str]:
        """Return the class that each user gave to a row, the latest one last."""
        return dict(self._by_row.get(row, {}))

    def disagreements(self) -> list[Disagreement]:
        """Return the rows with different classes that nobody has decided, by row."""
        rows = sorted(row for row in self._by_row if self.is_disputed(row))
        return [Disagreement(row, self.labels_of(row)) for row in rows]
