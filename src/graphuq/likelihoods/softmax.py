"""Softmax: Gumbel noise is added before the largest of several fields is taken."""

import math

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from graphuq.distributions import Hyperparameter, check_range, parameter
from graphuq.likelihoods.base import Likelihood
from graphuq.likelihoods.multiclass import check_n_classes, class_count, own, restricted

GUMBEL_STD = math.pi / math.sqrt(6)


class Softmax(Likelihood):
    r"""``y_j = argmax_k (u_jk + γ g_jk)``, g of Gumbel's law at unit variance.

    The smooth relative of Chen's model F (MATH §2): ``p(y) ∝ exp(u_y / T)`` with the temperature
    ``T = γ √6 / π``. In γ it is comparable with `Probit` of several classes, and cheaper.

    Parameters
    ----------
    noise_std : float or Distribution, default 0.1
        γ > 0, in units of u.
    n_classes : int or Distribution, default 3
        K, from 2 on; two have two fields here. A distribution: how many classes there are is
        learnt, of which the labels show the first few.
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
        """``log softmax(u / T)`` of each label."""
        sharpness = GUMBEL_STD / jnp.asarray(self.noise_std, u.dtype)
        return own(jax.nn.log_softmax(restricted(u * sharpness, self.n_classes), axis=1), y)
