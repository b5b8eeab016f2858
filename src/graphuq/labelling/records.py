"""Records of the file of labels, and what follows from them in order."""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphuq.utils.checks import is_integer, is_number

NUMBERS = ("probability", "expected_errors")


@dataclasses.dataclass(frozen=True)
class Record:
    """One label, or the withdrawal of one.

    Attributes
    ----------
    time : str
        UTC, as in ``2026-11-25T21:30:37.123+00:00``.
    user : str
        Who gave the label.
    row : int
        Row number of the item, from 0.
    item : str
        Name of the item.
    label : str or None
        Class, or None if the label of this user is withdrawn.
    probability : float or None
        Probability of this class that was shown.
    model : int or None
        Version of the model that gave the probability.
    expected_errors : float or None
        Expected number of wrong labels among all items, as it was shown.
    is_undo : bool
        Whether the record takes back an earlier one.
    batch : str or None
        Common name of labels that were given together, and are taken back together.
    """

    time: str
    user: str
    row: int
    item: str
    label: str | None
    probability: float | None = None
    model: int | None = None
    expected_errors: float | None = None
    is_undo: bool = False
    batch: str | None = None

    @property
    def act(self) -> tuple[str, str, int, bool, str | None]:
        """What tells the record from all others, whatever the label was changed to."""
        return self.time, self.user, self.row, self.is_undo, self.batch

    def to_line(self) -> bytes:
        """Return the record as a line of JSON."""
        text = json.dumps(dataclasses.asdict(self), ensure_ascii=False)
        return text.encode("utf-8", "surrogatepass") + b"\n"  # names of files may be invalid

    @staticmethod
    def from_json(values: Any) -> "Record":
        """Return the record in a decoded line; fields of later versions are left out.

        Raises
        ------
        ValueError
            If a field is missing or of the wrong type.
        """
        if not isinstance(values, dict):
            raise ValueError("not a record")
        texts = [values[name] for name in ("time", "user", "item")]
        optional = [values["label"], values.get("batch")]
        numbers = [values.get(name) for name in NUMBERS]
        whole = [values["row"], values.get("model") or 0]
        fits = (
            all(isinstance(v, str) for v in texts)
            and all(v is None or isinstance(v, str) for v in optional)
            and all(v is None or is_number(v) for v in numbers)
            and all(is_integer(v) for v in whole)
        )
        if not fits:
            raise ValueError("a field of the wrong type")
        names = {field.name for field in dataclasses.fields(Record)}
        return Record(**{name: value for name, value in values.items() if name in names})


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


class Standing:
    """Labels that hold after some records: for each row and user the latest one."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.classes: dict[str, None] = {}  # in the order in which they were first given
        self._by_row: dict[int, dict[str, str]] = {}
        self._given: dict[str, list[list[tuple[int, str | None]]]] = {}
        self._batch: dict[str, str | None] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Apply the next record of the file."""
        labels = self._by_row.setdefault(record.row, {})
        before = labels.pop(record.user, None)
        if record.label is not None:
            labels[record.user] = record.label  # the latest label is last
            self.classes.setdefault(record.label)
        acts = self._given.setdefault(record.user, [])
        continues = record.batch is not None and self._batch.get(record.user) == record.batch
        self._batch[record.user] = record.batch
        if record.is_undo:
            if acts and not continues:
                acts.pop()
        elif acts and continues:
            acts[-1].append((record.row, before))
        else:
            acts.append([(record.row, before)])

    def labels(self) -> dict[int, str]:
        """Return the class of each labelled row, which is the one given last."""
        return {row: list(by.values())[-1] for row, by in sorted(self._by_row.items()) if by}

    def label_of(self, row: int, user: str) -> str | None:
        """Return the class that a user gave to a row."""
        return self._by_row.get(row, {}).get(user)

    def latest_act(self, user: str) -> Sequence[tuple[int, str | None]]:
        """Return rows and former labels of the latest act of a user that was not taken back."""
        acts = self._given.get(user)
        return acts[-1] if acts else ()

    def disagreements(self) -> list[Disagreement]:
        """Return the rows with different classes, by row."""
        return [
            Disagreement(row, dict(by))
            for row, by in sorted(self._by_row.items())
            if len(set(by.values())) > 1
        ]
