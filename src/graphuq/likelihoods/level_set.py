"""Bayesian level-set likelihood: noise is added after the threshold."""

import math

from jaxtyping import Float

from graphuq.distributions import Hyperparameter, check_range, parameter
from graphuq.likelihoods.base import StepLikelihood
from graphuq.likelihoods.multiclass import check_n_classes, class_count
from graphuq.utils.arrays import Array, array_namespace


class LevelSet(StepLikelihood):
    r"""Level-set model ``y_j = S(u_j) + γ ε_j``, ε_j ~ N(0, 1).

    The log likelihood is ``−|y − S(u)|² / (2 γ²)`` (Bertozzi et al. 2018, §3.2; Chen, §3.5). For
    two classes S is the sign of one field, and a label on the wrong side costs ``2/γ²``. For more
    classes ``S(u) = e_k`` with k the largest of K fields, and a wrong label costs ``1/γ²``. The
    likelihood is normalised over the K possible labels, so that γ can be learnt.

    Parameters
    ----------
    noise_std : float or Distribution, default 0.1
        γ > 0, in units of the label: ±1, or the unit vector of its class.
    n_classes : int or Distribution, default 2
        K. With a distribution the number of classes is learnt; the labelled classes come first.
    """

    noise_std: Hyperparameter = parameter(0.1)
    n_classes: Hyperparameter = class_count(2)

    def __check_init__(self) -> None:
        check_range("noise_std", self.noise_std, 0.0, open=True, remedy="use γ > 0")
        check_n_classes(self.n_classes)

    def one_vs_rest_likelihood(self) -> "LevelSet":
        """Return ``LevelSet(√2 γ)``: an error costs 1/γ² here and 2/γ² with two classes."""
        return LevelSet(self.noise_std * math.sqrt(2.0)) if self.is_multiclass else self

    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """Return ``−log(1 + (K − 1) exp(−cost))``, and the same minus the cost."""
        xp = array_namespace(y)
        n_classes = xp.asarray(self.n_classes, y.dtype)
        cost = (2.0 if not self.is_multiclass else 1.0) / xp.asarray(self.noise_std, y.dtype) ** 2
        right = xp.zeros_like(y) - xp.log1p((n_classes - 1) * xp.exp(-cost))
        return right, right - cost
