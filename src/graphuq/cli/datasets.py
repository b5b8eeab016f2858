"""``graphuq datasets``: list the data sets, find their files, write them as CSV files."""

from pathlib import Path
from typing import Annotated

import typer

from graphuq.cli.facts import the_facts
from graphuq.errors import require
from graphuq.utils.files import check_writable

NAMES = {
    "digits": "1,797 digits of 8×8 pixels; comes with scikit-learn",
    "two-moons": "two noisy half circles in 100 dimensions; generated",
    "voting": "435 members of the U.S. House, 16 votes of 1984; voting/house-votes-84.data",
    "mnist": "70,000 digits of 28×28 pixels; mnist/*.gz",
    "newsgroups": "5,296 posts to six groups; newsgroups/*.tar.xz",
}


def datasets(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help=f"One of {', '.join(NAMES)}.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the data set to this CSV file.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=COUNT",
            help="Label this many random rows of a class, as in democrat=3. May be repeated.",
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder with data files.",
            show_default="the environment variable GRAPHUQ_DATA",
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="CLASSES", help="Classes to keep, as in 4,9.", show_default="all classes"
        ),
    ] = None,
    n_each: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Largest number of rows of each class.", show_default="all rows"
        ),
    ] = None,
    random_state: Annotated[
        int, typer.Option(metavar="NUMBER", help="Random seed of --label and --n-each.")
    ] = 0,
) -> None:
    """List the data sets, or describe the data set NAME and write it as a CSV file.

    The CSV file has the columns id, class (the true class), label (the labels that --label asks
    for), then the features.
    """
    from graphuq.cli.export import keep_classes, load, where, write

    facts = the_facts()
    if name is None:
        rows = [{"name": known, "description": words, "where": where(known, folder)}
                for known, words in NAMES.items()]  # fmt: skip
        facts.each(f"{{name:12}} {{description}}\n{'':12} {{where}}", datasets=rows)
        facts.say(
            "\n{note}",
            note="Files are read from --folder or $GRAPHUQ_DATA. Missing files are downloaded and "
            "checked.",
        )
        return
    require(name in NAMES, "NAME", f"{name!r} is unknown", f"use one of {', '.join(NAMES)}")
    require(csv is not None or not label, "--label", f"{label} without --csv", "add --csv FILE")
    if csv is not None:
        check_writable(csv.parent)
    data = load(name, folder)
    if classes is not None or n_each is not None:
        data = keep_classes(
            data, None if classes is None else classes.split(","), n_each, random_state
        )
    n_rows, n_features = data.features.shape
    facts.say(
        "{name}: {n_rows} rows, {n_features} features",
        name=data.name,
        n_rows=n_rows,
        n_features=n_features,
    )
    facts.say("source: {source}; {where}", source=data.source, where=where(name, folder))
    if csv is not None:
        write(data, label or [], csv, random_state)
        facts.say("written to {files[0]}", files=[csv])
