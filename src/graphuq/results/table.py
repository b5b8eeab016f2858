"""The table of answers: one row for each node or new row, with the same columns everywhere.

`Result.to_dataframe`, `GraphClassifier.predict_table`, the commands ``classify`` and ``predict``,
`GraphClassifier.to_parquet`, the cells of AnnData and the labelling page write this table.
docs/files.md says what each column is. Columns are NumPy arrays by name, of which `frame_of` makes
a table of pandas.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import entr

from graphuq.errors import StorageError, require
from graphuq.results.formats import format_of
from graphuq.results.latent_numbers import credible_interval
from graphuq.utils.checks import describe, refuse_zero_bytes
from graphuq.utils.extras import require_extra
from graphuq.utils.files import atomic_write
from graphuq.utils.frames import made_frame

if TYPE_CHECKING:
    import pandas as pd

    from graphuq.results.result import Result

INTERVAL = 0.95  # probability of the credible interval of the latent field
Columns = Mapping[str, np.ndarray]


class Latent(NamedTuple):
    """Posterior mean and standard deviation of u, and its credible interval, for two classes."""

    mean: Float[np.ndarray, " N"]
    std: Float[np.ndarray, " N"]
    interval: Float[np.ndarray, "N 2"]


def answer_columns(
    ids: Sequence[Any] | np.ndarray | None,
    classes: np.ndarray,
    probabilities: Float[np.ndarray, "N K"],
    *,
    mcse: Float[np.ndarray, "N K"],
    has_evidence: Bool[np.ndarray, " N"],
    given: np.ndarray,
    latent: Latent | None = None,
    codes: Int[np.ndarray, " N"] | None = None,
) -> dict[str, np.ndarray]:
    """Return the columns of the table, by name and in their order.

    Parameters
    ----------
    ids : sequence of length N, optional
        By default row numbers from 0.
    classes : numpy.ndarray, shape (K,)
    probabilities, mcse : numpy.ndarray, shape (N, K)
        Class probabilities and their Monte-Carlo standard errors.
    has_evidence : numpy.ndarray of bool, shape (N,)
    given : numpy.ndarray, shape (N,)
        Label that was given to each row, None without one; or its code as int, −1 without one.
    latent : Latent, optional
        Required for two classes.
    codes : numpy.ndarray of int, shape (N,), optional
        Class of each row; by default the most probable one.
    """
    n_rows = len(probabilities)
    names = classes.astype(object) if classes.dtype.kind == "U" else classes
    codes = probabilities.argmax(axis=1) if codes is None else codes
    at, margin = (np.arange(n_rows), codes), margins(probabilities)
    columns = {
        "id": checked_ids(ids, n_rows),
        "label": names[codes],
        "probability": probabilities[at],
        **{f"probability_{name}": probabilities[:, k] for k, name in enumerate(classes)},
        "margin": margin,
        "entropy": np.asarray(entr(probabilities).sum(axis=1)),
        "rank": ranks(margin),
        "mcse": mcse[at],
    }
    if latent is not None:
        columns |= {"latent_mean": latent.mean, "latent_std": latent.std}
        columns |= {"latent_lower": latent.interval[:, 0], "latent_upper": latent.interval[:, 1]}
    return columns | {"has_evidence": has_evidence, "given": _given(given, names)}


def columns_of(
    result: "Result", ids: Sequence[Any] | np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return the columns of all nodes of a result."""
    return answer_columns(
        ids,
        result.classes,
        result.probabilities,
        mcse=result.mcse,
        has_evidence=result.has_evidence,
        given=given_codes(result),
        latent=latent_of(result),
    )


def checked_ids(ids: Sequence[Any] | np.ndarray | None, n_rows: int) -> np.ndarray:
    """Return one identifier a row, by default row numbers from 0.

    Raises
    ------
    InvalidInput
        If there is not one a row, or one is a text that ends with a zero byte.
    """
    if ids is None:
        return np.arange(n_rows)
    remedy = f"give {n_rows}, one a row"
    require(np.iterable(ids) and not isinstance(ids, str | bytes), "ids", describe(ids), remedy)
    listed = ids if hasattr(ids, "shape") else list(ids)
    require(len(listed) == n_rows, "ids", f"{len(listed)} entries for {n_rows} rows", remedy)
    refuse_zero_bytes(listed, "ids")
    values = np.asarray(listed)
    require(values.ndim == 1, "ids", f"shape {values.shape}", remedy)
    return values


