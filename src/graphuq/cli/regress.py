"""``graphuq regress``: a table with a few numbers → predictions of all others, with intervals."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from graphuq.cli import options as opt
from graphuq.cli.facts import Facts, the_facts
from graphuq.cli.generated import with_options
from graphuq.utils.output_folder import atomic_folder, output_folder

if TYPE_CHECKING:
    import numpy as np

TruthColumn = Annotated[
    str | None,
    opt.option(
        "COLUMN", "Column with true numbers. It is used to compute scores, never to fit.", opt.INPUT
    ),
]
Coverage = Annotated[
    float,
    opt.option("NUMBER", "Probability that an interval holds the number of its row.", opt.OUTPUT),
]
Quantity = Annotated[
    str,
    opt.option(
        "NAME",
        "What std and interval are for: measurement (a new one, noise included) or field.",
        opt.OUTPUT,
    ),
]

Counts = Annotated[
    bool,
    opt.flag("--counts", "The numbers are counts 0, 1, 2, …, as in --model counts.", opt.MODEL),
]


@with_options(*opt.OF_REGRESSOR)
def regress(
    file: opt.File,
    target_column: opt.TargetColumn,
    missing_label: opt.MissingTarget = None,
    id_column: opt.IdColumn = None,
    truth_column: TruthColumn = None,
    weight_column: opt.WeightColumn = None,
    exposure_column: opt.ExposureColumn = None,
    drop: opt.Drop = None,
    read: opt.Read = None,
    encode: opt.Encode = False,
    impute: opt.Impute = False,
    kind: opt.Kind = None,
    missing_value: opt.MissingValue = None,
    output: opt.Output = Path("out"),
    quiet: opt.Quiet = False,
    file_format: opt.Format = "csv",
    coverage: Coverage = 0.9,
    quantity: Quantity = "measurement",
    counts: Counts = False,
    scaling: opt.Scaling = "none",
    pca: opt.Pca = None,
    *,
    given: dict[str, Any],
) -> None:
    """Predict the number of every row of FILE from a few rows with a number.

    The output folder receives predictions.csv (mean, standard deviation and interval of each
    row), report.html and posterior.nc (for graphuq predict).

    Example: graphuq regress homes.csv --target-column price --scaling standard -o out

    Example: graphuq regress districts.csv --target-column cases --counts
    --exposure-column people -o out
    """
    import numpy as np

    from graphuq.classifier.regressor.answers import columns_of_fit
    from graphuq.classifier.regressor.regressor import GraphRegressor
    from graphuq.cli.columns import (
        check_format,
        exposures_from,
        read_options,
        weights_from,
    )
    from graphuq.cli.encoding import encoder_from
    from graphuq.cli.fitting import model_of_parts
    from graphuq.cli.preprocessing import preprocess
    from graphuq.cli.tables import read_table
    from graphuq.cli.unread import OF_FIT, require_unread
    from graphuq.errors import require
    from graphuq.models import Counts as CountsModel
    from graphuq.models import Regression
    from graphuq.results.table import frame_of, write_table

    check_format(file_format)
    require_unread({"FILE": file}, output, *OF_FIT)
    parts = opt.OF_REGRESSION.names
    require(
        not counts or "model" not in given,
        "--counts",
        f"given beside --model {given.get('model')}",
        "leave one of the two out",
    )
    model = model_of_parts(given, parts, CountsModel if counts else Regression)
    regressor = GraphRegressor(
        **{name: value for name, value in given.items() if name not in ("model", *parts)},
        model="counts" if counts and model == "auto" else model,
        progress=not quiet,
    )
    has_counts = regressor.get_model().takes_exposure
    unused, words = (
        ("--weight-column", "counts") if has_counts else ("--exposure-column", "numbers")
    )
    require(
        (weight_column if has_counts else exposure_column) is None,
        unused,
        f"given for {words}, which have none",
        "leave it out, or use " + ("--exposure-column" if has_counts else "--counts"),
    )
    facts = the_facts(quiet)
    with output_folder(output):
        encoder = encoder_from(encode, impute, kind, missing_value, scaling)
        table = read_table(
            file,
            target_column,
            id_column,
            truth_column,
            dropped=drop or (),
            weight_column=exposure_column if has_counts else weight_column,
            encoder=encoder,
            options=read_options(read),
        )
        facts.read(table.line, table.settings)
        assert table.labels is not None  # the column was named
        decimal = table.settings.get("decimal")
        told = missing_label or []
        target = _known_numbers(table.labels, target_column, told, decimal)
        truth = None
        if table.truth is not None:
            truth = _known_numbers(table.truth, f"{truth_column}", told, decimal)
        features, groups = preprocess(table, regressor.graph, scaling, pca)
        certainty = weights_from(
            table.weights if weight_column else None, weight_column, ~np.isnan(target), decimal
        )
        seen = exposures_from(table.weights, exposure_column, decimal)
        regressor.fit(features, target, sample_weight=certainty, exposure=seen)
        columns = columns_of_fit(regressor, table.ids, coverage, quantity)
        predictions = frame_of({**columns, "given": target})
        from graphuq.report import write_report  # imports matplotlib: after the fit

        with atomic_folder(output, "predictions.*") as folder:
            write_table(predictions, folder / f"predictions.{file_format}")
            regressor.save(folder / "posterior.nc", groups)
            write_report(
                regressor,
                folder / "report.html",
                title=f"graphuq: {file.name}",
                ids=table.ids,
                truth=truth,
            )
        _say_result(facts, regressor, truth, target_column)
        names = (f"predictions.{file_format}", "posterior.nc", "report.html")
        facts.wrote(*(output / name for name in names))


def _known_numbers(
    text: "np.ndarray", column: str, missing: Sequence[str], decimal: str | None
) -> "np.ndarray":
    """Return the numbers of a column, NaN where it is empty or has a text or number for that."""
    import numpy as np
    import pandas as pd

    from graphuq.cli.columns import numbers_from, without_missing
    from graphuq.utils.text_numbers import to_numbers

    remedy = "leave the cell empty, or add --missing-label TEXT"
    numbers = numbers_from(without_missing(text, missing), column, remedy, decimal)
    codes = to_numbers(pd.Series(list(missing), dtype=object)).to_numpy()
    return np.where(np.isin(numbers, codes), np.nan, numbers)


def _say_result(facts: Facts, regressor: Any, truth: Any, target: str) -> None:
    """Say what was learnt, and how far to rely on it."""
    from graphuq.classifier.regressor.trust import trust_of
    from graphuq.cli.verdict import say_verdict

    facts.say(
        "{target}: {n_given} of {n_rows} rows have a number",
        target=target,
        n_given=len(regressor.posterior_.given),
        n_rows=len(regressor.transduction_),
    )
    facts.say(
        "{noise} {noise_std:.4g}, field {field_std:.4g}, linear part {linear_std:.4g} (standard "
        "deviations)",
        noise=regressor.posterior_.noise,
        noise_std=regressor.noise_std_,
        field_std=regressor.field_std_,
        linear_std=regressor.linear_std_,
    )
    facts.say(
        "prior {prior}, log evidence {log_evidence:.2f}",
        prior=regressor.prior_,
        log_evidence=regressor.log_evidence_,
    )
    say_verdict(facts, trust_of(regressor, truth))
