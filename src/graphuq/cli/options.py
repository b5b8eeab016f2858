"""Options of ``graphuq classify``: type, help text and heading of each."""

from pathlib import Path
from typing import Annotated

import typer

# Headings that group the options in the help text.
INPUT, OUTPUT = "Input", "Output and progress"
FEATURES, GRAPH = "Features", "Graph and Laplacian"
MODEL, SELECTION, SAMPLING = "Model", "Selection by evidence", "Sampling"

File = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="CSV, Parquet, NPY, NPZ or H5AD file; each row is a node."),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the class of each labelled row. An empty cell means unlabelled.",
        rich_help_panel=INPUT,
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Second file with the columns id and label, instead of --label-column.",
        rich_help_panel=INPUT,
    ),
]
MissingLabel = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="Text that means unlabelled, such as '?'. May be repeated.",
        rich_help_panel=INPUT,
        show_default="an empty cell",
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the name of each row.",
        rich_help_panel=INPUT,
        show_default="row numbers from 0",
    ),
]
TruthColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with true classes. It is used to compute scores, never to fit.",
        rich_help_panel=INPUT,
    ),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the weight of each given label: a weight w divides the variance of its "
        "noise by w, and a label of weight 0 is not used.",
        rich_help_panel=INPUT,
        show_default="1 for each label",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of FILE to ignore. May be repeated.",
        rich_help_panel=INPUT,
    ),
]
Edges = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="FILE is a list of edges: columns with both nodes of an edge and, if there is one, "
        "its weight, as in source,target,weight. Labels of nodes are given with --labels.",
        rich_help_panel=INPUT,
    ),
]
NeighborsKey = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        help="Neighbours of an H5AD file: the key_added of scanpy.pp.neighbors.",
        rich_help_panel=INPUT,
        show_default="neighbors",
    ),
]
UseRep = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Features of an H5AD file, X or an entry of obsm, instead of its neighbours.",
        rich_help_panel=INPUT,
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FOLDER",
        help="Folder for the files that are written.",
        rich_help_panel=OUTPUT,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        help="Print no progress bar and no table.",
        rich_help_panel=OUTPUT,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue an interrupted run of the same command.",
        rich_help_panel=OUTPUT,
    ),
]
Scaling = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="'standard' divides each column by its standard deviation: use it where columns "
        "have different units. 'none' takes columns as they are.",
        rich_help_panel=FEATURES,
    ),
]
Pca = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        help="Number of principal components to use instead of the columns.",
        rich_help_panel=FEATURES,
    ),
]
Graph = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="knn, complete, epsilon, or precomputed (FILE holds the edge weights).",
        rich_help_panel=GRAPH,
    ),
]
NNeighbors = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        help="Neighbours of each node.",
        rich_help_panel=GRAPH,
        show_default="15; 10 with --graph complete",
    ),
]
Weights = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Edge weights: auto, self-tuning, gaussian, unweighted or cosine.",
        rich_help_panel=GRAPH,
    ),
]
Scale = Annotated[
    float | None,
    typer.Option(
        metavar="LENGTH",
        help="Length scale of gaussian weights, in units of the features.",
        rich_help_panel=GRAPH,
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="euclidean, cosine, or precomputed (FILE holds all pairwise distances).",
        rich_help_panel=GRAPH,
        show_default="that of the weights",
    ),
]
Radius = Annotated[
    float | None,
    typer.Option(
        metavar="LENGTH",
        help="Largest distance of connected nodes, for --graph epsilon.",
        rich_help_panel=GRAPH,
    ),
]
Laplacian = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="symmetric, unnormalized or random-walk.",
        rich_help_panel=GRAPH,
    ),
]
NEigenpairs = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="Number of Laplacian eigenpairs, 'all', or 'auto' (chosen by evidence).",
        rich_help_panel=GRAPH,
        show_default="150",
    ),
]
TailEigenvalue = Annotated[
    str,
    typer.Option(
        metavar="VALUE",
        help="Value for all eigenvalues that are not computed: none (leave them out), last "
        "(the largest computed one), mean, or a number.",
        rich_help_panel=GRAPH,
    ),
]
Prior = Annotated[
    str,
    typer.Option(
        metavar="PRIOR",
        help="auto (Matérn, chosen by evidence), matern, inverse-laplacian, "
        "regularized-laplacian, or a Python expression: 'Matern(tau=LogUniform(0.02, 3))' "
        "samples τ too.",
        rich_help_panel=MODEL,
    ),
]
Likelihood = Annotated[
    str,
    typer.Option(
        metavar="LIKELIHOOD",
        help="auto (probit), probit, softmax, "
        "logistic, gaussian, level-set, atomic-noise, noise-free, ginzburg-landau, or a "
        "Python expression: 'Probit(noise_std=0.2)'.",
        rich_help_panel=MODEL,
    ),
]
NoiseStd = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="Noise level γ > 0 of the labels.",
        rich_help_panel=MODEL,
        show_default="0.1; chosen by evidence with --likelihood auto",
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        metavar="CLASS",
        help="The class coded as +1, where there are two classes.",
        rich_help_panel=MODEL,
        show_default="the last in sorted order",
    ),
]
MaxClasses = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        help="Largest number of classes, to allow for classes without labelled rows.",
        rich_help_panel=MODEL,
        show_default="the number of labelled classes",
    ),
]
ClassProportions = Annotated[
    str | None,
    typer.Option(
        metavar="SHARES",
        help="Share of each class among the unlabelled rows: yes=0.4,no=0.6; or 'labels' for "
        "the shares of the labelled rows.",
        rich_help_panel=MODEL,
        show_default="not imposed",
    ),
]
OutOfSample = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="How graphuq predict treats new rows: mean or combination (of their "
        "neighbours), or nearest.",
        rich_help_panel=MODEL,
    ),
]
Search = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUES",
        help="Choose a parameter by the evidence: n_neighbors=2:60 (a range), "
        "weights__scale=0.1:10, prior__sigma=10,100,1000 (a list). May be repeated.",
        rich_help_panel=SELECTION,
    ),
]
Criterion = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What --search maximises: auto, laplace, expectation-propagation or alignment.",
        rich_help_panel=SELECTION,
        show_default="auto",
    ),
]
Inference = Annotated[
    str,
    typer.Option(
        metavar="METHOD",
        help="auto, expectation-propagation (fast approximation without chains), laplace, "
        "map (a point estimate without uncertainty), hamiltonian, exact-hamiltonian, "
        "reflective-hamiltonian, tempered-hamiltonian, elliptical-slice, pcn, or a Python "
        "expression: 'MetropolisWithinGibbs(PCN())'.",
        rich_help_panel=SAMPLING,
    ),
]
NSamples = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        help="Largest number of kept draws of each chain. Sampling stops once converged.",
        rich_help_panel=SAMPLING,
        show_default="4000",
    ),
]
NChains = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        help="Number of chains.",
        rich_help_panel=SAMPLING,
        show_default="4 to 32, chosen by the sampler",
    ),
]
NWarmup = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        help="Warm-up steps, which are discarded.",
        rich_help_panel=SAMPLING,
        show_default="chosen by the sampler",
    ),
]
Thin = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        help="Steps for each kept draw.",
        rich_help_panel=SAMPLING,
        show_default="chosen by the sampler",
    ),
]
FixedLength = Annotated[
    bool,
    typer.Option(
        "--fixed-length",
        help="Always draw --n-samples draws; do not stop at convergence.",
        rich_help_panel=SAMPLING,
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Floating-point type of the chains: float32 or float64.",
        rich_help_panel=SAMPLING,
        show_default="float32",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        metavar="NUMBER",
        help="Random seed. The same seed gives the same result.",
        rich_help_panel=SAMPLING,
    ),
]
