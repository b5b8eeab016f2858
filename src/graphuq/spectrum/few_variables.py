"""Rough functions of a few variables, which the labels have chosen, as columns of a basis.

In a table of twenty variables the class may depend on two. Distances add up what the other
eighteen say, and hide it. Trees find the two; so do the labels here, before the basis is made.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float, Int

from graphuq.graphs.principal import PrincipalComponents
from graphuq.graphs.variables import Variables
from graphuq.spectrum.exponential import ExponentialColumns, Landmarks, landmark_rows
from graphuq.spectrum.feature_block import FeatureBlock
from graphuq.utils.concurrency import cached_property

FEW_VARIABLES = "few variables"


@dataclass(frozen=True, eq=False, repr=False)
class FunctionsOfFew(FeatureBlock):
    """Block of up to 100 columns, whose covariance is ``exp(−Σ_j |x_j − x'_j| / s_j)``.

    Attributes
    ----------
    features : array_like, shape (N, d)
    scales : numpy.ndarray, shape (d,)
        s_j; ∞ for a column that is left out.
    log_prior : float, default 0.0
        Log probability of these scales beside others.

    Raises
    ------
    InvalidInput
        If features are not rows of finite numbers.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> values = gq.FunctionsOfFew(X, np.array([np.inf, 0.5, np.inf])).values
    >>> len(values), values.shape[1] <= 100
    (300, True)
    """

    scales: Float[np.ndarray, " d"]
    log_prior: float = 0.0
    name = FEW_VARIABLES

    @cached_property
    def values(self) -> Float[np.ndarray, "N m"]:
        """Columns F with ``F Fᵀ`` nearly the covariance."""
        rows = np.asarray(self.features)
        return columns_of_scales(rows, self.scales).at(rows)


class TableOfVariables(Protocol):
    """What it takes to make functions of a few variables that are chosen later."""

    @property
    def variables(self) -> Variables:
        """Variable and scale of each column."""

    @property
    def landmarks(self) -> Float[np.ndarray, "m d"]:
        """Features of the rows from which covariances are known."""

    def rows(self, nodes: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n d"]:
        """Return the features of nodes."""

    def functions(self, scales: Float[np.ndarray, " d"], log_prior: float) -> Any:
        """Return the block of scales and of their log prior probability."""


@dataclass(frozen=True, eq=False)
class TableInMemory:
    """Variables of features in memory; see `TableOfVariables`."""

    components: PrincipalComponents
    variables: Variables

    @property
    def landmarks(self) -> Float[np.ndarray, "m d"]:
        """Features of the rows from which covariances are known."""
        features = self.components.features
        return np.asarray(features[landmark_rows(features)])

    def rows(self, nodes: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n d"]:
        """Return the features of nodes."""
        return np.asarray(self.components.features[nodes])

    def functions(self, scales: Float[np.ndarray, " d"], log_prior: float) -> FunctionsOfFew:
        """Return the block of scales and of their log prior probability."""
        known = self.components
        return FunctionsOfFew(known.features, scales, log_prior, components=known)


def columns_of_scales(
    features: Float[np.ndarray, "N d"], scales: Float[np.ndarray, " d"]
) -> ExponentialColumns:
    """Return the columns as a function of a row, given the features of the nodes."""
    rows = np.asarray(features[landmark_rows(features)], dtype=np.float64)
    return Landmarks(scales, rows).columns(-1.0)


def differences(rows: Float[np.ndarray, "n d"], variables: Variables) -> Float[np.ndarray, "V n n"]:
    """Return the difference of each pair of rows in each variable."""
    found = np.zeros((variables.n_variables, len(rows), len(rows)))
    for j in np.flatnonzero(variables.numbers >= 0):
        column = np.asarray(rows[:, j], dtype=np.float64) / variables.scales[j]
        found[variables.numbers[j]] += np.abs(column[:, None] - column[None])
    return found


def mean_differences(
    landmarks: Float[np.ndarray, "m d"], variables: Variables
) -> Float[np.ndarray, " V"]:
    """Return the mean of `differences` between landmarks, or ∞ for none."""
    among = differences(landmarks, variables)
    n_pairs = max(1, among.shape[1] * (among.shape[1] - 1))
    means = among.sum(axis=(1, 2)) / n_pairs
    return np.where(means > 0, means, np.inf)


def scales_of_few(
    variables: Variables,
    means: Float[np.ndarray, " V"],
    chosen: Int[np.ndarray, " s"],
    rate: float,
) -> Float[np.ndarray, " d"]:
    """Return the scales with which distances are ``rate`` times the mean over chosen variables."""
    scales = np.full(len(variables.scales), np.inf)
    used = np.isin(variables.numbers, chosen)
    numbers = variables.numbers[used]
    scales[used] = variables.scales[used] * means[numbers] * len(chosen) / rate
    return scales
