"""``graphuq predict``: new rows, without a new fit."""

from pathlib import Path
from typing import Annotated

import typer

from graphuq.errors import require
from graphuq.utils.files import atomic_write, check_writable


def predict(
    posterior: Annotated[Path, typer.Argument(help="posterior.nc of graphuq classify.")],
    file: Annotated[Path, typer.Argument(help="CSV, Parquet or NPZ file of new rows.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV file to write.")] = Path(
        "new_predictions.csv"
    ),
    id_column: Annotated[str | None, typer.Option(help="Column that names the rows.")] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Column that is no feature (may be repeated).")
    ] = None,
) -> None:
    """Infer labels of rows that were not in the graph, from a stored posterior."""
    check_writable(output.parent)
    from graphuq.classifier.classifier import GraphClassifier
    from graphuq.cli.fitting import prediction_table
    from graphuq.cli.preprocessing import Preprocessing
    from graphuq.cli.tables import read_table, write_csv
    from graphuq.results.storage import read_tree

    classifier = GraphClassifier.load(posterior)
    table = read_table(file, id_column=id_column, dropped=drop or [])
    features = table.features
    tree = read_tree(posterior)
    if "preprocessing" in tree.children:
        features = Preprocessing.from_dataset(tree["preprocessing"].to_dataset())(features)
    require(
        features.shape[1] == classifier.n_features_in_,
        "file",
        f"{features.shape[1]} feature columns",
        f"the fit had {classifier.n_features_in_}; see --drop",
    )
    mean = classifier.predict_summaries(features).label_mean
    names = [str(name) for name in classifier.classes_]
    interval = classifier.predict_interval(features, 0.95) if mean.ndim == 1 else None
    predictions = prediction_table(table.ids, names, mean, interval)
    with atomic_write(output) as temporary:
        write_csv(predictions, temporary)
    print(f"{len(mean)} rows → {output}")
