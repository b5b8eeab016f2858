"""``graphuq predict``: classes or numbers of new rows by a stored posterior, without a fit."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphuq.cli import options as opt
from graphuq.cli.facts import the_facts
from graphuq.errors import require
from graphuq.utils.files import check_writable


def predict(
    posterior: Annotated[
        Path,
        typer.Argument(metavar="POSTERIOR", help="File posterior.nc of classify or regress."),
    ],
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="CSV, Parquet, NPY or NPZ file with the new rows."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="CSV or Parquet file to write.")
    ] = Path("new_predictions.csv"),
    id_column: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column with the name of each row.",
            show_default="row numbers from 0",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column of FILE to ignore. May be repeated."),
    ] = None,
    read: opt.Read = None,
    exposure_column: opt.ExposureColumn = None,
) -> None:
    """Predict new rows, which are not in the graph, with a stored posterior.

    A CSV or Parquet FILE needs the feature columns of the fit, by name; their order does not
    matter, and other columns are ignored. An NPY or NPZ file needs them in the same order. For
    numbers, std, lower and upper are for a new measurement, and intervals hold 90 %.
    """
    check_writable(output.parent)
    from graphuq.classifier.classifier import GraphClassifier
    from graphuq.classifier.multilabel.classifier import MultilabelClassifier
    from graphuq.classifier.multilabel.saving import is_of_tags, tags_from
    from graphuq.classifier.regressor.answers import columns_of_rows
    from graphuq.classifier.regressor.regressor import GraphRegressor
    from graphuq.cli.columns import exposures_from, read_options
    from graphuq.cli.preprocessing import restored
    from graphuq.cli.tables import read_table
    from graphuq.cli.unread import require_unread
    from graphuq.results.formats import format_of
    from graphuq.results.storage import read_tree
    from graphuq.results.table import frame_of, write_table
    from graphuq.utils.gate import reading

    require_unread({"POSTERIOR": posterior, "FILE": file}, output)
    format_of(output, "--output")  # raise for an unknown suffix before any work
    tree = read_tree(posterior)
    numbers = "regressor" in tree.children
    estimator: Any
    if is_of_tags(tree):
        estimator = tags_from(MultilabelClassifier, tree, posterior)
    else:
        estimator = (GraphRegressor if numbers else GraphClassifier).load(posterior)
    takes_exposure = numbers and estimator.model_.takes_exposure
    require(
        exposure_column is None or takes_exposure,
        "--exposure-column",
        "given, but the fit has no counts",
        "leave it out",
    )
    require(
        exposure_column is not None or not numbers or estimator.exposure_ is None,
        "--exposure-column",
        "none, and counts of the fit have exposures",
        "name the column with the exposure of each row",
    )
    with reading(posterior, "result"):
        columns, encoder, preprocessing = restored(tree)
    table = read_table(
        file,
        id_column=id_column,
        dropped=drop or [],
        weight_column=exposure_column,
        feature_columns=columns,
        encoder=encoder,
        options=read_options(read),
    )
    facts = the_facts()
    facts.read(table.line, table.settings)
    features = table.features
    if preprocessing is not None:
        features = preprocessing(features)
    if features.shape[1] == len(table.feature_names):  # no principal components
        names = table.feature_names if encoder is None else encoder.names_of_columns()
        for one in getattr(estimator, "estimators_", [estimator]):
            one._names_of_columns = names  # for warnings
    require(
        features.shape[1] == estimator.n_features_in_,
        "file",
        f"{features.shape[1]} feature columns",
        f"give the {estimator.n_features_in_} columns of the fit; name the others with --drop",
    )
    if numbers:
        seen = exposures_from(table.weights, exposure_column, table.settings.get("decimal"))
        predictions = frame_of(columns_of_rows(estimator, features, table.ids, seen))
    else:
        predictions = estimator.predict_table(features, table.ids)
    write_table(predictions, output)
    facts.say("{n_rows} rows → {files[0]}", n_rows=len(predictions), files=[output])
