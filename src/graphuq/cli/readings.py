"""Option ``--annotator-column``: files with one line for each label of each person."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from graphuq.cli.columns import check_column, same_name
from graphuq.cli.frames import as_text, format_of_file, read_frame
from graphuq.errors import InvalidInput, require
from graphuq.results.formats import Csv
from graphuq.utils.gate import require_file


def read_readings(
    path: Path,
    ids: np.ndarray,
    annotator_column: str,
    id_column: str | None = None,
    label_column: str | None = None,
    told: Mapping[str, str] | None = None,
) -> tuple[list[str], np.ndarray]:
    """Return the names of the annotators, and a column of labels for each, empty where none.

    Parameters
    ----------
    path : path
    ids : numpy.ndarray of str, shape (N,)
    annotator_column : str
        Column of the file with the person of each label.
    id_column, label_column : str, optional
        Columns of the file with the row and the label; by default ``id`` and ``label``.
    told : dict of str to str, optional
        What the user says of how a file of text holds its table.

    Raises
    ------
    InvalidInput
        If a column is missing, an id is not among ``ids``, a person is not named, or somebody
        labelled a row twice.
    StorageError
        If the file cannot be read.
    """
    require_file(path)
    is_text = isinstance(format_of_file(path), Csv)
    require(is_text or not told, "--read-labels", f"given beside '{path.name}'", "leave it out")
    wanted = (id_column or "id", annotator_column, label_column or "label")
    frame = read_frame(
        path, [*wanted, *(n.capitalize() for n in wanted)], format_of_file(path, told)
    )
    names = [str(name) for name in frame.columns]
    columns = [same_name(name, names) for name in wanted]
    for name in columns:
        check_column(name, names)
    rows, people, labels = (as_text(frame[name]) for name in columns)
    given = labels != ""
    rows, people, labels = rows[given], people[given], labels[given]
    require(
        bool((people != "").all()),
        "--annotator-column",
        f"no name in {int((people == '').sum())} line(s) with a label",
        "name the person of each label",
    )
    places = pd.Index(ids).get_indexer(rows)
    unknown = np.unique(rows[places < 0])
    require(
        len(unknown) == 0,
        "labels",
        f"{len(unknown)} id(s) that the table lacks, such as {unknown[:1].tolist()}",
        f"use ids of the table, such as {ids[:3].tolist()}",
    )
    who, annotators = pd.factorize(people)
    twice = np.flatnonzero(pd.DataFrame({"row": places, "who": who}).duplicated())
    if len(twice) > 0:
        first = int(twice[0])
        raise InvalidInput(
            "labels",
            f"'{people[first]}' labelled row '{rows[first]}' twice",
            "leave one label for each person and row",
        )
    found = np.full((len(ids), len(annotators)), "", dtype=object)
    found[places, who] = labels
    return [str(name) for name in annotators], found.astype(str)
