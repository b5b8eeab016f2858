"""Atomic noise: each label is flipped with a probability that depends on its class."""

from typing import Any

from jaxtyping import Float

from graphuq.distributions import Hyperparameter, check_range, is_learnt, parameter
from graphuq.errors import require
from graphuq.likelihoods.base import StepLikelihood
from graphuq.utils.arrays import Array, array_namespace


class AtomicNoise(StepLikelihood):
    r"""Labels that are right with probability p where u ≥ 0, and q where u < 0.

    Source: Bertozzi et al. 2018, §3.3. ``AtomicNoise(1, 1)`` is `NoiseFree`, the exact data of the
    paper. `ConfusionMatrix` is the model of more classes.

    Parameters
    ----------
    p, q : float or Distribution, default 0.9
        Probabilities of the label +1 where u ≥ 0, and of −1 where u < 0. Both lie in (0, 1]. Their
        sum exceeds 1; otherwise a label would be evidence against its own class.
    """

    p: Hyperparameter = parameter(0.9)
    q: Hyperparameter = parameter(0.9)

    def __check_init__(self) -> None:
        for name, value in (("p", self.p), ("q", self.q)):
            check_range(name, value, 0.0, 1.0, open=False, remedy="use a probability in (0, 1]")
            require(is_learnt(value) or value > 0, name, "0", "use a probability in (0, 1]")
        min_sum = sum(v.support[0] if is_learnt(v) else v for v in (self.p, self.q))
        require(
            min_sum > 1 or (min_sum == 1 and self.learnt),
            "p",
            f"p + q may be {min_sum:g}, so that a label is evidence against its own class",
            "use p + q > 1",
        )

    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """Return ``log p``, ``log(1 − q)`` of a label +1, ``log q``, ``log(1 − p)`` of −1."""
        xp = array_namespace(y)
        p, q = xp.asarray(self.p, y.dtype), xp.asarray(self.q, y.dtype)
        right = xp.where(y > 0, xp.log(p), xp.log(q))
        wrong = xp.where(y > 0, _log_complement(q), _log_complement(p))
        return right, wrong


def _log_complement(p: Any) -> Any:
    """Return ``log(1 − p)``, −∞ at 1."""
    xp = array_namespace(p)
    return xp.where(p < 1, xp.log1p(-xp.where(p < 1, p, 0.0)), -xp.inf)
