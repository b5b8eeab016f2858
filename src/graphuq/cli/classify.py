"""``graphuq classify``: a table with a few labels → predictions, posterior, report."""

import contextlib
from pathlib import Path
from typing import Any

from graphuq.cli import options as opt
from graphuq.errors import InvalidInput, require
from graphuq.utils.output_folder import output_folder

OLD_OPTIONS = {
    "--most-classes": "--max-classes",
    "--outside": "--out-of-sample",
    "--proportions": "--class-proportions",
    "--tail": "--tail-eigenvalue",
}
"""New spelling of each renamed option; the old ones work for one release, with a warning."""


def classify(
    file: opt.File,
    label_column: opt.LabelColumn = None,
    labels: opt.Labels = None,
    missing_label: opt.MissingLabel = None,
    id_column: opt.IdColumn = None,
    truth_column: opt.TruthColumn = None,
    weight_column: opt.WeightColumn = None,
    drop: opt.Drop = None,
    edges: opt.Edges = None,
    neighbors_key: opt.NeighborsKey = None,
    use_rep: opt.UseRep = None,
    output: opt.Output = Path("out"),
    quiet: opt.Quiet = False,
    resume: opt.Resume = False,
    scaling: opt.Scaling = "none",
    pca: opt.Pca = None,
    graph: opt.Graph = "knn",
    n_neighbors: opt.NNeighbors = None,
    weights: opt.Weights = "auto",
    scale: opt.Scale = None,
    metric: opt.Metric = None,
    radius: opt.Radius = None,
    laplacian: opt.Laplacian = "symmetric",
    n_eigenpairs: opt.NEigenpairs = None,
    tail_eigenvalue: opt.TailEigenvalue = "none",
    prior: opt.Prior = "auto",
    likelihood: opt.Likelihood = "auto",
    noise_std: opt.NoiseStd = None,
    positive: opt.Positive = None,
    max_classes: opt.MaxClasses = None,
    class_proportions: opt.ClassProportions = None,
    out_of_sample: opt.OutOfSample = "mean",
    search: opt.Search = None,
    criterion: opt.Criterion = None,
    inference: opt.Inference = "auto",
    n_samples: opt.NSamples = None,
    n_chains: opt.NChains = None,
    n_warmup: opt.NWarmup = None,
    thin: opt.Thin = None,
    fixed_length: opt.FixedLength = False,
    precision: opt.Precision = None,
    seed: opt.Seed = 0,
) -> None:
    """Infer the class of every row of FILE from a few labelled rows.

    The output folder receives predictions.csv (class and probability of each row), report.html
    and posterior.nc (for graphuq predict). --search adds search.csv, with all values tried. An
    H5AD file is written there too, with the types of its cells.

    Example: graphuq classify votes.csv --label-column label --scaling standard -o out
    """
    import numpy as np

    from graphuq.cli.cells import read_cells, write_cells
    from graphuq.cli.columns import refuse_given, weights_from
    from graphuq.cli.edges import read_edges
    from graphuq.cli.fitting import check_options, fit_and_write, parse_likelihood, require_features
    from graphuq.cli.searching import parse_proportions, parse_search
    from graphuq.cli.tables import read_labels, read_table

    node_options = {"label_column": label_column, "id_column": id_column,
                    "truth_column": truth_column, "weight_column": weight_column, "drop": drop,
                    "scaling": scaling, "pca": pca,
                    "n_neighbors": n_neighbors, "weights": weights, "scale": scale,
                    "metric": metric, "radius": radius}  # fmt: skip
    require(
        label_column is not None or labels is not None,
        "--label-column",
        "not given",
        "name the column with the known classes, or give --labels FILE",
    )
    require(
        label_column is None or labels is None,
        "--label-column",
        "given beside --labels",
        "give one of the two",
    )
    with output_folder(output):
        options: dict[str, Any] = {
            "graph": graph,
            "n_neighbors": "auto" if n_neighbors is None else n_neighbors,
            "weights": weights,
            "scale": scale,
            "metric": metric,
            "radius": radius,
            "out_of_sample": out_of_sample,
            "laplacian": laplacian,
            "tail_eigenvalue": parse_tail(tail_eigenvalue),
            "prior": prior,
            "max_classes": max_classes,
            "inference": inference,
            "n_samples": 4000 if n_samples is None else n_samples,
            "n_chains": n_chains,
            "n_warmup": n_warmup,
            "thin": thin,
            "until_converged": not fixed_length,
            "precision": "float32" if precision is None else precision,
            "random_state": seed,
        }
        sampling = {"n_samples": n_samples, "precision": precision, "fixed_length": fixed_length}
        check_options(options, sampling, search, criterion)
        cells: Any = None
        if file.suffix.lower() == ".h5ad" and file.is_file():
            table, cells = read_cells(file, node_options, neighbors_key, use_rep)
            options["graph"] = "precomputed" if use_rep is None else graph
        else:
            of_cells = {"neighbors_key": neighbors_key, "use_rep": use_rep}
            refuse_given(of_cells, f"'{file.name}'", "leave it out, or give an H5AD file")
            if edges is not None:
                table, options["graph"] = read_edges(file, edges, node_options), "precomputed"
            else:
                table = read_table(
                    file, label_column, id_column, truth_column, drop or (), (), weight_column
                )
                require_features(table, options)
        given = read_labels(labels, table.ids) if labels is not None else table.labels
        assert given is not None  # one of the two sources was required above
        given = np.where(np.isin(given, missing_label or []), "", given)
        require(
            weight_column is None or not search,
            "--weight-column",
            "given beside --search, which does not use it",
            "leave one of the two out",
        )
        options["likelihood"] = parse_likelihood(likelihood, noise_std)
        options["n_eigenpairs"] = parse_n_eigenpairs(n_eigenpairs, table.features.shape[0])
        fitted = fit_and_write(
            table,
            given,
            options,
            output,
            title=f"graphuq: {file.name}",
            positive=positive,
            scaling=scaling,
            pca=pca,
            search=parse_search(search),
            criterion="auto" if criterion is None else criterion,
            proportions=parse_proportions(class_proportions),
            weights=weights_from(table.weights, weight_column, given != ""),
            resume=resume,
            quiet=quiet,
        )
        if cells is not None:
            write_cells(cells, fitted, given, label_column, output / file.name)


def parse_tail(tail: str) -> bool | float | str:
    """Turn the text of ``--tail-eigenvalue`` into what `laplacian_spectrum` takes."""
    words: dict[str, bool | str] = {"none": False, "last": True, "mean": "mean"}
    if tail in words:
        return words[tail]
    with contextlib.suppress(ValueError):
        return float(tail)
    raise InvalidInput(
        "--tail-eigenvalue", f"{tail!r} is unknown", "use none, last, mean or a number"
    )


def parse_n_eigenpairs(text: str | None, n_nodes: int) -> int | str | None:
    """Turn the text of ``--n-eigenpairs`` into a number, "auto" or None."""
    if text is None or text == "auto":
        return text
    if text == "all":
        return n_nodes
    require(
        text.isdecimal() and text.isascii(),
        "--n-eigenpairs",
        f"{text!r}",
        "give a whole number, 'all' or 'auto'",
    )
    return int(text)
