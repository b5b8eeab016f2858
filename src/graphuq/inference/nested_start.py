"""Where nested expectation propagation starts."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class StartingSites(NamedTuple):
    """Sites of the first labels, from which sweeps start.

    Attributes
    ----------
    weights, shifts : numpy.ndarray, shape (j, K)
        As in `nested_sites.NestedSites`.
    """

    weights: Float[np.ndarray, "j K"]
    shifts: Float[np.ndarray, "j K"]

    def of_one_field(self, labels: Int[np.ndarray, " j"]) -> Float[np.ndarray, "2 j"]:
        """Return precisions and shifts of the sites of ``u = (u₁ − u₀)/√2``, for two classes.

        Parameters
        ----------
        labels : numpy.ndarray of int, shape (j,)
            Classes, 0 or 1.
        """
        rows, other = np.arange(len(labels)), 1 - labels
        own = self.weights[rows, labels] / self.weights.sum(axis=1)
        shift = np.sqrt(2.0) * own * self.shifts[rows, other]
        return np.stack([2 * own * self.weights[rows, other], (2 * labels - 1) * shift])

    def in_order(self, order: Int[np.ndarray, " j"]) -> "StartingSites":
        """Return the sites whose labels are in the given order, in the original one."""
        place = np.argsort(order)
        return StartingSites(self.weights[place], self.shifts[place])

    def before(self, others: "StartingSites") -> "StartingSites":
        """Return these sites, and those of others for the labels that follow."""
        n = len(self.weights)
        pairs = (self.weights, others.weights), (self.shifts, others.shifts)
        return StartingSites(*(np.concatenate([own, other[n:]]) for own, other in pairs))
