"""Files of labels, with the columns ``id`` and ``label``."""

from pathlib import Path

import numpy as np

from graphuq.cli.columns import check_column, same_name
from graphuq.cli.frames import as_text, read_frame
from graphuq.cli.tables import check_ids
from graphuq.errors import require
from graphuq.utils.gate import require_file
from graphuq.utils.spreadsheets import unmarked

MANY = 20  # labels that may all be different


def read_labels(path: Path, ids: np.ndarray, column: str | None = None) -> np.ndarray:
    """Return the labels of a file in the order of ``ids``, empty where there is none.

    Parameters
    ----------
    path : path
    ids : numpy.ndarray of str, shape (N,)
    column : str, optional
        Column of the labels; by default ``label``.

    Raises
    ------
    InvalidInput
        If an id is not among ``ids``, or repeats.
    StorageError
        If the file cannot be read.
    """
    labels = _labels_by_id(path, column)
    unknown = np.setdiff1d(list(labels), ids)
    require(
        len(unknown) == 0,
        "labels",
        f"{len(unknown)} label(s) with ids that the table lacks, such as {unknown[:1].tolist()}",
        f"use ids of the table, such as {ids[:3].tolist()}",
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


def _labels_by_id(path: Path, column: str | None = None) -> dict[str, str]:
    require_file(path)
    texts = ["id", "Id", "ID", "label", "Label"] if column is None else ["id", "Id", "ID", column]
    frame = read_frame(path, texts)
    names = [str(name) for name in frame.columns]
    id_column, label_column = same_name("id", names), column or same_name("label", names)
    for name in (id_column, label_column):
        check_column(name, names)
    columns = (as_text(frame[name]).tolist() for name in (id_column, label_column))
    ids, labels = (np.array([unmarked(text) for text in column], dtype=str) for column in columns)
    check_ids(ids, id_column)
    given = labels[labels != ""]
    require(
        len(given) <= MANY or len(set(given.tolist())) < len(given),
        "labels",
        f"all of '{path.name}' are different, such as {given[:2].tolist()}, like names",
        "give classes; for a graph, --label-column names their column of this file",
    )
    return dict(zip(ids.tolist(), labels.tolist(), strict=True))
