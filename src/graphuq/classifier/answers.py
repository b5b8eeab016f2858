"""The table of answers of a fitted classifier, with class proportions if there are any."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Int

from graphuq.errors import require
from graphuq.results.table import (
    INTERVAL,
    Latent,
    answer_columns,
    frame_of,
    given_codes,
    latent_of,
)

if TYPE_CHECKING:
    import pandas as pd


def columns_of_fit(
    classifier: Any, ids: Sequence[Any] | np.ndarray | None, given: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return the columns of the rows of the fit; given labels are those of the fit by default."""
    result, stored = classifier.result_, classifier._stored
    nodes = np.arange(len(result.has_evidence))
    require(
        stored is None or len(nodes) == stored.stages.table.n_rows,
        "store",
        f"holds more rows than the {len(nodes)} of result_",
        "use to_parquet, which writes all",
    )
    known = given_codes(result) if given is None else given
    return _columns(classifier, result, nodes, ids, result.has_evidence, known, latent_of(result))


def table_of_rows(
    classifier: Any, X: Any, ids: Sequence[Any] | np.ndarray | None
) -> "pd.DataFrame":
    """Return the table of rows, in the graph or not."""
    *rows, has_evidence = classifier._located(X)
    summaries, nodes = classifier._summaries_of(*rows)
    latent = None
    if summaries.latent_mean.ndim == 1:
        interval = classifier._intervals_of(*rows, INTERVAL)
        latent = Latent(summaries.latent_mean, summaries.latent_std, interval)
    known = classifier._given_codes(nodes)
    return frame_of(_columns(classifier, summaries, nodes, ids, has_evidence, known, latent))


def _columns(
    classifier: Any,
    summaries: Any,
    nodes: Int[np.ndarray, " M"],
    ids: Sequence[Any] | np.ndarray | None,
    has_evidence: Bool[np.ndarray, " M"],
    given: np.ndarray,
    latent: Latent | None,
) -> dict[str, np.ndarray]:
    probabilities, codes = classifier._probabilities(summaries, nodes), None
    if classifier._tuning is not None:
        probabilities, _ = classifier._known_and_novel(summaries, nodes)
        codes = classifier._codes(summaries, nodes, probabilities)
    return answer_columns(
        ids,
        classifier.result_.classes,
        probabilities,
        mcse=summaries.mcse,
        has_evidence=has_evidence,
        given=given,
        latent=latent,
        codes=codes,
    )
