"""Likelihood of a field with a prior mean, as a function of the field without it."""

import dataclasses
import functools
import types
from collections.abc import Mapping
from typing import Any, ClassVar, cast

import numpy as np
from jaxtyping import Float

from graphuq.likelihoods.base import Likelihood, PerLabel, Tilted
from graphuq.utils.arrays import Array


class ShiftedLikelihood(Likelihood):
    r"""The likelihood ``p(y | μ + f)`` as a function of f, a field of mean zero.

    Posteriors are explored in f, so that every method that reads the likelihood through its
    attributes honours μ. Thresholds of f are at −μ in place of 0, so samplers that need a step at
    0 refuse. `shifted` makes a subclass with the fields of the likelihood itself, so that its
    hyperparameters can be learnt.

    Attributes
    ----------
    prior_mean : float or array, shape (J,)
        μ at the labelled nodes.
    """

    prior_mean: Any = 0.0  # type: ignore[misc]  # a field here, a constant of other likelihoods
    kind: ClassVar[Any] = Likelihood
    is_step: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = False

    @property
    def unshifted(self) -> Likelihood:
        """The likelihood as a function of ``u = μ + f``."""
        return _made(self.kind, vars(self))

    @property
    def latent_noise_std(self) -> None:
        """Not available (None): the threshold of the noisy field is at −μ."""
        return

    @property
    def probit_noise_std(self) -> None:
        """Not available (None): it is a probit of ``μ + f``."""
        return

    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """Refuse: the levels are those of u, and the threshold in f is not 0."""
        return Likelihood.log_levels(self, y)

    def log_prob(self, u: Float[Array, " J"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return the log probability of each label given f."""
        return self.unshifted.log_prob(u + self.prior_mean, y)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """Return the log probability of each label under a Gaussian for f."""
        return self.unshifted.log_partition(mean + self.prior_mean, variance, y)

    def tilt(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> Tilted:
        """Return `log_partition` and its derivatives in the mean of f."""
        return self.unshifted.tilt(mean + self.prior_mean, variance, y)

    def tilted_label_mean(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> PerLabel:
        """Return ``E sign(μ + f)`` under likelihood × Gaussian."""
        return self.unshifted.tilted_label_mean(mean + self.prior_mean, variance, y)

    def tilted_slopes(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> dict[str, float]:
        """Return derivatives of the sum of `log_partition`, with that in a constant μ."""
        own = self.unshifted.tilted_slopes(mean + self.prior_mean, variance, y)
        return {**own, "prior_mean": float(self.tilt(mean, variance, y).first.sum())}

    def __repr__(self) -> str:
        return f"{self.unshifted} of a field with a mean"

    def __reduce__(self) -> Any:
        return shifted, (self.unshifted, self.prior_mean)


def shifted(
    likelihood: Likelihood, prior_mean: float | Float[np.ndarray, " J"]
) -> ShiftedLikelihood:
    """Return the likelihood of labels as a function of a field without its prior mean.

    Parameters
    ----------
    likelihood : Likelihood
    prior_mean : float or numpy.ndarray, shape (J,)
        μ at the labelled nodes.
    """
    values = {**vars(likelihood.unshifted), "prior_mean": prior_mean}
    return cast(ShiftedLikelihood, _made(_shifted_kind(type(likelihood.unshifted)), values))


@functools.cache
def _shifted_kind(kind: type[Likelihood]) -> type[Likelihood]:
    """Return the subclass of `ShiftedLikelihood` with the fields of a kind of likelihood."""
    return types.new_class(
        f"Shifted{kind.__name__}",
        (ShiftedLikelihood, kind),
        exec_body=lambda body: body.update(kind=kind, __module__=__name__),
    )


def _made(kind: type[Likelihood], values: Mapping[str, Any]) -> Likelihood:
    """Return a part with these values, unchecked because they may be traced."""
    part: Likelihood = object.__new__(kind)
    for field in dataclasses.fields(cast(Any, kind)):
        object.__setattr__(part, field.name, values[field.name])
    return part
