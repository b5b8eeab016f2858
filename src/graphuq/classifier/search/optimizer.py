"""Climbing the evidence: quasi-Newton steps over logarithms, from several starts."""

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from graphuq.distributions import Distribution
from graphuq.errors import InvalidInput, require
from graphuq.evidence.graph_gradient import GraphEvidence

MAX_ITERATIONS = 60
TAILS = 0.005  # of a distribution, beyond which is not searched
FAILED = 1e10  # takes the place of −log evidence where there is none


class Climbed:
    """A number that is climbed over, in its logarithm."""

    def __init__(self, name: str, spec: Any) -> None:
        self.law = spec if isinstance(spec, Distribution) else None
        low, high = self.law.support if self.law is not None else spec
        if self.law is not None:
            low = max(low, float(self.law.law.ppf(TAILS)))
            high = min(high, float(self.law.law.ppf(1 - TAILS)))
        require(
            0 < low < high < np.inf,
            "parameters",
            f"{name} from {low!r} to {high!r}",
            "give a range of positive numbers, low < high",
        )
        self.low, self.high = float(np.log(low)), float(np.log(high))

    def log_density(self, x: Any) -> float:
        """Of the logarithm, of all components."""
        if self.law is None:
            return 0.0
        return float(np.sum(self.law.law.logpdf(np.exp(x)) + x))

    def slope(self, x: Any) -> Any:
        """Its derivative in each, by central differences."""
        if self.law is None:
            return np.zeros_like(x)
        step = 1e-5
        above, below = (self.law.law.logpdf(np.exp(x + s)) + x + s for s in (step, -step))
        return (above - below) / (2 * step)


class Climb:
    """From several starts, by L-BFGS-B over logarithms."""

    def __init__(self, model: GraphEvidence, climbed: dict[str, Climbed], own: Any) -> None:
        self.model, self.climbed = model, climbed
        self.own = {name: np.asarray(own[name], dtype=float) for name in climbed}
        sizes = [self.own[name].size for name in climbed]
        self.ends = np.cumsum(sizes)[:-1]
        self.bounds = [
            (c.low, c.high) for c, n in zip(climbed.values(), sizes, strict=True) for _ in range(n)
        ]

    def starts(self, n_starts: int, seed: int) -> list[np.ndarray]:
        """The estimator's own, within the bounds, and quasi-random ones."""
        low, high = np.array(self.bounds).T
        own = np.concatenate([np.log(value).ravel() for value in self.own.values()])
        points = qmc.Halton(len(low), rng=np.random.default_rng(seed)).random(n_starts - 1)
        return [np.clip(own, low, high), *(low + (high - low) * points)]

    def run(self, at: np.ndarray) -> tuple[dict[str, Any], float, int]:
        """Values at the top, log density of their laws, and how often the evidence was asked."""
        found = minimize(
            self._loss,
            at,
            jac=True,
            method="L-BFGS-B",
            bounds=self.bounds,
            options={"maxiter": MAX_ITERATIONS, "ftol": 1e-9, "gtol": 1e-5},
        )
        return self._values(found.x), self._log_density(found.x), int(found.nfev)

    def _values(self, x: np.ndarray) -> dict[str, Any]:
        parts = zip(self.climbed, np.split(np.exp(x), self.ends), strict=True)
        return {name: float(part[0]) if self.own[name].ndim == 0 else part for name, part in parts}

    def _log_density(self, x: np.ndarray) -> float:
        parts = zip(self.climbed.values(), np.split(x, self.ends), strict=True)
        return sum(c.log_density(part) for c, part in parts)

    def _loss(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            value, gradient = self.model.value_and_gradient(self._values(x))
        except InvalidInput:
            return FAILED, np.zeros_like(x)
        parts = zip(self.climbed.items(), np.split(x, self.ends), strict=True)
        slope = [np.ravel(gradient[name]) + c.slope(part) for (name, c), part in parts]
        return -value - self._log_density(x), -np.concatenate(slope)
