"""Options of files and tables, and those that several commands have of an estimator."""

from pathlib import Path
from typing import Annotated, Any

import typer

from graphuq.cli.generated import Options

# Headings that group the options in the help text.
INPUT, OUTPUT, LARGE = "Input", "Output and progress", "Large tables"
FEATURES, GRAPH = "Features", "Graph and Laplacian"
MODEL, SELECTION, SAMPLING = "Model", "Selection by evidence", "Sampling"


def option(metavar: str, help: str, panel: str, *names: str, default: str | None = None) -> Any:
    """Return an option with a value; ``default`` describes the value None in the help text."""
    shown: Any = True if default is None else default
    return typer.Option(
        *names, metavar=metavar, help=help, rich_help_panel=panel, show_default=shown
    )


def flag(name: str, help: str, panel: str) -> Any:
    """Return an option without a value."""
    return typer.Option(name, help=help, rich_help_panel=panel)


CLASSIFIER, REGRESSOR = (
    "classifier/classifier.py:GraphClassifier",
    "classifier/regressor/regressor.py:GraphRegressor",
)
OF_GRAPH = [
    "graph",
    "n_neighbors",
    "weights",
    "metric",
    "laplacian",
    "n_eigenpairs",
    "tail_eigenvalue",
]
OF_PARTS = Options("models/evidence.py:LargestEvidence", ["prior", "likelihood"], MODEL)
OF_SAMPLING = Options(
    "inference/mcmc.py:MCMC",
    ["n_samples", "n_chains", "n_warmup", "thin", "stop", "precision"],
    SAMPLING,
)
OF_REGRESSION = Options(
    "models/regression.py:Regression", ["prior", "noise_std", "field_std", "linear_std"], MODEL
)
OF_CLASSIFIER = (
    Options(CLASSIFIER, OF_GRAPH, GRAPH),
    Options(CLASSIFIER, ["model"], MODEL),
    OF_PARTS,
    Options(CLASSIFIER, ["max_classes", "out_of_sample"], MODEL),
    Options("classifier/search/search.py:EvidenceSearch", ["criterion"], SELECTION),
    Options(CLASSIFIER, ["inference", "random_state"], SAMPLING),
    OF_SAMPLING,
)
OF_REGRESSOR = (
    Options(REGRESSOR, OF_GRAPH, GRAPH),
    Options(REGRESSOR, ["model"], MODEL),
    OF_REGRESSION,
    Options(REGRESSOR, ["out_of_sample"], MODEL),
)

