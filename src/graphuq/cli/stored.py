"""``graphuq classify --store``: tables of any length, part by part."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphuq.cli.facts import the_facts
from graphuq.errors import require

USED = (
    "file", "store", "workers", "scheduler", "label_column", "labels", "read_labels",
    "missing_label", "truth_column", "drop", "output", "quiet", "resume",
)  # fmt: skip
"""Options of files that have a meaning beside ``--store``."""

PASSED_ON = ("n_neighbors", "n_eigenpairs", "inference", "random_state")
USED_OF_ESTIMATOR = (*PASSED_ON, "model", "prior", "likelihood")


def classify_in_store(given: Mapping[str, Any]) -> None:
    """Infer the class of every row of a folder of Parquet files, or of one large file.

    Parameters
    ----------
    given : dict
        All options of the command, those of `USED` and `USED_OF_ESTIMATOR` alone.

    Raises
    ------
    GraphuqError
        If the input cannot be used.
    """
    from graphuq.classifier.classifier import GraphClassifier
    from graphuq.classifier.stored.output import record_of_store, summary_of_store
    from graphuq.cli.columns import label_options
    from graphuq.cli.fitting import model_of_parts
    from graphuq.cli.label_files import read_labels_of_rows
    from graphuq.engine.cluster import dask_client
    from graphuq.engine.settings import Store

    facts = the_facts(given["quiet"])
    file, label_column = given["file"], given["label_column"]
    told = label_options(given["read_labels"], given["labels"])
    labels: Any = label_column if label_column else read_labels_of_rows(given["labels"], told)
    missing = given["missing_label"] or [None]
    require(len(missing) == 1, "--missing-label", f"{missing} beside --store", "give one text")
    special = [*([given["truth_column"]] if given["truth_column"] else []), *(given["drop"] or ())]
    options = given["given"]
    named = {name: options[name] for name in PASSED_ON if name in options}
    with dask_client(given["workers"], given["scheduler"]) as client:
        classifier = GraphClassifier(
            store=Store(given["store"], no_features=special),
            client=client,
            **named,
            model=model_of_parts(options),
            missing_label=missing[0],
            progress=not given["quiet"],
        )
        if not facts.quiet:
            if client is not None and client.dashboard_link:
                facts.progress(f"Dask's dashboard: {client.dashboard_link}")
            facts.progress(f"It needs {classifier.estimate(file, label_column)}.")
        classifier.fit(file, labels)
        files = classifier.to_parquet(given["output"])
        if facts.quiet and not facts.as_json:
            return
        summary, record = summary_of_store(classifier), record_of_store(classifier)
        facts.say("{summary}", **record, shown={"summary": summary})
        if given["truth_column"]:
            columns = [*([label_column] if label_column else []), *special]
            accuracy = _accuracy(file, given["truth_column"], columns, files)
            facts.say("Accuracy: {accuracy:.4f}.", accuracy=accuracy)
        shown = {"n": str(len(files))}
        facts.say("{n} files are in {output}.", output=given["output"], files=files, shown=shown)


def require_store(file: Path, workers: int | None, scheduler: str | None) -> None:
    """Refuse, without ``--store``, what needs it."""
    for name, value in (("--workers", workers), ("--scheduler", scheduler)):
        require(value is None, name, f"{value} without --store", "add --store FOLDER")
    require(
        not file.is_dir(),
        "file",
        f"'{file}' is a folder",
        "give a file, or add --store FOLDER for a folder of Parquet files",
    )


def _accuracy(file: Path, column: str, special: list[str], files: Iterable[Path]) -> float:
    """Return the share of rows with a true class whose label is that class."""
    from pyarrow import parquet

    from graphuq.engine.sources import open_source

    right = total = 0
    written = [path for path in files if path.suffix == ".parquet"]
    for block, path in zip(open_source(file, special).blocks, written, strict=True):
        rows, truth = block.texts(column)
        labels = np.array(parquet.read_table(path, columns=["label"]).column(0).to_pylist())[rows]
        right += int((labels.astype(str) == np.array(truth, dtype=str)).sum())
        total += len(rows)
    return right / max(total, 1)
