"""Records of the file of labels."""

import dataclasses
import json
from typing import Any

from graphuq.labelling.tag_text import names_in, text_of
from graphuq.utils.checks import is_integer, is_number

NUMBERS = ("probability", "expected_errors")

LABEL, BLIND, DECISION = "label", "blind", "decision"
DRAW, AUDIT, NOTE, FLAG, SKIP = "draw", "audit", "note", "flag", "skip"
KINDS = (LABEL, BLIND, DECISION, DRAW, AUDIT, NOTE, FLAG, SKIP)
GIVES_LABEL = (LABEL, BLIND, DECISION, AUDIT)


@dataclasses.dataclass(frozen=True)
class Record:
    """One label, the withdrawal of one, or a remark about an item.

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
        Class, or tags as in `text_of`; None if the label of this user is withdrawn.
    probability : float or None
        Probability of this class that was shown.
    model : int or None
        Version of the model that gave the probability.
    expected_errors : float or None
        Expected number of wrong labels among all items, as it was shown.
    is_undo : bool
        Whether the record takes back an earlier one.
    batch : str or None
        Common name of labels that were given together, and are taken back together; of the
        items and answers of an audit, the name of the audit.
    kind : str
        ``label``; ``blind``, a label of a person who saw neither the label of another one nor
        probabilities; ``decision``, which ends a disagreement; ``draw``, an item that an audit
        chose at random, whose ``text`` is the class that was predicted; ``audit``, the answer for
        such an item; ``note``, whose ``text`` is a remark of the user; ``flag``, whose ``text`` is
        empty if the flag is taken away; ``skip``, an item that the user puts off.
    text : str
    drawn_from : int or None
        Number of items from which a ``draw`` was made.
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
    kind: str = LABEL
    text: str = ""
    drawn_from: int | None = None

    @property
    def act(self) -> tuple[str, str, int, bool, str | None, str]:
        """What tells the record from all others, whatever the label was changed to."""
        return self.time, self.user, self.row, self.is_undo, self.batch, self.kind

    def to_line(self, has_tags: bool = False) -> bytes:
        """Return the record as a line of JSON, in which the tags of an item are a list."""
        values = dataclasses.asdict(self)
        if has_tags and self.label is not None:
            values["label"] = names_in(self.label)
        text = json.dumps(values, ensure_ascii=False)
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
        tags = values["label"]
        if isinstance(tags, list) and all(isinstance(name, str) for name in tags):
            values = {**values, "label": text_of(tags)}
        texts = [values[name] for name in ("time", "user", "item")]
        optional = [values["label"], values.get("batch")]
        numbers = [values.get(name) for name in NUMBERS]
        whole = [values["row"], values.get("model") or 0, values.get("drawn_from") or 0]
        fits = (
            values.get("kind", LABEL) in KINDS
            and isinstance(values.get("text", ""), str)
            and all(isinstance(v, str) for v in texts)
            and all(v is None or isinstance(v, str) for v in optional)
            and all(v is None or is_number(v) for v in numbers)
            and all(is_integer(v) for v in whole)
        )
        if not fits:
            raise ValueError("a field of the wrong type")
        names = {field.name for field in dataclasses.fields(Record)}
        return Record(**{name: value for name, value in values.items() if name in names})
