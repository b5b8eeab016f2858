"""``graphuq classify``: a table with a few labels → predictions, posterior, report."""

import contextlib
from pathlib import Path
from typing import Annotated, Any

import typer

from graphuq.errors import InvalidInput, require
from graphuq.utils.files import check_writable


def classify(
    file: Annotated[Path, typer.Argument(help="CSV, Parquet, NPY or NPZ file: one row a node.")],
    label_column: Annotated[
        str | None, typer.Option(help="Column of labels; empty means unlabelled.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Second file with columns id,label, instead.")
    ] = None,
    id_column: Annotated[str | None, typer.Option(help="Column that names the rows.")] = None,
    truth_column: Annotated[
        str | None, typer.Option(help="Column of true classes, used to score only.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path(
        "out"
    ),
    positive: Annotated[
        str | None, typer.Option(help="Of two classes, that which counts as +1; default the last.")
    ] = None,
    scaling: Annotated[str, typer.Option(help="Columns: none, or standard (unit deviation).")] = (
        "none"
    ),
    pca: Annotated[int | None, typer.Option(help="Keep so many principal components.")] = None,
    graph: Annotated[str, typer.Option(help="knn, complete, epsilon or precomputed.")] = "knn",
    n_neighbors: Annotated[
        int | None, typer.Option(help="Neighbours a node; default 15 (10 if complete).")
    ] = None,
    weights: Annotated[
        str, typer.Option(help="auto, self-tuning, gaussian, unweighted or cosine.")
    ] = "auto",
    scale: Annotated[float | None, typer.Option(help="Length of gaussian weights.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="euclidean, cosine, or precomputed (FILE holds distances).")
    ] = None,
    radius: Annotated[float | None, typer.Option(help="ε of graph epsilon.")] = None,
    laplacian: Annotated[
        str, typer.Option(help="symmetric, unnormalized or random-walk.")
    ] = "symmetric",
    n_eigenpairs: Annotated[
        str | None, typer.Option(help="Eigenpairs kept, 'all' or 'auto'; default 150.")
    ] = None,
    tail: Annotated[
        str, typer.Option(help="The rest: none, last (eigenvalue), mean, or a number.")
    ] = "none",
    prior: Annotated[
        str,
        typer.Option(
            help="auto (by evidence), matern, inverse-laplacian, regularized-laplacian, or as in "
            "Python: "
            "'Matern(tau=LogUniform(0.02, 3))' learns τ."
        ),
    ] = "auto",
    likelihood: Annotated[
        str,
        typer.Option(
            help="auto, probit, softmax, logistic, gaussian, level-set, atomic-noise, noise-free, "
            "ginzburg-landau, or as in Python."
        ),
    ] = "auto",
    max_classes: Annotated[
        int | None, typer.Option(help="Classes there may be, those without a label included.")
    ] = None,
    noise_std: Annotated[
        float | None, typer.Option(help="Label noise γ > 0; default 0.1, or by evidence if auto.")
    ] = None,
    inference: Annotated[
        str,
        typer.Option(
            help="auto, expectation-propagation (at once), hamiltonian, exact-hamiltonian, "
            "reflective-hamiltonian, tempered-hamiltonian, elliptical-slice, pcn, laplace, map (a "
            "point, no uncertainty), or as in Python: 'MetropolisWithinGibbs(PCN())'."
        ),
    ] = "auto",
    search: Annotated[
        list[str] | None,
        typer.Option(
            help="Choose by evidence, NAME=VALUES (may be repeated): n_neighbors=2:60, "
            "weights__scale=0.1:10, prior__sigma=10,100,1000."
        ),
    ] = None,
    criterion: Annotated[
        str, typer.Option(help="Of --search: auto, laplace, expectation-propagation, alignment.")
    ] = "auto",
    proportions: Annotated[
        str | None, typer.Option(help="Of the classes: labels, or as in yes=0.4,no=0.6.")
    ] = None,
    out_of_sample: Annotated[
        str, typer.Option(help="Rows outside the graph: mean, nearest or combination.")
    ] = "mean",
    n_samples: Annotated[int, typer.Option(help="Most kept draws a chain.")] = 4000,
    n_chains: Annotated[int | None, typer.Option(help="Chains; default 4 to 32.")] = None,
    n_warmup: Annotated[int | None, typer.Option(help="Warm-up steps; default by sampler.")] = None,
    thin: Annotated[int | None, typer.Option(help="Steps a kept draw; default by sampler.")] = None,
    fixed_length: Annotated[
        bool, typer.Option(help="Draw all samples, also when converged before.")
    ] = False,
    precision: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    seed: Annotated[int, typer.Option(help="Same seed, same answer.")] = 0,
    resume: Annotated[bool, typer.Option(help="Go on with an interrupted run.")] = False,
    quiet: Annotated[bool, typer.Option(help="No progress bar, no table.")] = False,
) -> None:
    """Infer every label of FILE from the few that are given, with its uncertainty.

    Writes predictions.csv, posterior.nc and report.html into the output folder, and with --search
    what was tried into search.csv.
    """
    from graphuq.cli.fitting import fit_and_write, parse_likelihood
    from graphuq.cli.searching import parse_proportions, parse_search
    from graphuq.cli.tables import read_labels, read_table

    require(
        (label_column is None) != (labels is None),
        "--label-column",
        "labels come from one place",
        "give either --label-column NAME or --labels FILE",
    )
    check_writable(output)
    options: dict[str, Any] = {
        "graph": graph,
        "n_neighbors": "auto" if n_neighbors is None else n_neighbors,
        "weights": weights,
        "scale": scale,
        "metric": metric,
        "radius": radius,
        "out_of_sample": out_of_sample,
        "laplacian": laplacian,
        "tail_eigenvalue": parse_tail(tail),
        "prior": prior,
        "max_classes": max_classes,
        "inference": inference,
        "n_samples": n_samples,
        "n_chains": n_chains,
        "n_warmup": n_warmup,
        "thin": thin,
        "until_converged": not fixed_length,
        "precision": precision,
        "random_state": seed,
    }
    table = read_table(file, label_column, id_column, truth_column)
    given = read_labels(labels, table.ids) if labels is not None else table.labels
    assert given is not None  # one of the two ways was demanded
    several = len(set(given.tolist()) - {""}) > 2
    options["likelihood"] = parse_likelihood(likelihood, noise_std, several)
    options["n_eigenpairs"] = parse_n_eigenpairs(n_eigenpairs, table.features.shape[0])
    fit_and_write(
        table,
        given,
        options,
        output,
        title=f"graphuq: {file.name}",
        positive=positive,
        scaling=scaling,
        pca=pca,
        search=parse_search(search),
        criterion=criterion,
        proportions=parse_proportions(proportions),
        resume=resume,
        quiet=quiet,
    )


def parse_tail(tail: str) -> bool | float | str:
    """Turn the text of ``--tail`` into what `laplacian_spectrum` takes."""
    words: dict[str, bool | str] = {"none": False, "last": True, "mean": "mean"}
    if tail in words:
        return words[tail]
    with contextlib.suppress(ValueError):
        return float(tail)
    raise InvalidInput("--tail", f"{tail!r} is unknown", "use none, last, mean or a number")


def parse_n_eigenpairs(text: str | None, n_nodes: int) -> int | str | None:
    """Turn the text of ``--n-eigenpairs`` into a number."""
    if text is None or text == "auto":
        return text
    if text == "all":
        return n_nodes
    require(text.isdigit(), "--n-eigenpairs", f"{text!r}", "give a whole number, 'all' or 'auto'")
    return int(text)
