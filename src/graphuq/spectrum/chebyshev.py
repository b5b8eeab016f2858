"""Chebyshev filter: a polynomial that amplifies the smallest eigenvalues of a Laplacian."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy.linalg import eigh_tridiagonal

from graphuq.spectrum.block_operator import BlockOperator
from graphuq.utils.arrays import Array, array_namespace

BEYOND = 1.5  # eigenvalues that are amplified, as a multiple of those to be computed
AMPLIFICATION = 8.0  # logarithm of the polynomial at zero
PROBES, PROBE_STEPS = 3, 40  # random vectors and Lanczos steps of the estimate of that window

Deflate: TypeAlias = Callable[[Array], Array]
"""Function that removes the null-space part of columns."""


@runtime_checkable
class StepOperator(Protocol):
    """Operator L with the steps of a three-term recurrence, on columns of any kind."""

    def step(self, x: Any, of_l: float, of_x: float, before: Any = None) -> Any:
        """Return ``of_l · L x + of_x · x − before``."""
        ...


class ChebyshevFilter(NamedTuple):
    """Chebyshev polynomial, between −1 and 1 on ``[low, high]`` and growing below ``low``."""

    low: float
    high: float

    @property
    def degree(self) -> int:
        """Degree with a value of about exp(AMPLIFICATION) at zero; more would lose digits."""
        at_zero = (self.high + self.low) / (self.high - self.low)
        return max(1, round(AMPLIFICATION / float(np.arccosh(at_zero))))

    def polynomial(self, operator: StepOperator, x: Any) -> Any:
        """Apply the polynomial of L to columns by its three-term recurrence.

        It is positive below ``low``.
        """
        centre, half = (self.low + self.high) / 2, (self.high - self.low) / 2
        previous, current = x, operator.step(x, -1 / half, centre / half)
        for _ in range(self.degree - 1):
            following = operator.step(current, -2 / half, 2 * centre / half, previous)
            previous, current = current, following
        return current

    def residual_factor(self, values: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """Return the approximate ratio of a residual of L to that of the polynomial.

        It is ``|λ_j − λ| / |p(λ_j) − p(λ)|`` at the edge of the window, where the error of a Ritz
        vector is. ``values`` are values of the polynomial.
        """
        above = np.maximum(values, 1 + 1e-9)
        at = np.cosh(np.arccosh(above) / self.degree)  # λ in the variable of the polynomial, < −1
        result: np.ndarray = (at - 1) * (self.high - self.low) / 2 / (above - 1)
        return result

    def wider(self) -> "ChebyshevFilter":
        """Return a filter that begins to grow at a larger eigenvalue."""
        return ChebyshevFilter(self.low + 0.25 * (self.high - self.low), self.high)


def window_of(
    operator: BlockOperator, deflate: Deflate, high: float, n_pairs: int, rng: np.random.Generator
) -> ChebyshevFilter:
    """Choose the window by Gauss quadrature of the spectral density (Golub & Welsch 1969).

    Lanczos iterations from random vectors without null part give nodes and weights. The share of
    the spectrum below a node is at least the weight of the nodes before it.
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
    """Yield ascending nodes, and weights that add to one, for each random vector.

    Vectors are not reorthogonalised; the resulting copies of a node share its weight.
    """
    x = deflate(rng.standard_normal((operator.n_nodes, PROBES)).astype(operator.dtype))
    x = before = x / array_namespace(x).linalg.norm(x, axis=0, keepdims=True)
    diagonal, beside = np.zeros((2, PROBE_STEPS, PROBES))
    n_steps = min(PROBE_STEPS, operator.n_nodes)
    for step in range(n_steps):
        image = deflate(operator.step(x, 1.0, 0.0))
        if step:
            image -= before * beside[None, step - 1].astype(operator.dtype)
        diagonal[step] = (x * image).sum(axis=0, dtype=np.float64)
        image -= x * diagonal[None, step].astype(operator.dtype)
        beside[step] = array_namespace(image).linalg.norm(image, axis=0)
        if (beside[step] <= 1e-5 * high).any():  # the operator has only a few distinct eigenvalues
            n_steps = step + 1
            break
        before, x = x, image / beside[None, step].astype(operator.dtype)
    for probe in range(PROBES):
        nodes, vectors = eigh_tridiagonal(diagonal[:n_steps, probe], beside[: n_steps - 1, probe])
        yield nodes, vectors[0] ** 2
