"""Files of labels, with the columns ``id`` and ``label``."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from graphuq.cli.columns import check_column, same_name
from graphuq.cli.frames import as_text, format_of_file, read_frame
from graphuq.cli.tables import check_ids
from graphuq.errors import GraphuqWarning, InvalidInput, require
from graphuq.results.formats import Csv
from graphuq.utils.gate import require_file
from graphuq.utils.near_names import did_you_mean
from graphuq.utils.spreadsheets import unmarked
from graphuq.utils.user_warnings import warn_user

ID = "id"  # column of the ids, in capitals or not
MANY = 20  # labels that may all be different


def read_labels(
    path: Path,
    ids: np.ndarray,
    column: str | None = None,
    told: Mapping[str, str] | None = None,
    others: Sequence[str] = (),
    id_columns: Sequence[str] = (ID,),
) -> np.ndarray:
    """Return the labels of a file in the order of ``ids``, empty where there is none.

    Parameters
    ----------
    path : path
    ids : numpy.ndarray of str, shape (N,)
    column : str, optional
        Column of the labels; by default ``label``.
    told : dict of str to str, optional
        What the user says of how a file of text holds its table.
    others : sequence of str
        Columns of the table that do not name its rows, none of which may be named like the ids.
    id_columns : sequence of str
        Names that the column of the ids may have, the first that the file has.

    Raises
    ------
    InvalidInput
        If an id with a label is not among ``ids``, or an id repeats; if the table has a column of
        ids that is not used. An id is the name of a row, or its number from 0 if the table names
        none, and is never counted in another way.
    StorageError
        If the file cannot be read.
    """
    labels = _labels_by_id(path, column, told, others, id_columns)
    unknown = np.setdiff1d(list(labels), ids)
    refuse_other_count(unknown, ids)
    given = [name for name in unknown.tolist() if labels[name]]
    if given:
        words = f"{len(given)} label(s) with ids that the table lacks, such as {given[:1]}"
        remedy = f"use ids of the table, such as {ids[:3].tolist()}"
        raise InvalidInput("labels", words, did_you_mean(given[0], ids, remedy))
    if len(unknown):
        words = f"labels: {len(unknown)} id(s) without a label that the table lacks, such as"
        warn_user(f"{words} {unknown[:1].tolist()}; they get no answer", GraphuqWarning)
    return np.array([labels.get(identifier, "") for identifier in ids.tolist()], dtype=str)


def refuse_other_count(unknown: np.ndarray, ids: np.ndarray) -> None:
    """Raise `InvalidInput` if rows are counted from 0 and labels from 1, or the other way round.

    Parameters
    ----------
    unknown : numpy.ndarray of str
        Ids of labels that the table lacks.
    ids : numpy.ndarray of str, shape (N,)
    """
    last = str(len(ids))
    for first, lacking in (("1", "0"), ("0", last)):
        counted = [str(k) for k in range(int(first), int(first) + len(ids))]
        if lacking in unknown and ids.tolist() == counted:
            named = "its first column, which has no name, counts" if first == "1" else "it counts"
            other = "0" if first == "1" else "1"
            raise InvalidInput(
                "labels",
                f"id {lacking}, and {named} rows from {first} to {counted[-1]}; labels seem to be "
                f"counted from {other}",
                f"count rows from {first} in --labels, or name a column by --id-column",
            )


def read_labels_of_rows(path: Path, told: Mapping[str, str] | None = None) -> dict[int, str]:
    """Return the labels of a file whose ids are row numbers from 0.

    Raises
    ------
    InvalidInput
        If an id is no row number, or repeats.
    StorageError
        If the file cannot be read.
    """
    labels = _labels_by_id(path, None, told)
    bad = [name for name in labels if not name.isdigit()]
    require(not bad, "labels", f"id {bad[:1]}", "use row numbers from 0, which --store needs")
    return {int(name): label for name, label in labels.items() if label}


def _labels_by_id(
    path: Path,
    column: str | None,
    told: Mapping[str, str] | None,
    others: Sequence[str] = (),
    id_columns: Sequence[str] = (ID,),
) -> dict[str, str]:
    require_file(path)
    is_text = isinstance(format_of_file(path), Csv)
    require(is_text or not told, "--read-labels", f"given beside '{path.name}'", "leave it out")
    own = ["label", "Label"] if column is None else [column]
    texts = ["id", "Id", "ID", *id_columns, *own]
    frame = read_frame(path, texts, format_of_file(path, told))
    names = [str(name) for name in frame.columns]
    spelled = [same_name(name, names) for name in id_columns]
    id_column = next((name for name in spelled if name in names), spelled[-1])
    label_column = column or same_name("label", names)
    words = f"'{path.name}' has the columns {', '.join(names)}, and none is"
    remedy = "rename that of the ids, or name it by --id-column"
    require(id_column in names, "labels", f"{words} {id_column!r}", remedy)
    check_column(label_column, names, "name the column of classes by --label-column")
    unused = [name for name in others if name.casefold() == id_column.casefold()]
    require(
        not unused,
        "labels",
        f"'{path.name}' has ids, and column {unused[:1]} of the table does not name its rows",
        "add --id-column {0}, or --drop {0} if ids are row numbers from 0".format(*unused or [""]),
    )
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
