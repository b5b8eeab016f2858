"""Check of convergence: the chains have converged, or the approximation is close."""

from typing import TYPE_CHECKING

from graphuq.results.diagnostics import CLOSE, RHAT_BOUND, Diagnostics
from graphuq.results.trust.base import Check

if TYPE_CHECKING:
    from graphuq.results.result import Result


def check_convergence(result: "Result") -> Check:
    """Check that the numbers are those of the posterior, by `Result.diagnostics`.

    Chains that have not converged are red, and so is a point, whose probabilities are 0 or 1.
    An approximation is green if half of its draws would be accepted as draws of the posterior,
    and amber otherwise, whether it is a Gaussian or consists of draws.
    """
    found = result.diagnostics
    if isinstance(found, Diagnostics):
        if found.converged and found.is_approximate and found.acceptance < CLOSE:
            return Check(found.acceptance, CLOSE, "amber", found.verdict)
        good = found.converged
        return Check(found.rhat, RHAT_BOUND, "green" if good else "red", found.verdict)
    if found.is_point or not found.converged:
        return Check(found.acceptance, CLOSE, "red", found.verdict)
    close = found.acceptance is not None and found.acceptance >= CLOSE
    return Check(found.acceptance, CLOSE, "green" if close else "amber", found.verdict)
