"""Check of convergence: the chains have converged, or the approximation is close."""

from typing import TYPE_CHECKING

from graphuq.results.approximation_error import CLOSE
from graphuq.results.diagnostics import RHAT_BOUND, Diagnostics
from graphuq.results.trust.base import Check, Level

if TYPE_CHECKING:
    from graphuq.results.result import Result

MIN_SHARE = 0.5  # share of approximate draws that are accepted, from which few of them repeat


def check_convergence(result: "Result") -> Check:
    """Check that the numbers are those of the posterior, by `Result.diagnostics`.

    Chains that have not converged are red, and so is a point, whose probabilities are 0 or 1.
    A Gaussian approximation is green if its probabilities are off by at most 0.05, and amber if
    they are off by more, or if that is unknown. Approximate draws that have converged, of
    `ModelAverage`, are green if half of them are accepted, and amber otherwise.
    """
    found = result.diagnostics
    if isinstance(found, Diagnostics):
        if found.converged and found.is_approximate and found.acceptance < MIN_SHARE:
            return Check(found.acceptance, MIN_SHARE, "amber", found.verdict)
        good = found.converged
        return Check(found.rhat, RHAT_BOUND, "green" if good else "red", found.verdict)
    if found.is_point or not found.converged:
        return Check(found.probability_error, CLOSE, "red", found.verdict)
    close = found.probability_error is not None and found.probability_error <= CLOSE
    level: Level = "green" if close else "amber"
    return Check(found.probability_error, CLOSE, level, found.verdict)
