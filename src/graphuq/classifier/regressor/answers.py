"""The table of answers of a fitted regressor."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphuq.classifier.new_rows import connected_rows, reached_by
from graphuq.classifier.regressor.exposures import exposure_to_predict
from graphuq.classifier.regressor.rows import given_of_fit, predictive_of, predictive_of_fit
from graphuq.results.table import number_columns

COVERAGE = 0.9  # of the interval of a new row


def columns_of_fit(
    regressor: Any, ids: Sequence[Any] | np.ndarray, coverage: float, quantity: str
) -> dict[str, np.ndarray]:
    """Return the columns of the rows of the fit, each count for its own exposure."""
    found = predictive_of_fit(regressor, quantity)
    ends, given = found.interval(coverage), given_of_fit(regressor)
    return number_columns(ids, found.mean, found.std, ends, regressor.has_evidence_, given)


def columns_of_rows(
    regressor: Any, X: Any, ids: Sequence[Any] | np.ndarray, exposure: Any = None
) -> dict[str, np.ndarray]:
    """Return the columns of rows, in the graph or not, for new measurements."""
    rows = connected_rows(regressor, X, "the mean of all numbers is predicted")
    nodes = rows.nodes
    seen = exposure_to_predict(regressor, exposure, "measurement", len(nodes))
    found = predictive_of(regressor, rows, "measurement", seen)
    has_evidence = reached_by(rows, regressor.has_evidence_)
    given = np.where(nodes >= 0, given_of_fit(regressor)[nodes], np.nan)
    ends = found.interval(COVERAGE)
    return number_columns(ids, found.mean, found.std, ends, has_evidence, given)
