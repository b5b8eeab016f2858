"""Intervals of class probabilities: how far they depend on what is unknown of the field."""

from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq.results.joint_draws import coefficient_draws
from graphuq.results.leaving_out import label_shares
from graphuq.results.result import Result

N_DRAWS = 200
COVERAGE = 0.9


class ClassIntervals:
    """Intervals of ``p(y = k | u)`` at single nodes, where u has its posterior distribution.

    An interval is wide where no label is near, and narrow where labels of several classes are: then
    the item itself is ambiguous (Houlsby et al. 2011 separate the two kinds of uncertainty).

    Parameters
    ----------
    result : Result
        With a Gaussian approximation or draws, and a likelihood whose noise is known.
    """

    def __init__(self, result: Result) -> None:
        posterior = result.posterior
        self._likelihood, self._field = posterior.likelihood.unshifted, posterior.field.one_class
        self._mean = posterior.node_mean
        self._spectrum = posterior.spectrum
        self._rng = np.random.default_rng(0)
        self._coefficients = coefficient_draws(result.answer, posterior, N_DRAWS, self._rng)
        self._tail = self._rng.normal(size=self._coefficients.shape[:2])

    @staticmethod
    def of(result: Result) -> "ClassIntervals | None":
        """Return the intervals of a result, or None if its likelihood has no known noise.

        Nor has an average of ordered classes, whose components have noise of their own.
        """
        likelihood: Any = result.posterior.likelihood
        several = likelihood.is_ordered and np.ndim(likelihood.noise_std) > 0
        unknown = likelihood.uses_all_nodes or likelihood.learnt or several
        if unknown or not result.posterior.spectrum.has_eigenpairs:
            return None
        return ClassIntervals(result)

    def at(self, row: int) -> Float[np.ndarray, "K 2"]:
        """Return the ends of the 90 % interval of each class at a node."""
        scale = float(self._spectrum.node_scale[row])
        u = self._coefficients @ (scale * np.asarray(self._spectrum.basis[row]))
        if self._field.tail_std > 0:
            u = u + scale * float(self._field.tail_std) * self._tail
        if self._mean is not None:
            u = u + self._mean[row]
        ends = ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2)
        return np.asarray(np.quantile(self._shares(u), ends, axis=0).T)

    def _shares(self, u: Float[np.ndarray, "S n"]) -> Float[np.ndarray, "S K"]:
        """Return the probability of each class given u; n is 1 for two classes and for grades."""
        likelihood: Any = self._likelihood
        several, is_ordered = likelihood.is_multiclass, likelihood.is_ordered
        n_classes = likelihood.n_classes if is_ordered else u.shape[1]
        codes = np.arange(float(n_classes)) if several or is_ordered else np.array([-1.0, 1.0])
        fields = u[None] if several else u[None, :, 0]
        found = label_shares(self._likelihood, fields, codes)[0]
        return np.asarray(found / found.sum(axis=1, keepdims=True))
