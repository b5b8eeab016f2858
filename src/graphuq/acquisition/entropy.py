"""Largest entropy first."""

import numpy as np
from jaxtyping import Float

from graphuq.acquisition.pool import Pool


class Entropy:
    """Score ``−Σ_k p_k log p_k``, in nats."""

    def scores(self, pool: Pool) -> Float[np.ndarray, " M"]:
        """Return the entropy of the class of each candidate."""
        return entropy(pool.probabilities)


def entropy(p: Float[np.ndarray, "*M K"]) -> Float[np.ndarray, "*M"]:
    """Return ``−Σ p log p`` over the last axis, in nats; 0 log 0 is 0."""
    logs = np.log(p, where=p > 0, out=np.zeros_like(p))
    return np.asarray(-(p * logs).sum(axis=-1))
