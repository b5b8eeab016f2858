"""Which few variables of a table tell the classes, by the evidence of the labels.

A set S of variables and a rate R give labels the covariance ``exp(−R · mean of δ_v over S)``, where
δ_v is the difference of two rows in a variable, and 1 on average. Labels count as columns of 0 and
1 with Gaussian noise, so that the evidence of a set has a closed form. Each number of variables has
the same prior probability, and so has each set of this number: a set that few labels find among
many pays for it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import gammaln

RATES = (0.5, 2.0, 8.0)  # R, equally probable
NOISE = 0.3  # variance of the noise of a column of labels, relative to that of the field
MAX_CHOSEN = 8  # variables of a set
MAX_LABELS = 150  # which choose; a random part of more


class FewVariables(NamedTuple):
    """A set of variables.

    Attributes
    ----------
    chosen : numpy.ndarray of int, shape (s,)
    rate : float
        R.
    log_prior : float
        Of the set and the rate.
    """

    chosen: Int[np.ndarray, " s"]
    rate: float
    log_prior: float


def few_variables(
    differences: Float[np.ndarray, "V n n"], classes: Int[np.ndarray, " n"]
) -> FewVariables:
    """Return the likeliest set of up to eight variables that is found by adding one at a time.

    Parameters
    ----------
    differences : numpy.ndarray, shape (V, n, n)
        δ_v of each variable, between labelled rows; V is 2 or more.
    classes : numpy.ndarray of int, shape (n,)
        At least two.
    """
    n_variables = len(differences)
    evidence = evidence_of(classes)
    total, best = np.zeros(differences.shape[1:]), None
    chosen: list[int] = []
    score = -np.inf
    while len(chosen) < min(MAX_CHOSEN, n_variables - 1):
        size = len(chosen) + 1
        others = [v for v in range(n_variables) if v not in chosen]
        found = [
            (evidence((total + differences[v]) / size, rate), v, rate)
            for v in others
            for rate in RATES
        ]
        log_prior = _log_prior(size, n_variables)
        log_evidence, variable, rate = max(found)
        if log_evidence + log_prior <= score:
            break
        score = log_evidence + log_prior
        chosen.append(variable)
        total = total + differences[variable]
        best = FewVariables(np.sort(chosen), rate, log_prior)
    assert best is not None
    return best


def evidence_of(
    classes: Int[np.ndarray, " n"],
) -> Callable[[Float[np.ndarray, "n n"], float], float]:
    """Return the log evidence, up to a constant, as a function of differences and a rate.

    The columns of K classes add up to 1, and so count as K − 1.
    """
    columns = (classes[:, None] == np.unique(classes)).astype(np.float64)
    columns -= columns.mean(axis=0)
    columns /= np.sqrt((columns**2).mean())
    count = columns.shape[1] - 1
    share, noise = count / columns.shape[1], NOISE * np.eye(len(classes))

    def log_evidence(differences: Float[np.ndarray, "n n"], rate: float) -> float:
        try:
            root = cholesky(np.exp(-rate * differences) + noise, lower=True, check_finite=False)
        except LinAlgError:
            return -np.inf
        left = solve_triangular(root, columns, lower=True, check_finite=False)
        return float(-share * (left**2).sum() / 2 - count * np.log(np.diag(root)).sum())

    return log_evidence


def _log_prior(size: int, n_variables: int) -> float:
    """Return the log probability of a set of a size, and of a rate."""
    sets = gammaln(n_variables + 1) - gammaln(size + 1) - gammaln(n_variables - size + 1)
    return float(-np.log(n_variables) - sets - np.log(len(RATES)))
