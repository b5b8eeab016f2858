"""What an acquisition rule is."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float

from graphuq.acquisition.pool import Pool
from graphuq.utils.arrays import Array


@runtime_checkable
class Rule(Protocol):
    """A rule that scores the rows that could be labelled next.

    Any object with this method is a rule. For a batch it is called once per row: after each pick
    the pool is conditioned on that row as if it were labelled.
    """

    def scores(self, pool: Pool) -> Float[Array, " M"]:
        """Return a number for each candidate of the pool; the largest is labelled first."""
        ...
