"""Powers of ``L + c I`` times columns, by a Chebyshev series of the Laplacian."""

import math

import numpy as np
from jaxtyping import Float
from scipy.fft import dct

from graphuq.errors import IncompatibleParts
from graphuq.spectrum.block_operator import BlockOperator
from graphuq.spectrum.laplacian import Laplacian

MAX_DEGREE = 20_000  # products with the Laplacian for one power
BLOCK = 32  # columns at a time; the recurrence holds four blocks


class LaplacianPower:
    """Columns ``((L + c I) / u)^{−s} x`` for x without null part, u the smallest of ``λ + c``.

    The function of λ is a Chebyshev series on an interval that holds all eigenvalues. Its error is
    at most the sum of the coefficients left out, whatever the graph.

    Parameters
    ----------
    laplacian : Laplacian
    shift : float
        c ≥ 0.
    smallest : float
        At most the smallest positive eigenvalue, and positive if c is 0.
    dtype : type, default numpy.float64
        Precision of the products with L. In single precision rounding adds an error of some 1e-6.
    """

    def __init__(
        self, laplacian: Laplacian, shift: float, smallest: float, dtype: type = np.float64
    ) -> None:
        self.laplacian, self.shift, self.smallest = laplacian, shift, smallest
        # An interval without length has no series; one node beside isolated ones has it.
        self.largest = max(laplacian.upper_bound, 2 * smallest)
        self._operator = BlockOperator(laplacian, dtype)

    def coefficients(self, exponent: float, tolerance: float) -> Float[np.ndarray, " d"]:
        """Return the coefficients of the series of ``((λ + c)/u)^{−s}``, which is at most 1.

        Raises
        ------
        IncompatibleParts
            If the series needs more than 20,000 terms.
        """
        centre, half = (self.largest + self.smallest) / 2, (self.largest - self.smallest) / 2
        n_points = 32
        while (n_points := 2 * n_points) <= 2 * MAX_DEGREE:
            points = centre + half * np.cos(np.pi * (np.arange(n_points) + 0.5) / n_points)
            relative = np.log((points + self.shift) / (self.smallest + self.shift))
            series = dct(np.exp(-exponent * relative), 2) / n_points
            series[0] /= 2
            left_out = np.cumsum(np.abs(series[::-1]))[::-1]
            degree = int((left_out > tolerance).sum())
            if degree < n_points // 2:  # the other half shows that the series has ended
                return np.asarray(series[: max(degree, 2)])
        raise IncompatibleParts(
            f"(L + {self.shift:.3g})^-{exponent:g} needs more than {MAX_DEGREE} products with the "
            f"{self.laplacian.kind} Laplacian; use a larger tau, laplacian='symmetric', or pass "
            "eigenpairs (laplacian_spectrum) in place of the Laplacian"
        )

    def __call__(
        self, x: Float[np.ndarray, "N b"], exponent: float, tolerance: float
    ) -> Float[np.ndarray, "N b"]:
        """Return ``((L + c I) / u)^{−s} x``, with an error of at most ``tolerance · |x|``."""
        series = self.coefficients(exponent, tolerance)
        found = np.empty_like(x)
        for begin in range(0, x.shape[1], BLOCK):
            part = slice(begin, begin + BLOCK)
            found[:, part] = self._sum_of(series, np.ascontiguousarray(x[:, part]))
        return found

    def _sum_of(
        self, series: Float[np.ndarray, " d"], x: Float[np.ndarray, "N b"]
    ) -> Float[np.ndarray, "N b"]:
        """Return the sum of Chebyshev polynomials of L, times columns without null part."""
        centre, half = (self.largest + self.smallest) / 2, (self.largest - self.smallest) / 2
        without = self.laplacian.project_to_null_space
        before = (x - without(x)).astype(self._operator.dtype)
        current = self._operator.step(before, 1 / half, -centre / half)
        total = series[0] * before + series[1] * current
        for coefficient in series[2:].tolist():
            following = self._operator.step(current, 2 / half, -2 * centre / half, before)
            before, current = current, following
            total += coefficient * current
        result: np.ndarray = total - without(total)
        return result.astype(x.dtype)

    def log_unit(self) -> float:
        """Return ``log u``."""
        return math.log(self.smallest + self.shift)
