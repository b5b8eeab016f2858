"""The limit γ → 0 of probit and level set: u has the sign of every label."""

import numpy as np
from jaxtyping import Float

from graphuq.distributions import Hyperparameter
from graphuq.likelihoods.base import StepLikelihood
from graphuq.likelihoods.multiclass import check_n_classes, class_count
from graphuq.utils.arrays import Array, array_namespace


class NoiseFree(StepLikelihood):
    """``y_j = S(u_j)``: the prior conditioned on an orthant (Bertozzi et al. 2018, §3.5).

    Of several classes S is the largest of K fields. Where labels contradict the graph the posterior
    is narrow; where no combination of the eigenvectors fits them all it is empty, and samplers say
    so.

    Parameters
    ----------
    n_classes : int or Distribution, default 2
        K. A distribution: how many classes there are is learnt, of which the labels show the
        first few.
    """

    n_classes: Hyperparameter = class_count(2)

    def __check_init__(self) -> None:
        check_n_classes(self.n_classes)

    def one_vs_rest_likelihood(self) -> "NoiseFree":
        """Return the noise-free likelihood of two classes."""
        return NoiseFree() if self.is_multiclass else self

    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """0 and −∞."""
        xp = array_namespace(y)
        return xp.zeros_like(y), xp.full_like(y, -np.inf)
