"""Tasks of Label Studio with annotations and predictions, as JSON."""

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from graphuq.errors import InvalidInput, StorageError, require
from graphuq.labelling.items import PictureFiles, TextItems
from graphuq.labelling.label_studio.config import label_config, parse_config
from graphuq.labelling.label_studio.exchange import annotations, tasks
from graphuq.labelling.layouts.base import (
    FILE,
    ID,
    TEXT,
    Imported,
    Labelled,
    ReadLayout,
    table_of,
)
from graphuq.results.formats.json_lines import plain
from graphuq.utils.checks import text_array
from graphuq.utils.gate import reading

PICTURE = "image"  # field of the tasks


class LabelStudio(ReadLayout):
    """A file that Label Studio imports, and its export as JSON or JSON-MIN."""

    name: ClassVar[str] = "label-studio"
    title: ClassVar[str] = "Label Studio"
    has_pixels: ClassVar[bool] = False
    file: ClassVar[str] = "label-studio.json"

    def fits(self, path: Path) -> bool:
        """Return whether it is a JSON file."""
        return path.suffix.lower() == ".json"

    def read(self, path: Path, text: str | None = None) -> Imported:
        """Return tasks; of several annotations of a task the latest counts."""
        import pandas as pd

        with reading(path, "JSON file"):
            content = path.read_text(encoding="utf-8-sig")
        try:
            export = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise StorageError(f"'{path}' is no JSON ({error}); export the tasks again") from None
        found = annotations(export)
        fields = [task["data"] if isinstance(task.get("data"), dict) else task for task in export]
        names = list(dict.fromkeys(name for values in fields for name in values))
        frame = pd.DataFrame({n: [values.get(n) for values in fields] for n in names})
        if "data" not in (export[0] if export else {}):  # JSON-MIN has all in one object
            made = ("id", "label", "annotator", "annotation_id", "created_at", "updated_at",
                    "lead_time")  # fmt: skip
            frame = frame.drop(columns=[name for name in made if name in frame])
        labels = np.full(len(export), "", dtype=object)
        labels[found["row"].to_numpy(dtype=int)] = found["label"].to_numpy()
        numbers = [task.get("id") for task in export]
        names_of_rows = {str(number) for number in numbers if isinstance(number, int | str)}
        ids = [str(number) for number in numbers] if len(names_of_rows) == len(export) else None
        return Imported(frame, text_column(frame, text), text_array(labels, "FILE"), ids)

    def write(self, labelled: Labelled, path: Path) -> None:
        """Write a task for each item, with the annotation of each person, and a prediction."""
        items, result, table = labelled.items, labelled.result, table_of(labelled.items)
        if FILE in table:
            table = table.rename(columns={FILE: PICTURE})
        field = TEXT if isinstance(items, TextItems) else PICTURE
        if field not in table:
            field = str(table.columns[0])
        table.insert(0, ID, np.array(items.ids, dtype=object))
        rows = [
            {str(k): plain(v) for k, v in row.items()}
            for row in table.astype(object).to_dict("records")
        ]
        kind = "image" if isinstance(items, PictureFiles) else "text"
        config = label_config(labelled.classes or ["class"], field=field, kind=kind)
        p = None if result is None else result.probabilities
        names = [] if result is None else [str(name) for name in result.classes]
        made = tasks(rows, p, names, config=config)
        choices = parse_config(config)
        for row, _, label in labelled.said():  # it knows people by their accounts only
            done = {"result": [choices.result(label)]}
            made[row].setdefault("annotations", []).append(done)
        path.write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")


def text_column(frame: Any, wanted: str | None) -> str | None:
    """Return the column with the text: the wanted one, "text", or the only one of texts."""
    names = [str(name) for name in frame.columns]
    if wanted is not None:
        require(wanted in names, "--text-column", repr(wanted), f"use one of {names[:8]}")
        return wanted
    if TEXT in names:
        return TEXT
    texts = [n for n in names if all(isinstance(v, str | None) for v in frame[n])]
    if len(texts) == 1:
        return texts[0]
    raise InvalidInput("--text-column", "not given", f"name the text among {names[:8]}")
