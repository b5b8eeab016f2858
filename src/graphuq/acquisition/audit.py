"""Number of wrong labels by a random sample that was checked, which trusts no model."""

from typing import Any

import numpy as np
from scipy.stats import beta

from graphuq.errors import require
from graphuq.results.errors_left import ErrorCount


def audited_errors(wrong: Any, n_unlabelled: int, probability: float = 0.9) -> ErrorCount:
    """Return an estimate of the number of wrong labels from randomly chosen rows.

    The estimate is unbiased if each row was drawn at random from the unlabelled ones, with
    ``query(rule="random")``, and its class was predicted before its label was seen. If labels
    were added between the draws, it is an estimate of the average error over that time.

    Parameters
    ----------
    wrong : array_like of bool, shape (M,)
        Whether the prediction of each audited row was wrong.
    n_unlabelled : int
        Number of rows whose labels are predicted now.
    probability : float, default 0.9
        Of the interval by Clopper and Pearson (1934), in (0, 1).

    Returns
    -------
    ErrorCount
        ``expected``, ``lower`` and ``upper``.

    Raises
    ------
    InvalidInput
        If no row was audited, or an argument is out of range.

    Examples
    --------
    >>> import graphuq as gq
    >>> [round(x) for x in gq.acquisition.audited_errors([True] + 39 * [False], 1000)]
    [25, 1, 113]
    """
    marks = np.asarray(wrong)
    require(marks.ndim == 1 and len(marks) > 0, "wrong", f"shape {marks.shape}", "audit 1 row")
    require(
        bool(np.isin(marks, [0, 1]).all()), "wrong", "values other than 0 and 1", "give booleans"
    )
    require(n_unlabelled >= 0, "n_unlabelled", f"{n_unlabelled!r}", "give a number of rows")
    require(0 < probability < 1, "probability", f"{probability!r}", "use a number in (0, 1)")
    n, k, tail = len(marks), int(marks.sum()), (1 - probability) / 2
    lower = 0.0 if k == 0 else float(beta.ppf(tail, k, n - k + 1))
    upper = 1.0 if k == n else float(beta.ppf(1 - tail, k + 1, n - k))
    return ErrorCount(*(n_unlabelled * share for share in (k / n, lower, upper)))
