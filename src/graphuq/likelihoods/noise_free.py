"""Noise-free likelihood: the limit γ → 0 of probit and level set."""

import numpy as np
from jaxtyping import Float

from graphuq.distributions import Hyperparameter
from graphuq.likelihoods.base import StepLikelihood
from graphuq.likelihoods.multiclass import check_n_classes, class_count
from graphuq.utils.arrays import Array, array_namespace


class NoiseFree(StepLikelihood):
    """Noise-free model ``y_j = S(u_j)``: the prior conditioned on an orthant.

    Source: Bertozzi et al. 2018, §3.5. S is the sign of u for two classes, and the largest of K
    fields for more. If labels contradict the graph, the posterior is narrow. If no combination of
    the eigenvectors fits all labels, the posterior is empty and samplers raise an error.

    Parameters
    ----------
    n_classes : int or Distribution, default 2
        K. With a distribution the number of classes is learnt; the labelled classes come first.
    """

    n_classes: Hyperparameter = class_count(2)

    def __check_init__(self) -> None:
        check_n_classes(self.n_classes)

    def one_vs_rest_likelihood(self) -> "NoiseFree":
        """Return the noise-free likelihood of two classes."""
        return NoiseFree() if self.is_multiclass else self

    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """Return 0 and −∞ for each label."""
        xp = array_namespace(y)
        return xp.zeros_like(y), xp.full_like(y, -np.inf)