def latent_of(result: "Result") -> Latent | None:
    """Return the latent field of all nodes, for two classes."""
    if result.latent_mean.ndim == 2:
        return None
    return Latent(result.latent_mean, result.latent_std, credible_interval(result, INTERVAL))


def given_codes(result: "Result") -> Int[np.ndarray, " N"]:
    """Return the class that each node was given, as an index, or −1."""
    posterior, codes = result.posterior, np.full(len(result.has_evidence), -1)
    labels = np.asarray(posterior.labels)
    codes[posterior.labelled] = labels if posterior.likelihood.has_codes else labels > 0
    return codes


def number_columns(
    ids: Sequence[Any] | np.ndarray | None,
    mean: Float[np.ndarray, " N"],
    std: Float[np.ndarray, " N"],
    interval: Float[np.ndarray, "N 2"],
    has_evidence: Bool[np.ndarray, " N"],
    given: Float[np.ndarray, " N"],
) -> dict[str, np.ndarray]:
    """Return the columns of the table of a regression, in their order."""
    columns = {"id": checked_ids(ids, len(mean)), "mean": mean, "std": std}
    columns |= {"lower": interval[:, 0], "upper": interval[:, 1]}
    return columns | {"has_evidence": has_evidence, "given": given}


def margins(probabilities: Float[np.ndarray, "N K"]) -> Float[np.ndarray, " N"]:
    """Return the probability of the most probable class minus that of the next."""
    if probabilities.shape[1] < 2:
        return np.full(len(probabilities), np.nan)
    second, first = np.partition(probabilities, -2, axis=1)[:, -2:].T
    return np.asarray(first - second)


def ranks(margin: Float[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
    """Return the rank of each row by its margin: 1 for the smallest; equal margins share a rank."""
    return 1 + np.searchsorted(np.sort(margin), margin, side="left")


def frame_of(columns: Columns) -> "pd.DataFrame":
    """Return columns as a table of pandas."""
    require_extra("tables")
    import pandas as pd

    kind = columns["label"].dtype.kind if "label" in columns else "f"
    found: dict[str, Any] = dict(columns)
    if kind in "iub":  # with missing values such a column has a type of pandas
        found["given"] = pd.array(columns["given"], dtype="boolean" if kind == "b" else "Int64")
    return made_frame(found)


def write_table(table: "pd.DataFrame", path: str | Path) -> None:
    """Write a table to a file, whole or not at all.

    Numbers in a CSV file have six significant digits. A text that a spreadsheet would run as a
    formula has an apostrophe before it.

    Parameters
    ----------
    table : pandas.DataFrame
        Such as that of `Result.to_dataframe`.
    path : path
        Its suffix is the format: ``.csv``, ``.parquet``, or that of a `TableFormat` of your own.

    Raises
    ------
    InvalidInput
        If the suffix is another one.
    StorageError
        If the file cannot be written.
    MissingPackage
        Without the extra ``graphuq[parquet]``.

    Warns
    -----
    GraphuqWarning
        If a text in a CSV file was changed.

    Examples
    --------
    >>> import tempfile, numpy as np, pandas as pd, graphuq as gq
    >>> moons = gq.datasets.two_moons(200, n_features=2, noise_std=0.05)
    >>> y = np.where(np.arange(200) < 20, moons.classes, -1)
    >>> classifier = gq.GraphClassifier(inference="expectation-propagation")
    >>> table = classifier.fit(moons.features, y).result_.to_dataframe()
    >>> path = tempfile.mkdtemp() + "/moons.parquet"
    >>> gq.results.write_table(table, path)
    >>> pd.read_parquet(path).columns.tolist()[:5]
    ['id', 'label', 'probability', 'probability_0', 'probability_1']
    """
    written = format_of(path)
    require_extra("parquet")
    try:
        with atomic_write(path) as temporary:
            written.write(table, temporary)
    except UnicodeEncodeError as error:
        raise StorageError(
            f"'{path}' cannot hold {error.object!r}, which is no Unicode; rename it, or write a "
            "CSV file"
        ) from None


def _given(given: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Return given labels with the type of the classes, and None or NaN where there is none."""
    if given.dtype.kind not in "iu":
        return given
    known = given >= 0
    if names.dtype.kind == "f":
        return np.where(known, names[given.clip(min=0)], np.nan)
    found = np.full(len(given), None, dtype=object)
    found[known] = names[given[known]]
    return found
