"""Optimiser of `EvidenceSearch`: quasi-Newton steps over logarithms, from several starts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import qmc

from graphuq.distributions import Distribution
from graphuq.errors import InvalidInput, require
from graphuq.evidence.graph_gradient import GraphEvidence
from graphuq.evidence.quasi_newton import FAILED, log_derivative, minimize_loss

MAX_ITERATIONS = 60
TAIL_PROBABILITY = 0.005  # mass of each tail of a distribution that is not searched


class ContinuousParameter:
    """Continuous parameter that is optimised in its logarithm."""

    def __init__(self, name: str, spec: Distribution | Sequence[float]) -> None:
        self.distribution: Distribution | None = None
        if isinstance(spec, Distribution):
            self.distribution = spec
            low, high = spec.support
            low = max(low, float(spec.frozen.ppf(TAIL_PROBABILITY)))
            high = min(high, float(spec.frozen.ppf(1 - TAIL_PROBABILITY)))
        else:
            low, high = spec
        require(
            0 < low < high < np.inf,
            "parameters",
            f"{name} from {low!r} to {high!r}",
            "give a range of positive numbers, low < high",
        )
        self.low, self.high = float(np.log(low)), float(np.log(high))

    def log_density(self, x: Float[np.ndarray, " k"]) -> float:
        """Return the log density of the logarithms, summed over all components."""
        return float(np.sum(self._log_densities(x)))

    def slope(self, x: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """Return the derivative of `log_density` in each component."""
        return log_derivative(self._log_densities, x)

    def _log_densities(self, x: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        if self.distribution is None:
            return np.zeros_like(x)
        result: np.ndarray = self.distribution.frozen.logpdf(np.exp(x)) + x
        return result


class Optimizer:
    """Maximisation by L-BFGS-B over logarithms, from several starts."""

    def __init__(
        self,
        model: GraphEvidence,
        parameters: dict[str, ContinuousParameter],
        initial: Mapping[str, Any],
    ) -> None:
        self.model, self.parameters = model, parameters
        self.initial = {name: np.asarray(initial[name], dtype=float) for name in parameters}
        sizes = [self.initial[name].size for name in parameters]
        self.ends = np.cumsum(sizes)[:-1]
        self.bounds = [
            (part.low, part.high)
            for part, n in zip(parameters.values(), sizes, strict=True)
            for _ in range(n)
        ]

    def starts(self, n_starts: int, seed: int) -> list[np.ndarray]:
        """Return the estimator's values, clipped to the bounds, and quasi-random points."""
        low, high = np.array(self.bounds).T
        initial = np.concatenate([np.log(value).ravel() for value in self.initial.values()])
        points = qmc.Halton(len(low), seed=np.random.default_rng(seed)).random(n_starts - 1)
        return [np.clip(initial, low, high), *(low + (high - low) * points)]

    def run(self, at: np.ndarray) -> tuple[dict[str, Any], float, int]:
        """Return the values at the maximum, their log density, and the number of evaluations."""
        found = minimize_loss(
            self._loss,
            at,
            self.bounds,
            max_iterations=MAX_ITERATIONS,
            loss_tolerance=1e-9,
            gradient_tolerance=1e-5,
        )
        return self._values(found.at), self._log_density(found.at), found.n_evaluations

    def _values(self, x: np.ndarray) -> dict[str, Any]:
        parts = zip(self.parameters, np.split(np.exp(x), self.ends), strict=True)
        return {
            name: float(part[0]) if self.initial[name].ndim == 0 else part for name, part in parts
        }

    def _log_density(self, x: np.ndarray) -> float:
        parts = zip(self.parameters.values(), np.split(x, self.ends), strict=True)
        return sum(one.log_density(part) for one, part in parts)

    def _loss(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            value, gradient = self.model.value_and_gradient(self._values(x))
        except InvalidInput:
            return FAILED, np.zeros_like(x)
        parts = zip(self.parameters.items(), np.split(x, self.ends), strict=True)
        slope = [np.ravel(gradient[name]) + one.slope(part) for (name, one), part in parts]
        return -value - self._log_density(x), -np.concatenate(slope)