File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="CSV, TSV, Parquet, NPY, NPZ or H5AD; each row is a node."),
]
LabelColumn = Annotated[
    str | None,
    option(
        "COLUMN",
        "Column with the class of each labelled row. An empty cell means unlabelled.",
        INPUT,
    ),
]
Labels = Annotated[
    Path | None,
    option("FILE", "Second file with the columns id and label, instead of --label-column.", INPUT),
]
AnnotatorColumns = Annotated[
    str | None,
    option(
        "COLUMNS",
        "Columns with the labels of several annotators, as in ann,bob,cyd, instead of "
        "--label-column. How often each of them is right is learnt, and written to annotators.csv.",
        INPUT,
    ),
]
AnnotatorColumn = Annotated[
    str | None,
    option(
        "COLUMN",
        "Column of the file of --labels with the person who gave each label; a line for each label "
        "of each person. --label-column and --id-column then name columns of that file, too.",
        INPUT,
    ),
]
TagColumns = Annotated[
    str | None,
    option(
        "COLUMNS",
        "Columns of yes and no (1 and 0), one for each tag that a row may have, as in comedy,drama,"
        " instead of --label-column; or one column with the names of all tags of each row, with ; "
        "or | between them. An empty cell means unknown. What is found is in tags.csv, too.",
        INPUT,
    ),
]
MissingLabel = Annotated[
    list[str] | None,
    option(
        "TEXT",
        "Text that means unlabelled, and no other but an empty cell does. May be repeated.",
        INPUT,
        default="an empty cell, and words such as ?, NA, unknown, which are named",
    ),
]
IdColumn = Annotated[
    str | None,
    option(
        "COLUMN",
        "Column with the name of each row; beside a list of edges, or a graph, that of --labels "
        "with the name of each node.",
        INPUT,
        default="row numbers from 0; id of --labels",
    ),
]
TruthColumn = Annotated[
    str | None,
    option(
        "COLUMN", "Column with true classes. It is used to compute scores, never to fit.", INPUT
    ),
]
WeightColumn = Annotated[
    str | None,
    option(
        "COLUMN",
        "Column with the weight of each given label: a weight w divides the variance of its "
        "noise by w, and a label of weight 0 is not used.",
        INPUT,
        default="1 for each label",
    ),
]
ExposureColumn = Annotated[
    str | None,
    option(
        "COLUMN",
        "Column with the exposure of each row, for counts: how much was seen of it, such as "
        "people or years. It is above 0 in every row, also where the count is unknown.",
        INPUT,
        default="1 for each row",
    ),
]
Drop = Annotated[
    list[str] | None, option("COLUMN", "Column of FILE to ignore. May be repeated.", INPUT)
]
Edges = Annotated[
    str | None,
    option(
        "COLUMNS",
        "FILE is a list of edges: columns with both nodes of an edge and, if there is one, "
        "its weight, as in source,target,weight. Labels of nodes are given with --labels. Beside "
        "--graph EDGES.csv: columns of that file.",
        INPUT,
    ),
]
Symmetrize = Annotated[
    str | None,
    option(
        "RULE",
        "Edges of a list lead from the first node to the second: union, average, random-walk or "
        "shared-neighbors (graphuq.graphs.from_adjacency).",
        INPUT,
    ),
]
Groups = Annotated[
    bool,
    flag(
        "--groups",
        "The columns of --edges are a node and a group that it is in (a team, a thread, a basket), "
        "and nodes of a group are joined (graphuq.graphs.from_hyperedges).",
        INPUT,
    ),
]
NeighborsKey = Annotated[
    str | None,
    option(
        "KEY",
        "Neighbours of an H5AD file: the key_added of scanpy.pp.neighbors.",
        INPUT,
        default="neighbors",
    ),
]
UseRep = Annotated[
    str | None,
    option(
        "NAME", "Features of an H5AD file, X or an entry of obsm, instead of its neighbours.", INPUT
    ),
]
Output = Annotated[
    Path, option("FOLDER", "Folder for the files that are written.", OUTPUT, "--output", "-o")
]
Quiet = Annotated[bool, flag("--quiet", "Print no progress bar and no table.", OUTPUT)]
Format = Annotated[
    str,
    option("FORMAT", "Format of predictions: csv, parquet or one of yours.", OUTPUT, "--format"),
]
Resume = Annotated[
    bool, flag("--resume", "Continue an interrupted run of the same command.", OUTPUT)
]
Store = Annotated[
    Path | None,
    option(
        "FOLDER",
        "Work part by part, with all stages kept in this folder: for tables that do not fit in "
        "memory. FILE may then be a folder of Parquet files, and Parquet files are written.",
        LARGE,
    ),
]
Workers = Annotated[
    int | None,
    option(
        "NUMBER",
        "Processes of a local Dask cluster, with --store.",
        LARGE,
        default="threads, one a core",
    ),
]
Scheduler = Annotated[
    str | None,
    option("ADDRESS", "Scheduler of a Dask cluster, with --store, as in tcp://host:8786.", LARGE),
]
Encode = Annotated[
    bool,
    flag(
        "--encode",
        "Take columns of all kinds: numbers and dates are scaled, categories and booleans have a "
        "column for each value, and texts of four words or more a column for each frequent word "
        "(tf-idf). graphuq predict encodes new rows in the same way; an unknown category counts "
        "as none.",
        FEATURES,
    ),
]
Impute = Annotated[
    bool,
    flag(
        "--impute",
        "Fill empty cells with the median of the column, or the most frequent category, and add "
        "a column that says where cells were empty.",
        FEATURES,
    ),
]
Kind = Annotated[
    list[str] | None,
    option(
        "COLUMN=KIND",
        "Kind of a column for --encode: number, date, category or text, as in zip=category or "
        "'day=date %d/%m/%Y'. May be repeated.",
        FEATURES,
        default="found from the cells",
    ),
]
MissingValue = Annotated[
    list[str] | None,
    option(
        "TEXT",
        "Text that means an empty cell of a feature, such as '?', for --impute. May be repeated.",
        FEATURES,
        default="an empty cell, NA, NaN, null, None",
    ),
]
Read = Annotated[
    list[str] | None,
    option(
        "NAME=VALUE",
        "How FILE, if it is text, holds its table: separator (a character, tab or blank), "
        "encoding, decimal (. or ,), quote, header (0, 1 or 2 lines) and skip (lines before it), "
        "as in separator=';'. May be repeated.",
        INPUT,
        default="found from the file, and printed",
    ),
]
ReadLabels = Annotated[
    list[str] | None,
    option(
        "NAME=VALUE",
        "How the file of --labels holds its table, as --read says it of FILE.",
        INPUT,
        default="found from the file",
    ),
]
Scaling = Annotated[
    str,
    option(
        "NAME",
        "'standard' divides each column by its standard deviation: use it where columns have "
        "different units. 'none' takes columns as they are.",
        FEATURES,
    ),
]
Pca = Annotated[
    int | None,
    option("NUMBER", "Number of principal components to use instead of the columns.", FEATURES),
]
TargetColumn = Annotated[
    str,
    option("COLUMN", "Column with the number of each row. An empty cell means unknown.", INPUT),
]
MissingTarget = Annotated[
    list[str] | None,
    option(
        "TEXT",
        "Text that means unknown. May be repeated.",
        INPUT,
        "--missing-label",
        default="an empty cell, and words such as ?, NA, which are named",
    ),
]
Positive = Annotated[
    str | None,
    option(
        "CLASS",
        "The class coded as +1, where there are two classes.",
        MODEL,
        default="the last in sorted order",
    ),
]
Ordered = Annotated[
    bool,
    flag("--ordered", "The classes are grades: numbers, whose order is theirs.", MODEL),
]
ClassOrder = Annotated[
    str | None,
    option(
        "CLASSES",
        "The classes are grades with this order, from the lowest to the highest: low,mid,high.",
        MODEL,
        default="no order",
    ),
]
ClassProportions = Annotated[
    str | None,
    option(
        "SHARES",
        "Share of each class among the unlabelled rows: yes=0.4,no=0.6; or 'labels' for the "
        "shares of the labelled rows.",
        MODEL,
        default="not imposed",
    ),
]
Search = Annotated[
    list[str] | None,
    option(
        "NAME=VALUES",
        "Choose a parameter by the evidence: n_neighbors=2:60 (a range), "
        "weights__scale=0.1:10, prior__sigma=10,100,1000 (a list). May be repeated.",
        SELECTION,
    ),
]
