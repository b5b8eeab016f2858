"""``graphuq classify``: a table with a few labels → predictions, posterior, report."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphuq.errors import InvalidInput, require
from graphuq.files import check_writable

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from graphuq.classifier import GraphClassifier
    from graphuq.cli.tables import Table

CHECKPOINT = ".checkpoint.npz"


def classify(
    file: Annotated[Path, typer.Argument(help="CSV, Parquet or NPZ file: one row a node.")],
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
        str | None, typer.Option(help="Class that counts as +1; default the last by name.")
    ] = None,
    scaling: Annotated[str, typer.Option(help="Columns: none, or standard (unit deviation).")] = (
        "none"
    ),
    pca: Annotated[int | None, typer.Option(help="Keep so many principal components.")] = None,
    graph: Annotated[str, typer.Option(help="knn, complete or precomputed.")] = "knn",
    n_neighbors: Annotated[
        int | None, typer.Option(help="Neighbours a node; default 20 (10 if complete).")
    ] = None,
    weights: Annotated[
        str, typer.Option(help="self-tuning, gaussian, unweighted or cosine.")
    ] = "self-tuning",
    scale: Annotated[float | None, typer.Option(help="Length of gaussian weights.")] = None,
    laplacian: Annotated[
        str, typer.Option(help="symmetric, unnormalized or random-walk.")
    ] = "symmetric",
    n_eigenpairs: Annotated[
        str | None, typer.Option(help="Eigenpairs kept, or 'all'; default 150.")
    ] = None,
    tail: Annotated[
        str, typer.Option(help="The rest: none, last (eigenvalue), mean, or a number.")
    ] = "none",
    likelihood: Annotated[str, typer.Option(help="probit or level-set.")] = "probit",
    noise_std: Annotated[float, typer.Option(help="Label noise γ > 0.")] = 0.1,
    n_samples: Annotated[int, typer.Option(help="Most kept draws a chain.")] = 4000,
    n_chains: Annotated[int, typer.Option(help="Chains.")] = 8,
    n_warmup: Annotated[int, typer.Option(help="Warm-up steps.")] = 2000,
    thin: Annotated[int, typer.Option(help="Steps a kept draw.")] = 50,
    fixed_length: Annotated[
        bool, typer.Option(help="Draw all samples, also when converged before.")
    ] = False,
    precision: Annotated[str, typer.Option(help="float64 or float32.")] = "float64",
    seed: Annotated[int, typer.Option(help="Same seed, same answer.")] = 0,
    resume: Annotated[bool, typer.Option(help="Go on with an interrupted run.")] = False,
    quiet: Annotated[bool, typer.Option(help="No progress bar, no table.")] = False,
) -> None:
    """Infer every label of FILE from the few that are given, with its uncertainty.

    Writes predictions.csv, posterior.nc and report.html into the output folder.
    """
    from graphuq.cli.tables import read_labels, read_table

    require(
        (label_column is None) != (labels is None),
        "--label-column",
        "labels come from one place",
        "give either --label-column NAME or --labels FILE",
    )
    check_writable(output)
    options = {
        "graph": graph,
        "n_neighbors": "auto" if n_neighbors is None else n_neighbors,
        "weights": weights,
        "scale": scale,
        "laplacian": laplacian,
        "tail": parse_tail(tail),
        "likelihood": parse_likelihood(likelihood, noise_std),
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
        resume=resume,
        quiet=quiet,
    )


def fit_and_write(
    table: "Table",
    given: "np.ndarray",
    options: dict,
    output: Path,
    *,
    title: str,
    positive: str | None = None,
    scaling: str = "none",
    pca: int | None = None,
    image_shape: tuple[int, int] | None = None,
    resume: bool = False,
    quiet: bool = False,
) -> "GraphClassifier":
    """Fit a classifier to a table and write the three files, all or none."""
    import numpy as np

    from graphuq.classifier import GraphClassifier
    from graphuq.cli.preprocessing import fit_preprocessing
    from graphuq.cli.progress import progress_bar
    from graphuq.report import write_report

    names = class_names(given, positive)
    codes = np.where(given == "", np.nan, np.where(given == names[1], 1.0, 0.0))
    features = table.features
    preprocessing = None
    if options["graph"] != "precomputed":
        preprocessing = fit_preprocessing(features, scaling, pca)
        if preprocessing is not None:
            features = preprocessing(features)
    checkpoint = output / CHECKPOINT
    if not resume:
        checkpoint.unlink(missing_ok=True)
    with progress_bar(not quiet) as progress:
        classifier = GraphClassifier(
            **options, missing_label=None, progress=progress, checkpoint=checkpoint
        ).fit(features, codes)
    classifier.classes_ = np.array(names)
    result = classifier.result_
    truth = None
    if table.truth is not None:
        truth = np.where(table.truth == "", np.nan, np.where(table.truth == names[1], 1.0, -1.0))
    images = None
    if image_shape is not None:
        images = table.features.reshape(-1, *image_shape)
    with _all_or_none(output) as folder:
        predictions = prediction_table(
            table.ids, names, result.label_mean, result.credible_interval(0.95)
        )
        predictions["monte_carlo_error"] = result.label_mcse
        predictions["given_label"] = given
        predictions["has_evidence"] = result.has_evidence
        predictions.to_csv(folder / "predictions.csv", index=False, float_format="%.6g")
        extra = {} if preprocessing is None else {"preprocessing": preprocessing.to_dataset()}
        classifier.save(folder / "posterior.nc", extra)
        write_report(
            result,
            folder / "report.html",
            title=title,
            class_names=names,
            ids=table.ids,
            truth=truth,
            images=images,
        )
    checkpoint.unlink(missing_ok=True)
    if not quiet:
        from graphuq.cli.summary import print_summary

        print_summary(result, names, truth, output)
    return classifier


def prediction_table(
    ids: "np.ndarray", names: tuple[str, str], label_mean: "np.ndarray", interval: "np.ndarray"
) -> "pd.DataFrame":
    """The table of ``predictions.csv``; rank 1 is the least certain node."""
    import numpy as np
    import pandas as pd

    from graphuq.result import certainty_order

    rank = np.empty(len(ids), dtype=int)
    rank[certainty_order(label_mean)] = np.arange(1, len(ids) + 1)
    return pd.DataFrame(
        {
            "id": ids,
            "label": np.where(label_mean >= 0, names[1], names[0]),
            "probability": (1 + np.abs(label_mean)) / 2,
            "label_mean": label_mean,
            "label_variance": 1 - label_mean**2,
            "latent_lower": interval[:, 0],
            "latent_upper": interval[:, 1],
            "uncertainty_rank": rank,
        }
    )


def class_names(given: "np.ndarray", positive: str | None) -> tuple[str, str]:
    """Names of the classes −1 and +1."""
    classes = sorted(set(given.tolist()) - {""})
    require(len(classes) > 0, "labels", "no row has a label", "label some rows of each class")
    require(
        len(classes) > 1, "labels", f"only the class {classes}", "label rows of a second class too"
    )
    require(
        len(classes) == 2,
        "labels",
        f"{len(classes)} classes: {classes[:5]}",
        "keep two (several classes are not supported yet)",
    )
    if positive is None:
        return classes[0], classes[1]
    require(positive in classes, "--positive", f"no row is labelled '{positive}'", f"use {classes}")
    return next(c for c in classes if c != positive), positive


def parse_tail(tail: str) -> bool | float | str:
    """Turn the text of ``--tail`` into what `laplacian_spectrum` takes."""
    words: dict[str, bool | str] = {"none": False, "last": True, "mean": "mean"}
    if tail in words:
        return words[tail]
    with contextlib.suppress(ValueError):
        return float(tail)
    raise InvalidInput("--tail", f"{tail!r} is unknown", "use none, last, mean or a number")


def parse_n_eigenpairs(text: str | None, n_nodes: int) -> int | None:
    """Turn the text of ``--n-eigenpairs`` into a number."""
    if text is None:
        return None
    if text == "all":
        return n_nodes
    require(text.isdigit(), "--n-eigenpairs", f"{text!r}", "give a whole number or 'all'")
    return int(text)


def parse_likelihood(name: str, noise_std: float) -> object:
    """The likelihood of a name and a noise level."""
    from graphuq.classifier import LIKELIHOODS

    require(
        name in LIKELIHOODS,
        "--likelihood",
        f"{name!r} is unknown",
        f"use one of {', '.join(LIKELIHOODS)}",
    )
    return LIKELIHOODS[name](noise_std=noise_std)  # type: ignore[call-arg]


@contextlib.contextmanager
def _all_or_none(output: Path) -> Iterator[Path]:
    """Yield a folder whose files move to ``output`` once the block ends without an error."""
    folder = Path(tempfile.mkdtemp(dir=output, prefix=".writing-"))
    try:
        yield folder
        for path in sorted(folder.iterdir()):
            path.replace(output / path.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
