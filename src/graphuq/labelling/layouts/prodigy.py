"""Examples of Prodigy, as JSON lines: classes as choices, or one label an example."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from graphuq.labelling.items import TextItems
from graphuq.labelling.layouts.base import (
    TEXT,
    Imported,
    Labelled,
    ReadLayout,
    table_of,
)
from graphuq.labelling.layouts.label_studio import text_column
from graphuq.results.formats.json_lines import plain, read_objects, write_objects
from graphuq.utils.checks import text_array
from graphuq.utils.gate import reading

MARKS = {"answer", "accept", "options", "_task_hash", "_input_hash"}
ACCEPTED = "accept"  # the answer of a person who agrees


class Prodigy(ReadLayout):
    """A file for ``prodigy db-in``, and one of ``prodigy db-out``."""

    name: ClassVar[str] = "prodigy"
    title: ClassVar[str] = "Prodigy"
    has_pixels: ClassVar[bool] = False
    file: ClassVar[str] = "prodigy.jsonl"

    def fits(self, path: Path) -> bool:
        """Return whether the first line has fields of Prodigy."""
        if path.suffix.lower() not in (".jsonl", ".ndjson"):
            return False
        with reading(path, "JSONL file"), path.open(encoding="utf-8-sig") as file:
            first = file.readline()
        return any(f'"{mark}"' in first for mark in MARKS)

    def read(self, path: Path, text: str | None = None) -> Imported:
        """Return examples; an example that occurs again has the label of its last accepted one.

        Rejected and ignored ones have no label. ``meta`` becomes columns.
        """
        import pandas as pd

        found: dict[Any, tuple[dict[str, Any], str]] = {}
        for example in read_objects(path):
            shown = {k: v for k, v in example.items() if not _is_of_prodigy(k)}
            meta = example.get("meta")
            columns = {**shown, **(meta if isinstance(meta, dict) else {})}
            key = str(sorted(shown.items()))
            label = _label(example) or found.get(key, ({}, ""))[1]
            found[key] = columns, label
        names = list(dict.fromkeys(name for columns, _ in found.values() for name in columns))
        frame = pd.DataFrame({n: [columns.get(n) for columns, _ in found.values()] for n in names})
        labels = text_array((label for _, label in found.values()), "FILE")
        return Imported(frame, text_column(frame, text), labels)

    def write(self, labelled: Labelled, path: Path) -> None:
        """Write an example for each label of a person, as the choice interface has it."""
        write_objects(self._examples(labelled), path)

    @staticmethod
    def _examples(labelled: Labelled) -> Iterator[dict[str, Any]]:
        items, table = labelled.items, table_of(labelled.items)
        rows = table.astype(object).to_dict("records")
        options = [{"id": name, "text": name} for name in labelled.classes]
        for row, user, label in labelled.said():
            columns = {str(k): plain(v) for k, v in rows[row].items()}
            is_text = isinstance(items, TextItems)
            shown = {TEXT: columns.pop(TEXT) if is_text else items.summary(row) or items.ids[row]}
            if "file" in columns:
                shown = {"image": columns.pop("file")}
            yield {
                **shown,
                "options": options,
                "accept": [label],
                "answer": ACCEPTED,
                **({} if user is None else {"_annotator_id": user}),
                "meta": {"id": items.ids[row], **columns},
            }


def _is_of_prodigy(name: str) -> bool:
    return name.startswith("_") or name in {*MARKS, "label", "meta", "spans", "tokens", "config"}


def _label(example: dict[str, Any]) -> str:
    """Return the class of an accepted example, or an empty text."""
    if example.get("answer", ACCEPTED) != ACCEPTED:
        return ""
    chosen = example.get("accept")
    if isinstance(chosen, list) and len(chosen) == 1:
        return str(chosen[0])
    return str(example.get("label") or "") if not chosen else ""
