"""What a file of features holds, and how it was read."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphuq.classifier.table_encoder.readings import Reading
from graphuq.graphs.inputs import Features
from graphuq.results.formats import TableFormat
from graphuq.utils.written.numbers import NumberFormat

PLURALS = {"number": "numbers", "date": "dates", "category": "categories", "text": "texts"}


class Contents(NamedTuple):
    """What a file of features holds.

    Attributes
    ----------
    columns : dict of str to numpy.ndarray
        Labels, ids and so on, by the names of their columns.
    features : numpy.ndarray, shape (N, d), or scipy.sparse.csr_array, shape (N, N)
    names : list of str
        Names of the features.
    ids : numpy.ndarray of str, shape (N,), or None
        Names of the rows that the file has beside its columns.
    format : TableFormat or None
        Format with what the file showed.
    readings : dict of str to Reading
        How columns are read as numbers, dates, categories and texts.
    """

    columns: dict[str, np.ndarray]
    features: Features
    names: list[str]
    ids: np.ndarray | None = None
    format: TableFormat | None = None
    readings: Mapping[str, Reading] = {}

    def settings(self, path: Path) -> dict[str, Any]:
        """Return how the file was read, as plain data."""
        found = {"file": path.name, "rows": self.features.shape[0]}
        found |= {} if self.format is None else self.format.settings()
        kinds = {n: f"{one.kind} ({self._written(one)})".removesuffix(" ()")
                 for n, one in self.readings.items()}  # fmt: skip
        return found | ({"columns": kinds} if kinds else {})

    def line(self, path: Path) -> str:
        """Return how the file was read, in one line."""
        parts = [f"{path.name}: {self.features.shape[0]} rows"]
        parts += [str(self.format)] if self.format is not None and str(self.format) else []
        if self.ids is not None and len(self.ids):
            parts.append(f"rows named by the first column, {self.ids[0]} to {self.ids[-1]}")
        counts = Counter(one.kind for one in self.readings.values())
        kinds = [f"{n} {kind if n == 1 else PLURALS[kind]}" for kind, n in counts.items()]
        words = {name: self._written(one) for name, one in self.readings.items()}
        written = [f"{name} ({one})" for name, one in words.items() if one]
        more = f" and {len(written) - 5} more" if len(written) > 5 else ""
        parts += [", ".join(kinds)] if kinds else []
        parts += [f"written as {', '.join(written[:5])}{more}"] if written else []
        empty = [name for name in self.names if name.startswith("empty__")]
        if empty:
            width = len(self.names) - len(empty)
            n_cells = int(np.asarray(self.features[:, width:]).sum())
            parts += [f"{n_cells} empty cells"]
        return "; ".join(parts)

    def _written(self, reading: Reading) -> str:
        """Return how cells are written, if it is not the way of the file."""
        written = reading.format
        if isinstance(written, NumberFormat) and self.format is not None:
            mark = written.decimal if written.decimal != self.format.decimal else "."
            written = NumberFormat(mark, written.unit)
        return "" if written is None else str(written)
