"""``graphuq classify``: a table with a few labels → predictions, posterior, report."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphuq.cli import options as opt
from graphuq.cli.facts import the_facts
from graphuq.cli.generated import with_options
from graphuq.errors import require
from graphuq.utils.output_folder import output_folder

if TYPE_CHECKING:
    import numpy as np

    from graphuq.classifier.classifier import GraphClassifier
    from graphuq.cli.edges import EdgeKind
    from graphuq.cli.tables import Table


@with_options(*opt.OF_CLASSIFIER)
def classify(
    file: opt.File,
    label_column: opt.LabelColumn = None,
    labels: opt.Labels = None,
    annotator_columns: opt.AnnotatorColumns = None,
    annotator_column: opt.AnnotatorColumn = None,
    tag_columns: opt.TagColumns = None,
    missing_label: opt.MissingLabel = None,
    id_column: opt.IdColumn = None,
    truth_column: opt.TruthColumn = None,
    weight_column: opt.WeightColumn = None,
    drop: opt.Drop = None,
    read: opt.Read = None,
    read_labels: opt.ReadLabels = None,
    encode: opt.Encode = False,
    impute: opt.Impute = False,
    kind: opt.Kind = None,
    missing_value: opt.MissingValue = None,
    edges: opt.Edges = None,
    symmetrize: opt.Symmetrize = None,
    groups: opt.Groups = False,
    neighbors_key: opt.NeighborsKey = None,
    use_rep: opt.UseRep = None,
    output: opt.Output = Path("out"),
    quiet: opt.Quiet = False,
    resume: opt.Resume = False,
    file_format: opt.Format = "csv",
    scaling: opt.Scaling = "none",
    pca: opt.Pca = None,
    positive: opt.Positive = None,
    ordered: opt.Ordered = False,
    class_order: opt.ClassOrder = None,
    class_proportions: opt.ClassProportions = None,
    search: opt.Search = None,
    *,
    given: dict[str, Any],
    store: opt.Store = None,
    workers: opt.Workers = None,
    scheduler: opt.Scheduler = None,
) -> None:
    """Infer the class of every row of FILE from a few labelled rows.

    The output folder receives predictions.csv (class and probability of each row), report.html
    and posterior.nc (for graphuq predict). --search adds search.csv, with all values tried. An
    H5AD file is written there too, with the types of its cells.

    Example: graphuq classify votes.csv --label-column label --scaling standard -o out

    FILE may be a graph in GraphML, GML or GEXF, whose nodes have the class as an attribute.
    --graph EDGES.csv is a graph of the rows, whose nodes have the names of --id-column.
    """
    all_given = dict(locals())
    from graphuq.cli import stored
    from graphuq.cli.annotators import annotators_from, check_annotator_column
    from graphuq.cli.class_order import check_order
    from graphuq.cli.columns import (
        check_format,
        label_options,
        refuse_others,
        require_one_source,
        weights_from,
    )
    from graphuq.cli.edges import EdgeKind, edge_files
    from graphuq.cli.fitting import check_options, classifier_options, fit_and_write
    from graphuq.cli.searching import parse_proportions, parse_search
    from graphuq.cli.unread import OF_FIT, require_unread
    from graphuq.graphs.graph_files import GRAPH_SUFFIXES

    check_format(file_format)
    if tag_columns is not None:
        from graphuq.cli import tags

        of_estimator = [name for name in given if name not in tags.UNUSED]
        refuse_others(classify, all_given, tags.USED, of_estimator, "--tag-columns")
        return tags.classify_tags(all_given)
    require(
        label_column is not None or labels is not None or annotator_columns is not None,
        "--label-column",
        "not given",
        "name the column with the known classes, or give --labels FILE",
    )
    is_long = annotator_column is not None
    told = label_options(read_labels, labels)
    lists = edge_files(str(given.get("graph", "")))
    files = {"FILE": file, "--labels": labels} | {f"--graph {path}": path for path in lists}
    if store is not None:
        require(not is_long, "--annotator-column", "given beside --store", "leave one of them out")
        require_one_source(label_column, labels)
        require_unread(files, output, "rows-*.parquet", "settings.json")
        refuse_others(classify, all_given, stored.USED, stored.USED_OF_ESTIMATOR, "--store")
        return stored.classify_in_store(all_given)
    stored.require_store(file, workers, scheduler)
    require_unread(files, output, *OF_FIT, *([file.name] if file.suffix.lower() == ".h5ad" else []))
    excluded = {"label_column": label_column, "labels": labels, "weight_column": weight_column,
                "search": search, "max_classes": given.get("max_classes"),
                "class_proportions": class_proportions}  # fmt: skip
    annotators = annotators_from(annotator_columns, excluded)
    check_annotator_column(annotator_column, labels, annotator_columns, excluded)
    beside = {"positive": positive, "search": search, "annotator_columns": annotator_columns,
              "annotator_column": annotator_column}  # fmt: skip
    has_order = check_order(ordered, class_order, beside)
    is_table = edges is None and file.suffix.lower() not in GRAPH_SUFFIXES
    if is_table and not is_long:
        require_one_source(label_column, labels)
    of_file = (
        label_column if (is_table and not is_long) or labels is None else None
    )  # or it is one of --labels
    node_options = {"label_column": of_file, "annotator_columns": annotators,
                    "id_column": id_column if is_table or labels is None else None,
                    "truth_column": truth_column, "weight_column": weight_column, "drop": drop,
                    "encode": encode, "impute": impute, "kind": kind,
                    "missing_value": missing_value, "scaling": scaling, "pca": pca, "read": read,
                    **{n: given.get(n) for n in ("n_neighbors", "weights", "metric")}}  # fmt: skip
    cell_options = {"neighbors_key": neighbors_key, "use_rep": use_rep}
    kind_of_edges = EdgeKind(symmetrize, groups)
    kind_of_edges.check(edges is not None or bool(lists))
    facts = the_facts(quiet)
    with output_folder(output):
        criterion = given.get("criterion")
        options = classifier_options(given)
        check_options(options, search, criterion)
        table, cells, options["graph"] = _read(
            file, edges, kind_of_edges, node_options, cell_options, options
        )
        facts.read(table.line, table.settings)
        if labels is not None and annotator_column is not None:
            from graphuq.cli.columns import without_missing
            from graphuq.cli.readings import read_readings

            of_labels = annotator_column, id_column, label_column, told
            annotators, labelled = read_readings(labels, table.ids, *of_labels)
            labelled = without_missing(labelled, missing_label or None)
        else:
            own = [] if id_column is None else [id_column]
            id_columns = own if own and not is_table else [*own, "id"]
            labelled = _given_labels(table, labels, missing_label, label_column, told, id_columns)
        require(
            weight_column is None or not search,
            "--weight-column",
            "given beside --search, which does not use it",
            "leave one of the two out",
        )
        fit_and_write(
            table,
            labelled,
            options,
            output,
            title=f"graphuq: {file.name}",
            positive=positive,
            ordered=has_order,
            class_order=class_order,
            scaling=scaling,
            pca=pca,
            search=parse_search(search),
            criterion="auto" if criterion is None else criterion,
            proportions=parse_proportions(class_proportions),
            weights=weights_from(
                table.weights, weight_column, labelled != "", table.settings.get("decimal")
            ),
            annotators=annotators,
            resume=resume,
            facts=facts,
            file_format=file_format,
            write_more=_writer_of(cells, labelled, label_column, file.name),
        )


def _writer_of(
    cells: Any, given: "np.ndarray", label_column: str | None, name: str
) -> "Callable[[GraphClassifier, Path], None] | None":
    """Return the function that writes cells of an H5AD file, if there are some, to a folder."""
    if cells is None:
        return None
    from graphuq.cli.cells import write_cells

    return lambda fitted, folder: write_cells(cells, fitted, given, label_column, folder / name)


def _read(
    file: Path,
    edges: str | None,
    kind_of_edges: "EdgeKind",
    nodes: Mapping[str, Any],
    cells: Mapping[str, Any],
    options: Mapping[str, Any],
) -> "tuple[Table, Any, Any]":
    """Return the table of a file of any kind, its cells if it has some, and the graph to make.

    Parameters
    ----------
    file : path
    edges : str or None
        Columns of a list of edges.
    kind_of_edges : EdgeKind
    nodes, cells : dict
        Options that concern columns and features of nodes, and cells of an H5AD file.
    options : dict
        Keyword arguments of the classifier.
    """
    from graphuq.cli.columns import read_options, refuse_given
    from graphuq.cli.edges import edge_files, graph_of_rows, read_edges
    from graphuq.cli.graph_files import read_graph_file
    from graphuq.graphs.graph_files import GRAPH_SUFFIXES

    if file.suffix.lower() == ".h5ad" and file.is_file():
        from graphuq.cli.cells import read_cells

        table, found = read_cells(file, nodes, **cells)
        return table, found, "precomputed" if cells["use_rep"] is None else options["graph"]
    refuse_given(cells, f"'{file.name}'", "leave it out, or give an H5AD file")
    lists = edge_files(options["graph"])
    if file.suffix.lower() in GRAPH_SUFFIXES:
        return read_graph_file(file, nodes), None, "precomputed"
    if edges is not None and not lists:
        return read_edges(file, edges, nodes, kind_of_edges), None, "precomputed"
    from graphuq.cli.encoding import encoder_from
    from graphuq.cli.fitting import require_features
    from graphuq.cli.tables import read_table

    given = [nodes[name] for name in ("encode", "impute", "kind", "missing_value", "scaling")]
    table = read_table(
        file,
        nodes["label_column"],
        nodes["id_column"],
        nodes["truth_column"],
        nodes["drop"] or (),
        weight_column=nodes["weight_column"],
        encoder=encoder_from(*given),
        annotator_columns=nodes["annotator_columns"],
        options=read_options(nodes["read"]),
    )
    if lists:
        return table, None, graph_of_rows(lists, edges, table.ids, kind_of_edges)
    require_features(table, options)
    return table, None, options["graph"]


def _given_labels(
    table: "Table",
    labels: Path | None,
    missing_label: list[str] | None,
    label_column: str | None,
    told: Mapping[str, str],
    id_columns: list[str],
) -> "np.ndarray":
    """Return the class of each labelled row, or by each annotator, empty where unlabelled."""
    from graphuq.cli.columns import without_missing
    from graphuq.cli.label_files import read_labels

    in_table = table.labels if table.annotations is None else table.annotations
    given = in_table
    if labels is not None:
        names = table.feature_names if table.encoder is None else table.encoder.kinds_
        given = read_labels(labels, table.ids, label_column, told, list(names), id_columns)
    assert given is not None  # one of the two sources is required
    return without_missing(given, missing_label or None)
