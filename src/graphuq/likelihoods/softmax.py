"""Softmax likelihood: Gumbel noise is added before the largest of K fields is taken."""

import math

from jaxtyping import Float

from graphuq.distributions import Hyperparameter, check_range, parameter
from graphuq.likelihoods.base import Likelihood
from graphuq.likelihoods.multiclass import check_n_classes, class_count, label_column, restricted
from graphuq.utils.arrays import Array, array_namespace, without_gradient

GUMBEL_STD = math.pi / math.sqrt(6)  # standard deviation of the standard Gumbel distribution


class Softmax(Likelihood):
    r"""Softmax model ``y_j = argmax_k (u_jk + γ g_jk)``, g Gumbel noise of unit variance.

    It is a smooth relative of Chen's model F: ``p(y) ∝ exp(u_y / T)`` with the temperature
    ``T = γ √6 / π``. Its γ is comparable with that of the multiclass `Probit`, and it is cheaper.

    Parameters
    ----------
    noise_std : float or Distribution, default 0.1
        γ > 0, in units of u.
    n_classes : int or Distribution, default 3
        K, at least 2; two classes have two fields here. With a distribution the number of classes
        is learnt; the labelled classes come first.
    """

    noise_std: Hyperparameter = parameter(0.1)
    n_classes: Hyperparameter = class_count(3)

    def __check_init__(self) -> None:
        check_range("noise_std", self.noise_std, 0.0, open=True, remedy="use γ > 0")
        check_n_classes(self.n_classes)

    @property
    def is_multiclass(self) -> bool:
        """True, also for two classes."""
        return True

    @property
    def probit_noise_std(self) -> Hyperparameter:
        """γ: a probit with noise of the same variance approximates the softmax."""
        return self.noise_std

    def log_prob(self, u: Float[Array, "J K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return ``log softmax(u / T)`` of each label."""
        xp = array_namespace(u)
        sharpness = GUMBEL_STD / xp.asarray(self.noise_std, u.dtype)
        scaled = restricted(u * sharpness, self.n_classes)
        scaled -= without_gradient(scaled.max(axis=1, keepdims=True))
        total = xp.log(xp.exp(scaled).sum(axis=1, keepdims=True))
        return label_column(scaled - total, y)
