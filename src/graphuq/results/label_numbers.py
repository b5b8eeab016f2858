"""Numbers that follow from the label means alone."""

import numpy as np
from jaxtyping import Float, Int
from scipy.special import entr

from graphuq.posterior.posterior import Posterior
from graphuq.results.uncertainty import class_probabilities, margin, rank_by_uncertainty


class LabelNumbers:
    """Labels, probabilities and uncertainty of every node; the base class of `Result`."""

    label_mean: Float[np.ndarray, "N *K"]
    posterior: Posterior

    @property
    def n_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.label_mean)

    @property
    def label_variance(self) -> Float[np.ndarray, " N"]:
        """``E|S(u_j)|² − |E S(u_j)|² = 1 − |label_mean|²``, in [0, 1]."""
        return 1 - (self.label_mean**2).reshape(self.n_nodes, -1).sum(axis=1)

    @property
    def mean_label_variance(self) -> float:
        """Label variance averaged over all nodes (Bertozzi et al. 2018, (9))."""
        return float(self.label_variance.mean())

    @property
    def class_probabilities(self) -> Float[np.ndarray, "N K"]:
        """Probability of each class at each node; for two classes those of −1 and of +1."""
        return class_probabilities(self.label_mean)

    @property
    def labels(self) -> Float[np.ndarray, " N"]:
        """Most probable label of each node: −1 or +1 (+1 on a tie), or the code of a class."""
        if self.label_mean.ndim == 2:
            return self.label_mean.argmax(axis=1).astype(np.float64)
        return np.where(self.label_mean >= 0, 1.0, -1.0)

    @property
    def entropy(self) -> Float[np.ndarray, " N"]:
        """``−Σ p log p`` over the classes of each node, in [0, log K]."""
        return np.asarray(entr(self.class_probabilities).sum(axis=1))

    @property
    def margin(self) -> Float[np.ndarray, " N"]:
        """Probability of the most probable class minus that of the next, in [0, 1]."""
        return margin(self.label_mean)

    def rank_by_uncertainty(self) -> Int[np.ndarray, " N"]:
        """Return node indices from the least to the most certain, by `margin`."""
        return rank_by_uncertainty(self.label_mean)

    def most_uncertain(self, n: int = 20) -> Int[np.ndarray, " n"]:
        """Return the n least certain unlabelled nodes, the least certain first."""
        return self._unlabelled_in(self.rank_by_uncertainty())[:n]

    def most_certain(self, n: int = 20) -> Int[np.ndarray, " n"]:
        """Return the n most certain unlabelled nodes, the most certain first."""
        return self._unlabelled_in(self.rank_by_uncertainty()[::-1])[:n]

    def _unlabelled_in(self, order: Int[np.ndarray, " N"]) -> Int[np.ndarray, " M"]:
        return order[~np.isin(order, self.posterior.labelled)]
