"""Weights of fields for labels that were drawn class by class."""

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from graphuq.posterior.posterior import Posterior

MIN_SHARE = 0.05  # smaller shares have the weight of this one, which bounds the weights
MAX_POWER = 6.0  # labels of a class that tell nothing of its share; more count as drawn at random
MANY = 15  # labels of each class, from which unlabelled nodes tell the shares, and weights do not
MAX_NODES = 500  # random nodes, over which class shares are averaged


class ClassShares:
    """Two classes: log weight of a field whose numbers of labels tell nothing of class shares.

    If n_k nodes of each class are drawn at random and shown, node j of class k has the probability
    ``p(y_j = k | u_j) / (N s_k(u))`` with ``s_k = Σ_i p(y_i = k | u_i) / N``, the share of the
    class. The likelihood of choice-based sampling (Manski & Lerman 1977, (5)) has therefore the
    factors ``s_k^(−n_k)`` beside the usual ``p(y_j | u_j)``. The prior gets the factor
    ``s_0 s_1``, as if one more label of each class had been drawn at random, so that equal shares
    are likely beforehand. The weight is ``∏ s_k^(1 − n_k)``. Shares below `MIN_SHARE` weigh as
    that, and the powers are at most `MAX_POWER`: other weights have tails that draws do not cover.
    With more labels of each class the unlabelled nodes tell the shares (`weigh_shares`).

    Parameters
    ----------
    rows : numpy.ndarray, shape (M, L)
        Map from coefficients to the field at M nodes.
    counts : numpy.ndarray, shape (2,)
        n_k, the sum of the weights of the labels.
    noise_std : float
        γ of the probit.
    """

    def __init__(
        self,
        rows: Float[np.ndarray, "M L"],
        counts: Float[np.ndarray, "2"],
        noise_std: float,
    ) -> None:
        self._scaled_rows, self.counts = (rows / noise_std).astype(np.float32), counts

    @staticmethod
    def of(posterior: Posterior) -> "ClassShares | None":
        """Return them for labels of two classes that were drawn class by class, or None.

        The nodes are always the same.
        """
        if not weigh_shares(posterior):
            return None
        spectrum, n_nodes = posterior.spectrum, posterior.spectrum.n_nodes
        nodes = np.random.default_rng(0).permutation(n_nodes)[:MAX_NODES]
        rows = np.asarray(spectrum.basis[nodes]) * spectrum.node_scale[nodes, None]
        counts = counts_of_two(posterior)
        return ClassShares(rows, counts, float(posterior.likelihood.latent_noise_std))

    def log_weights(self, coefficients: Float[np.ndarray, "S L"]) -> Float[np.ndarray, " S"]:
        """Return ``Σ_k (1 − n_k) log s_k`` of each draw."""
        u = coefficients.astype(np.float32) @ self._scaled_rows.T
        share = ndtr(u).mean(axis=1, dtype=np.float64)
        shares = np.maximum(np.stack([1 - share, share], axis=1), MIN_SHARE)
        return np.asarray(np.log(shares) @ -np.clip(self.counts - 1, 0, MAX_POWER))


def counts_of_two(posterior: Posterior) -> Float[np.ndarray, "2"]:
    """Return the sum of the weights of the labels of each of two classes."""
    positive = np.asarray(posterior.labels) > 0
    return np.bincount(positive, weights=posterior.label_weights, minlength=2).astype(float)


def are_many_of_two(posterior: Posterior) -> bool:
    """Return whether there are two classes, and so many labels of each that no weights are used."""
    several = posterior.likelihood.has_codes
    return not several and bool(counts_of_two(posterior).min() >= MANY)


def weigh_shares(posterior: Posterior) -> bool:
    """Return whether fields have weights of `ClassShares`: for few labels of two classes.

    With many, and with several classes, `graphuq.results.unknown_shares` estimates the shares.
    """
    several = posterior.likelihood.has_codes
    return posterior.label_design == "by-class" and not several and not are_many_of_two(posterior)
