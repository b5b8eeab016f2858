"""The table of answers of a fitted regressor."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphuq.classifier.new_rows import connected_rows, reached_by
from graphuq.classifier.regressor.values import deviations, intervals
from graphuq.results.table import number_columns

COVERAGE = 0.9  # of the interval of a new row


def columns_of_fit(
    regressor: Any, ids: Sequence[Any] | np.ndarray, coverage: float, quantity: str
) -> dict[str, np.ndarray]:
    """Return the columns of the rows of the fit."""
    mean = regressor.transduction_
    std = deviations(regressor.transduction_std_, regressor.noise_std_, quantity)
    ends = intervals(mean, std, coverage)
    given = _given(regressor, np.arange(len(mean)))
    return number_columns(ids, mean, std, ends, regressor.has_evidence_, given)


def columns_of_rows(
    regressor: Any, X: Any, ids: Sequence[Any] | np.ndarray
) -> dict[str, np.ndarray]:
    """Return the columns of rows, in the graph or not, for new measurements."""
    weights, nodes = connected_rows(regressor, X, "the mean of all numbers is predicted")
    mean, std = regressor._at_rows(weights, nodes, "measurement")
    has_evidence = reached_by(weights, nodes, regressor.has_evidence_)
    given = _given(regressor, nodes)
    return number_columns(ids, mean, std, intervals(mean, std, COVERAGE), has_evidence, given)


def _given(regressor: Any, nodes: np.ndarray) -> np.ndarray:
    """Return the number that each node was given, NaN without one."""
    model = regressor.regression_
    found = np.full(len(regressor.transduction_), np.nan)
    found[model.labelled] = regressor._location + regressor._spread * model.values
    return np.where(nodes >= 0, found[nodes], np.nan)
