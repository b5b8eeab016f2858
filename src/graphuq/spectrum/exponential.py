"""Rough functions of a table's columns as columns of a basis.

The class may follow from conditions on single columns, such as "x₁ > 5 and x₂ = 0", as in a
decision tree. A random field of this kind has the covariance ``exp(−‖x − x'‖₁ / 2d̄)``. It is that
of a forest of random cuts across single columns, with infinitely many trees (the Mondrian kernel,
Balog et al. 2016). The columns F of the basis are such that F Fᵀ is this covariance, up to the
approximation of Nyström from 100 nodes (Williams & Seeger 2001).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from graphuq.graphs.column_ranges import ColumnRanges
from graphuq.graphs.variables import Variables, variables_of
from graphuq.spectrum.feature_block import FeatureBlock
from graphuq.utils.concurrency import cached_property

EXPONENTIAL = "exponential"
RATE = 0.5  # of the decay per mean distance; docs/archive/blocks.md has others
DECIMALS = 9  # of means of columns, the rest being errors of rounding
N_LANDMARKS = 100  # nodes from which the covariance is known
MAX_VARIABLES = 100  # with more, all distances are nearly equal and the block gains nothing
SMALLEST = 1e-6  # eigenvalue of the landmarks' covariance, relative to the largest, that is kept


def has_exponential(variables: Variables | None) -> bool:
    """Return whether the features are a table: dense, and of at most 100 variables."""
    return variables is not None and 0 < variables.n_variables <= MAX_VARIABLES


@dataclass(frozen=True, eq=False, repr=False)
class ExponentialFunctions(FeatureBlock):
    """Block of up to 100 columns, whose covariance is ``exp(−‖x − x'‖₁ / 2d̄)``.

    ``‖x − x'‖₁`` is the sum of absolute differences of standardised features, and d̄ its mean.
    Columns of 0 and 1 that are the values of one category count as one feature.

    Attributes
    ----------
    features : array_like, shape (N, d)
        Each feature is divided by its standard deviation first; see `graphuq.graphs.variables` for
        categories.

    Raises
    ------
    InvalidInput
        If features are not rows of finite numbers.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> gq.ExponentialFunctions(X).values.shape
    (300, 100)
    """

    name = EXPONENTIAL

    @cached_property
    def values(self) -> Float[np.ndarray, "N m"]:
        """Columns F with ``F Fᵀ`` nearly the covariance, none if all rows are equal."""
        known = self._known()
        if known is None:
            return np.zeros((np.shape(self.features)[0], 0))
        columns, distances = known
        return columns.of_distances(distances)

    @property
    def columns(self) -> "ExponentialColumns | None":
        """Columns as a function of a row; None if all rows are equal."""
        known = self._known()
        return None if known is None else known[0]

    def _known(self) -> "tuple[ExponentialColumns, Float[np.ndarray, 'N m']] | None":
        """Return columns and distances of all rows from the landmarks, if rows differ."""
        rows = np.asarray(self.features, dtype=np.float64)
        variables = variables_of(self.components)
        if variables is None or not variables.n_variables:
            return None
        landmarks = Landmarks(variables.scales, rows[landmark_rows(rows)])
        distances = landmarks.distances(rows)
        return landmarks.columns(landmarks.rate(distances.sum(), len(rows))), distances


def landmark_rows(rows: Float[np.ndarray, "N d"]) -> Int[np.ndarray, " m"]:
    """Return the rows from which the covariance is known, in any order of the rows the same."""
    return evenly_along(line_of(rows, ColumnRanges.of(rows)))


def line_of(rows: Float[np.ndarray, "B d"], ranges: ColumnRanges) -> Float[np.ndarray, " B"]:
    """Return where rows lie on a line in a random direction, given the ranges of all columns.

    Columns have the next random number in the order of their means, so that their order in the
    table has no influence unless means are equal.
    """
    found = np.zeros(len(rows))
    low, width = ranges.low.astype(np.float64), np.subtract(ranges.high, ranges.low, dtype=float)
    varying = np.flatnonzero(width > 0)
    means = (ranges.mean[varying] - low[varying]) / width[varying]
    in_order = varying[np.argsort(np.round(means, DECIMALS), kind="stable")]
    numbers = np.random.default_rng(0).normal(size=len(varying))
    for j, number in zip(in_order, numbers, strict=True):
        found += number * ((rows[:, j].astype(np.float64) - low[j]) / width[j])
    return found


def evenly_along(line: Float[np.ndarray, " N"]) -> Int[np.ndarray, " m"]:
    """Return up to 100 rows at even steps along the order on a line."""
    n_landmarks = min(len(line), N_LANDMARKS)
    steps = (np.arange(n_landmarks) + 0.5) * len(line) / max(1, n_landmarks)
    return np.argsort(line, kind="stable")[steps.astype(np.intp)]


class Landmarks(NamedTuple):
    """Rows from which the covariance is known.

    Attributes
    ----------
    scales : numpy.ndarray, shape (d,)
        What features are divided by, ∞ for one that is left out; see `Variables`.
    rows : numpy.ndarray, shape (m, d)
        As the features have them.
    """

    scales: Float[np.ndarray, " d"]
    rows: Float[np.ndarray, "m d"]

    def distances(self, rows: Float[np.ndarray, "B d"]) -> Float[np.ndarray, "B m"]:
        """Return the sums of absolute differences between rows and landmarks."""
        used = np.isfinite(self.scales)
        scaled = [np.asarray(some, np.float64)[:, used] / self.scales[used]
                  for some in (rows, self.rows)]  # fmt: skip
        return np.asarray(cdist(*scaled, "cityblock"))

    def rate(self, total: float, n_rows: int) -> float:
        """Return the factor of distances, given the sum of the distances of all rows."""
        n_pairs = n_rows * len(self.rows) - len(self.rows)  # of different nodes
        return float(-RATE * n_pairs / total)

    def columns(self, rate: float) -> "ExponentialColumns":
        """Return the columns whose covariance is ``exp(rate · distance)``."""
        values, vectors = eigh(np.exp(rate * self.distances(self.rows)))
        kept = values > SMALLEST * values[-1]
        return ExponentialColumns(self, rate, vectors[:, kept] / np.sqrt(values[kept]))


class ExponentialColumns(NamedTuple):
    """Columns of a block as a function of a row: ``exp(rate · distances) @ turn``."""

    landmarks: Landmarks
    rate: float
    turn: Float[np.ndarray, "m r"]

    def of_distances(self, distances: Float[np.ndarray, "B m"]) -> Float[np.ndarray, "B r"]:
        """Return the columns of rows with these distances from the landmarks."""
        return np.asarray(np.exp(self.rate * distances) @ self.turn)

    def at(self, rows: Float[np.ndarray, "B d"]) -> Float[np.ndarray, "B r"]:
        """Return the columns of rows."""
        return self.of_distances(self.landmarks.distances(rows))
