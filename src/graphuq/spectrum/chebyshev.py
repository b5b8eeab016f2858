"""A polynomial that is large on the wanted end of a Laplacian's spectrum, and where that ends."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float
from scipy.linalg import eigh_tridiagonal

from graphuq.spectrum.block_operator import BlockOperator

BEYOND = 1.5  # where the polynomial begins to grow: with so many times the wanted eigenvalues below
AMPLIFICATION = 8.0  # log of the polynomial at zero
PROBES, PROBE_STEPS = 3, 40  # of the estimate of where that is

Deflate: TypeAlias = Callable[[np.ndarray], np.ndarray]
"""Columns → columns without their part in the null space."""


class ChebyshevFilter(NamedTuple):
    """A Chebyshev polynomial that stays within one on ``[low, high]``, and grows below."""

    low: float
    high: float

    @property
    def degree(self) -> int:
        """So that at zero it is about exp(AMPLIFICATION): more would lose digits."""
        at_zero = (self.high + self.low) / (self.high - self.low)
        return max(1, round(AMPLIFICATION / float(np.arccosh(at_zero))))

    def polynomial(
        self, operator: BlockOperator, x: Float[np.ndarray, "N b"]
    ) -> Float[np.ndarray, "N b"]:
        """Of L, applied to columns, by the three-term recurrence; positive below ``low``."""
        centre, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        before, now = x, operator.step(x, -1 / half, centre / half)
        for _ in range(self.degree - 1):
            before, now = now, operator.step(now, -2 / half, 2 * centre / half, before)
        return np.asarray(now)  # from the accelerator, if there is one

    def residual_factor(self, values: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """About how much a residual of L is of one of the polynomial at these values of it.

        ``|λ_j − λ| / |p(λ_j) − p(λ)|`` where a Ritz vector's error lies: at the edge of the window.
        """
        above = np.maximum(values, 1 + 1e-9)
        at = np.cosh(np.arccosh(above) / self.degree)  # λ in the polynomial's own variable, < −1
        result: np.ndarray = (at - 1) * (self.high - self.low) / 2 / (above - 1)
        return result

    def wider(self) -> "ChebyshevFilter":
        """Grows from further up."""
        return ChebyshevFilter(self.low + 0.25 * (self.high - self.low), self.high)


def window_of(
    operator: BlockOperator, deflate: Deflate, high: float, n_pairs: int, rng: np.random.Generator
) -> ChebyshevFilter:
    """Where the rest of the spectrum is: by Gauss quadrature of its density (Golub & Welsch 1969).

    Lanczos from random vectors, the null space left out, gives nodes and weights. The share of the
    spectrum below a node is at least the weight of the nodes before it.
    """
    share = min(BEYOND * n_pairs / operator.n_nodes, 0.5)
    low = 0.0
    for nodes, weights in _quadratures(operator, deflate, high, rng):
        before = np.cumsum(weights) >= share
        low = max(low, nodes[min(int(before.argmax()) + 1, len(nodes) - 1)])
    return ChebyshevFilter(min(low, 0.9 * high), high)


def _quadratures(
    operator: BlockOperator, deflate: Deflate, high: float, rng: np.random.Generator
) -> Iterator[tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]]:
    """Ascending nodes, and weights that add to one, of a few probes side by side.

    Nothing is made orthogonal again: copies of a node that come of it share its weight.
    """
    x = deflate(rng.standard_normal((operator.n_nodes, PROBES)).astype(operator.dtype))
    x /= np.linalg.norm(x, axis=0)
    before = np.zeros_like(x)
    diagonal, beside = np.zeros((2, PROBE_STEPS, PROBES))
    n_steps = min(PROBE_STEPS, operator.n_nodes)
    for step in range(n_steps):
        image = deflate(operator @ x)
        if step:
            image -= before * beside[step - 1].astype(operator.dtype)
        diagonal[step] = np.einsum("nb,nb->b", x, image, dtype=np.float64)
        image -= x * diagonal[step].astype(operator.dtype)
        beside[step] = np.linalg.norm(image, axis=0)
        if (beside[step] <= 1e-5 * high).any():  # a few eigenvalues are all there are
            n_steps = step + 1
            break
        before, x = x, image / beside[step].astype(operator.dtype)
    for probe in range(PROBES):
        nodes, vectors = eigh_tridiagonal(diagonal[:n_steps, probe], beside[: n_steps - 1, probe])
        yield nodes, vectors[0] ** 2
