"""Quasi-Newton maximisation of an evidence over bounded logarithms of hyperparameters."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

FAILED = 1e10  # loss where there is no evidence; larger than any that is finite


class Optimum(NamedTuple):
    """Point where L-BFGS-B stopped.

    Attributes
    ----------
    at : numpy.ndarray, shape (p,)
    loss : float
    n_evaluations : int
    """

    at: Float[np.ndarray, " p"]
    loss: float
    n_evaluations: int


def minimize_loss(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: Float[np.ndarray, " p"],
    bounds: Sequence[tuple[float, float]] | Float[np.ndarray, "p 2"],
    *,
    max_iterations: int,
    loss_tolerance: float,
    gradient_tolerance: float,
) -> Optimum:
    """Minimise minus a log evidence by L-BFGS-B within bounds.

    Parameters
    ----------
    loss : callable
        Returns the loss and its gradient, or `FAILED` and zeros where there is no evidence.
    start : numpy.ndarray, shape (p,)
    bounds : sequence of (low, high)
    max_iterations : int
    loss_tolerance, gradient_tolerance : float
        ``ftol`` and ``gtol`` of `scipy.optimize.minimize`.
    """
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": max_iterations, "ftol": loss_tolerance, "gtol": gradient_tolerance},
    )
    return Optimum(found.x, float(found.fun), int(found.nfev))


def log_derivative(
    function: Callable[[np.ndarray], np.ndarray], at: np.ndarray, step: float = 1e-5
) -> np.ndarray:
    """Return the derivative of a smooth function of logarithms, by central differences."""
    return (function(at + step) - function(at - step)) / (2 * step)
