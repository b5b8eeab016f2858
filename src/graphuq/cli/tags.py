"""``graphuq classify --tag-columns``: rows with several tags at once."""

import ast
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from graphuq.cli.annotators import names_in
from graphuq.cli.facts import the_facts
from graphuq.errors import InvalidInput, require

if TYPE_CHECKING:
    import pandas as pd

    from graphuq.cli.tables import Table

USED = (
    "file", "tag_columns", "missing_label", "id_column", "drop", "read", "encode", "impute", "kind",
    "missing_value", "output", "quiet", "file_format", "scaling", "pca",
)  # fmt: skip
"""Options of files that have a meaning beside ``--tag-columns``."""
UNUSED = ("max_classes", "criterion")  # options of the estimator that have none

WORDS = {"1": 1, "1.0": 1, "true": 1, "yes": 1, "y": 1, "0": 0, "0.0": 0, "false": 0, "no": 0,
         "n": 0, "-1": -1, "-1.0": -1, "": -1}  # fmt: skip
SEPARATORS = "[;|]"  # between the names of the tags of a row
LIST = re.compile(r"\[.*\]|\(.*\)|\{.*\}|set\(\)")  # as Python writes one


def classify_tags(given: Mapping[str, Any]) -> None:
    """Infer which tags each row of a table has, and write predictions, tags and posterior.

    Parameters
    ----------
    given : dict
        All options of the command, those of `USED` and of the estimator alone.

    Raises
    ------
    GraphuqError
        If the input cannot be used.
    """
    from graphuq.classifier.classifier import GraphClassifier
    from graphuq.classifier.multilabel.classifier import MultilabelClassifier
    from graphuq.cli.columns import without_missing
    from graphuq.cli.fitting import check_options, classifier_options
    from graphuq.cli.preprocessing import preprocess
    from graphuq.cli.unread import OF_FIT, require_unread
    from graphuq.results.table import write_table
    from graphuq.utils.csv_files import write_csv
    from graphuq.utils.output_folder import atomic_folder, output_folder

    facts = the_facts(given["quiet"])
    columns, output = (
        names_in(given["tag_columns"], "--tag-columns", "comedy,drama"),
        given["output"],
    )
    require_unread({"FILE": given["file"]}, output, *OF_FIT)
    with output_folder(output):
        parameters = classifier_options(given["given"])
        check_options(parameters, None, None)
        table = _read(given, columns, parameters)
        facts.read(table.line, table.settings)
        assert table.annotations is not None
        texts = without_missing(table.annotations, given["missing_label"] or None)
        tags = tags_of_texts(texts, columns)
        features, groups = preprocess(table, parameters["graph"], given["scaling"], given["pca"])
        estimator = GraphClassifier(**parameters, progress=not facts.quiet)
        classifier = MultilabelClassifier(estimator).fit(features, tags)
        of_tags = classifier.tags_
        with atomic_folder(output, "predictions.*") as folder:
            predictions = f"predictions.{given['file_format']}"
            write_table(classifier.to_dataframe(table.ids), folder / predictions)
            write_csv(of_tags, folder / "tags.csv")
            classifier.save(folder / "posterior.nc", groups)
            written = sorted(path.name for path in folder.iterdir())
    facts.say("{n_rows} rows, {n_tags} tags", n_rows=len(table.ids), n_tags=len(of_tags))
    facts.each(
        "{tag}: {n_with} of {n_labels} labels, {share:.0%} of the rows; {verdict}",
        tags=of_tags.to_dict("records"),
    )
    facts.wrote(*(output / name for name in written))


def tags_of_texts(texts: np.ndarray, columns: list[str]) -> Any:
    """Return tags as `MultilabelClassifier` takes them.

    Parameters
    ----------
    texts : numpy.ndarray of str, shape (N, T)
        Yes or no in each column, empty or -1 where unknown. One column may hold the names of the
        tags of each row instead, with ; or | between them, or commas if no row has these, or as
        Python writes lists; an empty cell is an unlabelled row, and a separator alone a row
        without tags.
    columns : list of str, length T

    Returns
    -------
    pandas.DataFrame, or list of sets for one column

    Raises
    ------
    InvalidInput
        If a text means neither yes nor no.
    """
    if len(columns) > 1 or {text.strip().casefold() for text in texts[:, 0]} <= set(WORDS):
        return _table(texts, columns)
    rows = [text.strip() for text in texts[:, 0].tolist()]
    filled = [text for text in rows if text]
    if all(LIST.fullmatch(text) for text in filled):
        return [_of_list(text) if text else None for text in rows]
    marks = SEPARATORS if any(re.search(SEPARATORS, text) for text in filled) else ","
    return [_names(text, marks) if text else None for text in rows]


def _names(text: str, marks: str) -> set[str]:
    return {name.strip() for name in re.split(marks, text) if name.strip()}


def _of_list(text: str) -> set[str]:
    """Return the names in a list that Python or JSON has written, or one without quotes."""
    try:
        names = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _names(text[1:-1], ",")
    is_list = isinstance(names, list | tuple | set | dict)
    return {str(name).strip() for name in (names if is_list else [names])}


def _table(texts: np.ndarray, columns: list[str]) -> "pd.DataFrame":
    import pandas as pd

    codes = np.full(texts.shape, -1)
    for column, name in enumerate(columns):
        for row, text in enumerate(texts[:, column].tolist()):
            word = text.strip().casefold()
            if word not in WORDS:
                raise InvalidInput(
                    name,
                    f"{text!r} in row {row}, which means neither yes nor no",
                    "write 1 or 0, yes or no, true or false, and nothing where it is unknown; or "
                    "name one column that holds the names of the tags",
                )
            codes[row, column] = WORDS[word]
    return pd.DataFrame(codes, columns=columns)


def _read(given: Mapping[str, Any], columns: list[str], parameters: Mapping[str, Any]) -> "Table":
    """Return the table of a file of features, with the texts of the tags."""
    from graphuq.cli.columns import read_options
    from graphuq.cli.edges import edge_files
    from graphuq.cli.encoding import encoder_from
    from graphuq.cli.fitting import require_features
    from graphuq.cli.tables import read_table
    from graphuq.graphs.graph_files import GRAPH_SUFFIXES

    file = given["file"]
    is_table = file.suffix.lower() not in (*GRAPH_SUFFIXES, ".h5ad")
    remedy = "give a table, or use MultilabelClassifier in Python"
    require(is_table, "--tag-columns", f"given beside '{file.name}'", remedy)
    graph = parameters["graph"]
    require(not edge_files(str(graph)), "--tag-columns", f"given beside --graph {graph}", remedy)
    encoding = [given[n] for n in ("encode", "impute", "kind", "missing_value", "scaling")]
    table = read_table(
        file,
        id_column=given["id_column"],
        dropped=given["drop"] or (),
        encoder=encoder_from(*encoding),
        annotator_columns=columns,
        options=read_options(given["read"]),
    )
    require_features(table, parameters)
    return table
