"""Rows at random, more often where margins are small: from exploring to refining."""

import dataclasses

import numpy as np
from jaxtyping import Float

from graphuq.acquisition.margin import Margin
from graphuq.acquisition.pool import Pool
from graphuq.errors import require


@dataclasses.dataclass(frozen=True)
class StochasticMargin:
    """Draw a row with a probability proportional to ``(1 − (p₁ − p₂))^power``.

    While little is known, margins are small everywhere and the rows are almost a random sample:
    they represent the data. Later they lie where classes meet, in proportion to how many rows
    do. Unlike the smallest margins, they cannot all be in one place where labels are noise. This
    is the power acquisition of Kirsch et al. (2023), and the default of `query`.

    Parameters
    ----------
    power : float, default 8.0
        0 draws at random, and a large number takes the smallest margins. Positive or 0.
    """

    power: float | int = 8.0

    def __post_init__(self) -> None:
        require(self.power >= 0, "power", f"{self.power!r}", "use a number, 0 or more")

    def scores(self, pool: Pool) -> Float[np.ndarray, " M"]:
        """Return Gumbel noise about log probabilities; the largest is a draw (Gumbel 1954)."""
        chances = self.power * np.log(Margin().scores(pool)) + np.log(pool.n_represented)
        return np.asarray(chances + pool.rng.gumbel(size=len(pool.rows)))
