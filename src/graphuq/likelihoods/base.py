"""What every likelihood offers: the log probability of a label given the field."""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
from jax import Array
from jaxtyping import Float


class Likelihood(eqx.Module):
    """Law of the observed labels given the field at the labelled nodes.

    Attributes
    ----------
    smooth : bool
        Whether `log_prob` has a useful gradient in ``u``.
    """

    smooth: ClassVar[bool]

    @abstractmethod
    def log_prob(self, u: Float[Array, " J"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Log probability of each label y ∈ {−1, +1}, up to a constant free of ``u``."""
