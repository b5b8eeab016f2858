"""Probit likelihood: noise is added before the threshold."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr

from graphuq.distributions import Hyperparameter, check_range, is_learnt, parameter
from graphuq.likelihoods.base import Likelihood, PerLabel, Tilted
from graphuq.likelihoods.multiclass import check_n_classes, class_count, log_probit_probability
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.part import part_field
from graphuq.utils.special_functions import log_normal_cdf, normal_hazard, probit_label_mean


class Probit(Likelihood):
    r"""Probit model ``y_j = S(u_j + γ ε_j)``, ε_j ~ N(0, 1).

    Source: Bertozzi et al. 2018, §3.1. For two classes S is the sign of one field. For more it is
    the largest of K fields, each with its own noise.

    Parameters
    ----------
    noise_std : float or Distribution, default 0.1
        γ > 0, in units of u. The prior variance of u is 1 on average over the nodes.
    n_classes : int or Distribution, default 2
        K. With a distribution the number of classes is learnt; the labelled classes come first.
    random_labels : bool, default False
        What is reported of a node. False: S(u), its class without noise. True: a label with noise
        of its own, like those that were given, so that γ may stand for all that the field does
        not explain.
    """

    noise_std: Hyperparameter = parameter(0.1)
    n_classes: Hyperparameter = class_count(2)
    random_labels: bool = part_field(default=False, static=True)
    has_gaussian_tails: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_range("noise_std", self.noise_std, 0.0, open=True, remedy="use γ > 0")
        check_n_classes(self.n_classes)

    @property
    def latent_noise_std(self) -> Hyperparameter:
        """Standard deviation γ of the noise that is added to u before the threshold."""
        return self.noise_std

    @property
    def link(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Weight 1 and scale γ with ``random_labels``, if γ is a number."""
        if not self.random_labels or is_learnt(self.noise_std):
            return None
        return np.ones(1), np.array([float(self.noise_std)])

    @property
    def probit_noise_std(self) -> Hyperparameter:
        """Standard deviation γ of this probit."""
        return self.noise_std

    def log_prob(self, u: Float[Array, "J *K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return ``log Φ(y u / γ)``, or for K classes what `log_probit_probability` returns."""
        if u.ndim == y.ndim:
            return log_normal_cdf(y * u / self.noise_std)
        return log_probit_probability(u, y, self.noise_std, self.n_classes)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """Return ``log Φ(y mean / √(γ² + variance))``, for two classes."""
        return log_normal_cdf(y * mean / array_namespace(mean).sqrt(self.noise_std**2 + variance))

    def tilt(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> Tilted:
        """Return `log_partition` and its derivatives in closed form, for two classes."""
        total = self.noise_std**2 + variance
        z = y * mean / np.sqrt(total)
        slope = normal_hazard(z)
        return Tilted(log_ndtr(z), y * slope / np.sqrt(total), -slope * (z + slope) / total)

    def tilted_slopes(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> dict[str, float]:
        """Return the derivative in γ; Z solves the heat equation ``∂Z/∂γ² = Z''/2``."""
        _, first, second = self.tilt(mean, variance, y)
        return {"noise_std": float(self.noise_std * (second + first**2).sum())}

    def tilted_label_mean(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> PerLabel:
        """Return ``E sign(u)`` under likelihood × Gaussian; see `probit_label_mean`."""
        return probit_label_mean(mean, variance, y, float(self.noise_std))
