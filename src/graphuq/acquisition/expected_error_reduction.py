"""Fewest expected errors after the label."""

import numpy as np
from jaxtyping import Float

from graphuq.acquisition.pool import Pool
from graphuq.acquisition.variance_reduction import VarianceReduction

N_CANDIDATES = 100  # candidates looked at, those whose label moves probabilities most
N_TARGETS = 500  # targets that stand for all
MIN_PROBABILITY = 0.02  # of a label that is tried; its share of the expectation is lost below


class ExpectedErrorReduction:
    """Minus the expected number of errors after the label (Roy & McCallum 2001).

    The score is ``−Σ_y p_cy Σ_i (1 − max_k p_ik)``, where the p_i are those after a label y at c
    by the Gaussian look-ahead. Zhu, Lafferty & Ghahramani (2003) do the same with harmonic
    functions. Only the candidates with the largest scores of `VarianceReduction`, which expands
    the look-ahead to second order, are looked at; the others score −∞.
    """

    def scores(self, pool: Pool) -> Float[np.ndarray, " M"]:
        """Return minus the expected share of errors among the targets for each candidate."""
        found = np.full(len(pool.rows), -np.inf)
        looked_at = np.argsort(-VarianceReduction().scores(pool), kind="stable")[:N_CANDIDATES]
        targets = np.arange(min(N_TARGETS, len(pool.target_probabilities)))
        for at in looked_at:
            labels = np.flatnonzero(pool.probabilities[at] >= MIN_PROBABILITY)
            chances = pool.probabilities[at, labels]
            later = pool.target_probabilities_given(int(at), labels, targets)
            errors = 1 - later.max(axis=2).mean(axis=1)
            found[at] = -(chances * errors).sum() / chances.sum()
        return found
