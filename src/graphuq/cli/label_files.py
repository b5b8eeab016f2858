"""Files of labels, with the columns ``id`` and ``label``."""

from pathlib import Path

import numpy as np

from graphuq.cli.columns import check_column
from graphuq.cli.frames import as_text, read_frame
from graphuq.cli.tables import check_ids
from graphuq.errors import require
from graphuq.utils.gate import require_file


def read_labels(path: Path, ids: np.ndarray) -> np.ndarray:
    """Return the labels of a file in the order of ``ids``, empty where there is none.

    Raises
    ------
    InvalidInput
        If an id is not among ``ids``, or repeats.
    StorageError
        If the file cannot be read.
    """
    labels = _labels_by_id(path)
    unknown = np.setdiff1d(list(labels), ids)
    require(
        len(unknown) == 0,
        "labels",
        f"{len(unknown)} label(s) with ids that the table lacks, such as {unknown[:1].tolist()}",
        "use ids of the table (row numbers from 0 without --id-column)",
    )
    return np.array([labels.get(identifier, "") for identifier in ids.tolist()], dtype=str)


def read_labels_of_rows(path: Path) -> dict[int, str]:
    """Return the labels of a file whose ids are row numbers from 0.

    Raises
    ------
    InvalidInput
        If an id is no row number, or repeats.
    StorageError
        If the file cannot be read.
    """
    labels = _labels_by_id(path)
    bad = [name for name in labels if not name.isdigit()]
    require(not bad, "labels", f"id {bad[:1]}", "use row numbers from 0, which --store needs")
    return {int(name): label for name, label in labels.items() if label}


def _labels_by_id(path: Path) -> dict[str, str]:
    require_file(path)
    frame = read_frame(path, ["id", "label"])
    for column in ("id", "label"):
        check_column(column, list(frame.columns))
    ids = as_text(frame["id"])
    check_ids(ids, "id")
    return dict(zip(ids.tolist(), as_text(frame["label"]).tolist(), strict=True))
