"""Tables: a row for each item, with its columns, name and class."""

from pathlib import Path
from typing import ClassVar

import numpy as np

from graphuq.labelling.layouts.base import ID, LABEL, Labelled, Layout, table_of
from graphuq.results.formats import format_of


class Plain(Layout):
    """A CSV file, which ``graphuq label`` reads with ``--id-column id --label-column label``."""

    name: ClassVar[str] = "csv"
    title: ClassVar[str] = "CSV"
    file: ClassVar[str] = "labelled.csv"
    has_tags: ClassVar[bool] = True

    def write(self, labelled: Labelled, path: Path) -> None:
        """Write ``id``, the columns of the items, and ``label``, empty where there is none."""
        items, table = labelled.items, table_of(labelled.items)
        table.insert(0, ID, np.array(items.ids, dtype=object))
        table[LABEL] = np.array([labelled.labels.get(row) for row in range(len(items))], object)
        format_of(path).write(table, path)


class PlainParquet(Plain):
    """A Parquet file."""

    name: ClassVar[str] = "parquet"
    title: ClassVar[str] = "Parquet"
    file: ClassVar[str] = "labelled.parquet"


class PlainJsonLines(Plain):
    """A file of JSON lines."""

    name: ClassVar[str] = "jsonl"
    title: ClassVar[str] = "JSON lines"
    file: ClassVar[str] = "labelled.jsonl"
