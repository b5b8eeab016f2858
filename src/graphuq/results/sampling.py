"""The draws of a sampled result, and whether its chains have converged."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from graphuq.errors import IncompatibleParts
from graphuq.inference.draws import Draws
from graphuq.results.convergence import convergence_of
from graphuq.results.diagnostics import monitored_functionals

if TYPE_CHECKING:
    from graphuq.results.result import Result


def is_sampled(result: "Result") -> bool:
    """Return whether a sampler made the result, so that its answer is draws."""
    return isinstance(result.answer, Draws)


def draws(result: "Result") -> Draws:
    """Return the kept draws of the chains.

    Raises
    ------
    IncompatibleParts
        If the result comes from an approximation.
    """
    if not isinstance(result.answer, Draws):
        average = result.posterior.is_weighted
        remedy = "inference='model-average'" if average else "a sampler, such as PCN()"
        raise IncompatibleParts(
            f"this result is an approximation ({result.answer.description}) and has no draws; "
            f"use {remedy}"
        )
    return result.answer


def functionals(result: "Result") -> dict[str, Float[np.ndarray, "C S"]]:
    """Return the functionals whose convergence is monitored; see `monitored_functionals`."""
    return monitored_functionals(result.posterior, draws(result))


def convergence_table(result: "Result") -> dict[str, dict[str, float]]:
    """Return R-hat and effective sample sizes of each monitored functional.

    Returns
    -------
    dict
        A dictionary ``{"rhat", "ess_bulk", "ess_tail"}`` for each name.

    Raises
    ------
    IncompatibleParts
        If the result comes from an approximation.
    """
    return convergence_of(functionals(result))
