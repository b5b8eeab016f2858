"""Variables of a table: single columns, and columns of 0 and 1 that are one category together.

A category of 40 values is 40 columns, and a yes or no often two. A sum over columns would give
them the say of many variables. Which columns belong together is known from the data alone: each
has two values, and in each row exactly one of them has its larger value.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from graphuq.graphs.principal import EXACT_WIDTH, Moments, PrincipalComponents

SMALLEST_DEVIATION = 1e-10  # of a feature that varies, relative to its largest value
TOLERANCE = 1e-10  # of shares of rows; one row of ten million is more


class Variables(NamedTuple):
    """The variable of each column, and the scales in which differences are added up.

    Attributes
    ----------
    numbers : numpy.ndarray of int, shape (d,)
        From 0; −1 for a column that is constant.
    scales : numpy.ndarray, shape (d,)
        What each column is divided by, so that all variables count alike: the standard deviation,
        ∞ for a column that is constant, and for a category what makes two of its values differ by
        as much as those of a single column of 0 and 1 that is as often different.
    """

    numbers: Int[np.ndarray, " d"]
    scales: Float[np.ndarray, " d"]

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return int(self.numbers.max(initial=-1)) + 1

    @classmethod
    def of(
        cls, moments: Moments, low: Float[np.ndarray, " d"], high: Float[np.ndarray, " d"]
    ) -> "Variables":
        """Return the variables of rows with these moments and ranges of the columns."""
        deviation = np.sqrt(np.diag(moments.covariance))
        varies = deviation > SMALLEST_DEVIATION * np.maximum(abs(low), abs(high))
        scales = np.where(varies, deviation, np.inf)
        first = np.arange(len(scales))  # column of each variable
        for group in categories(moments, low, high):
            width = high[group] - low[group]
            scales[group] = width * np.sqrt(2 * ((deviation[group] / width) ** 2).sum())
            first[group] = group.start
        numbers = np.full(len(scales), -1)
        numbers[varies] = np.unique(first[varies], return_inverse=True)[1]
        return cls(numbers, scales)


def variables_of(components: PrincipalComponents) -> Variables | None:
    """Return the variables of dense features, or None of sparse ones or more than 1,000."""
    rows = components.features
    if sparse.issparse(rows) or not components.centred or rows.shape[1] > EXACT_WIDTH:
        return None
    return Variables.of(components.moments, rows.min(axis=0), rows.max(axis=0))


def categories(
    moments: Moments, low: Float[np.ndarray, " d"], high: Float[np.ndarray, " d"]
) -> list[slice]:
    """Return the runs of two columns or more that are the values of one category.

    A column has two values if its variance is the largest that its mean allows (Bhatia & Davis
    2000). Two columns never have their larger values together if the mean product of their
    indicators is 0, and some column of a run always has it if the shares of rows add up to 1.
    """
    width = np.where(high > low, high - low, 1.0)
    shares = (moments.centre - low) / width
    variances = np.diag(moments.covariance) / width**2
    two = (high > low) & (abs(variances - shares * (1 - shares)) <= TOLERANCE)
    found, start = [], 0
    while start < len(two):
        end = _end(start, moments, two, shares, width)
        if end:
            found.append(slice(start, end))
        start = end or start + 1
    return found


def _end(
    start: int, moments: Moments, two: np.ndarray, shares: np.ndarray, width: np.ndarray
) -> int:
    """Return the end of the category that starts at a column, or 0 if none does."""
    total, end = 0.0, start
    while end < len(two) and two[end] and total < 1 - TOLERANCE:
        products = moments.covariance[end, start:end] / (width[end] * width[start:end])
        if (abs(products + shares[end] * shares[start:end]) > TOLERANCE).any():
            return 0
        total, end = total + shares[end], end + 1
    return end if end > start + 1 and abs(total - 1) <= TOLERANCE else 0
