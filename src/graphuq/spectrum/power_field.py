"""The Gaussian field of precision ``(L + c I)^α`` on all nodes, with no eigenpair left out.

The field is a sum of three independent parts: null vectors, a part of low rank whose variance is
exact, and the rest, which is drawn. The smallest eigenpairs make the second part. It holds most of
the variance, so that few draws tell the remaining variance of a node.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import IncompatibleParts, InvalidInput, NotConvergedWarning
from graphuq.spectrum.laplacian import Laplacian
from graphuq.spectrum.laplacian_power import BLOCK, LaplacianPower
from graphuq.spectrum.null_vectors import null_vectors_included
from graphuq.spectrum.power_precision import PowerPrecision
from graphuq.spectrum.solve import nonnull_pairs
from graphuq.utils.user_warnings import warn_user

EXACT_UP_TO = 2_000  # nodes; all eigenpairs are computed
N_PAIRS = 64  # of the part of low rank
MIN_DRAWS, MAX_DRAWS = 64, 192  # of the rest
ENOUGH = 0.01  # relative error of deviations, averaged over nodes, with which no more is drawn
TIGHT, LOOSE = 1e-13, 1e-6  # largest errors of a series; of draws, in single precision
PAIRS_TOLERANCE = 1e-3
VALUE_TOLERANCE = 1e-5  # of the smallest one, whose error is of the order of the square
BELOW = 0.9  # begin of an interval, as a share of the smallest eigenvalue in it


class Spread(NamedTuple):
    """What labels at some nodes leave open, and the energy of the field.

    Attributes
    ----------
    variance : numpy.ndarray, shape (N,)
        Conditional variance; 0 at the given nodes.
    error : float
        Relative standard error of the deviations, averaged over nodes; 0 with all eigenpairs.
    energy : float
        ``E|u|²``.
    energy_error : float
        Its relative standard error.
    """

    variance: Float[np.ndarray, " N"]
    error: float
    energy: float
    energy_error: float


class PowerField:
    """Gaussian field ``N(0, ((L + c I)/u)^{−α})`` on all nodes, u the smallest of ``λ + c``.

    Up to 2,000 nodes it is computed from all eigenpairs. Otherwise the columns of the covariance
    are Chebyshev series with an error of 1e-13, and variances are estimated from draws.

    Parameters
    ----------
    laplacian : Laplacian
    precision : PowerPrecision

    Raises
    ------
    InvalidInput
        If the constant would have an infinite variance.
    IncompatibleParts
        If isolated nodes would have no variance, an eigenvalue of 0 infinite variance, or in the
        case of `LaplacianPower.coefficients`.

    Warns
    -----
    NotConvergedWarning
        If the smallest eigenpairs do not converge.
    """

    def __init__(self, laplacian: Laplacian, precision: PowerPrecision) -> None:
        graph = laplacian.graph
        self.laplacian, self.precision = laplacian, precision
        n_others = graph.n_nodes - laplacian.n_null
        included = null_vectors_included(precision.include_constant, graph)
        self.is_exact = graph.n_nodes <= EXACT_UP_TO
        shift = precision.shift
        try:
            n_pairs = n_others if self.is_exact else min(N_PAIRS, n_others)
            values, vectors = nonnull_pairs(laplacian, n_pairs, PAIRS_TOLERANCE)
        except InvalidInput:
            if shift == 0:
                raise
            warn_user(
                "the smallest eigenpairs did not converge, so that all of the field is drawn; "
                "scale_error and deviation_error in the settings are larger than with them. Join "
                "nearly separate parts of the graph by more neighbours",
                NotConvergedWarning,
            )
            values, vectors = np.zeros(1), np.zeros((graph.n_nodes, 0))
        values = np.maximum(values, 0.0)
        smallest = float(values[0]) * (1.0 if self.is_exact else BELOW)
        if smallest + shift <= 0:
            raise IncompatibleParts(
                "an eigenvalue besides those of the components is 0 up to rounding, so that tau=0 "
                "gives infinite variance; use tau > 0"
            )
        self.log_unit = math.log(smallest + shift)
        # The variance of the null vectors, after division of λ + c by the unit.
        own = shift
        if not precision.include_constant:
            own += self._smallest_value(values) if included else values[0]
        if own <= 0:
            raise InvalidInput("shift", "0 gives the constant infinite variance", "use tau > 0")
        log_null = -precision.power * (math.log(own) - self.log_unit)
        if log_null > math.log(np.finfo(float).max) / 2:
            raise InvalidInput(
                "alpha",
                f"{precision.power:g} gives the constant a variance of e^{log_null:.0f}",
                "use a smaller α, a larger τ, or include_constant=None",
            )
        self.null_variance = math.exp(log_null) if included else 0.0
        if self.is_exact:
            relative = np.log(values + shift) - self.log_unit
            self.low = vectors * np.exp(-precision.power / 2 * relative)
        else:
            self._vectors = vectors
            self._exact_power = LaplacianPower(laplacian, shift, smallest)
            # Noise orthogonal to the vectors sees none of their eigenvalues.
            begin = BELOW * float(values[-1])
            self._quick_power = LaplacianPower(laplacian, shift, begin, np.float32)
            log_ratio = math.log(begin + shift) - self.log_unit
            self._rest_scale = math.exp(-precision.power / 2 * log_ratio)
            self.low = self._exact_power(vectors, precision.power / 2, TIGHT)

    def _smallest_value(self, values: Float[np.ndarray, " k"]) -> float:
        """Return the smallest positive eigenvalue, more accurate than those of the pairs."""
        if self.is_exact:
            return float(values[0])
        return float(nonnull_pairs(self.laplacian, 1, VALUE_TOLERANCE)[0][0])

    def columns(self, nodes: Int[np.ndarray, " J"]) -> Float[np.ndarray, "N J"]:
        """Return the columns of the covariance at some nodes."""
        unit = np.zeros((self.laplacian.n_nodes, len(nodes)))
        unit[nodes, np.arange(len(nodes))] = 1.0
        null = self.null_variance * self.laplacian.project_to_null_space(unit)
        if self.is_exact:
            return null + self.low @ self.low[nodes].T
        return null + self._exact_power(unit, self.precision.power, TIGHT)

    def spread(
        self,
        loadings: Float[np.ndarray, "N J"],
        nodes: Int[np.ndarray, " J"],
        rng: np.random.Generator,
    ) -> Spread:
        """Return the variance at each node given the field at some nodes, and the energy.

        Parameters
        ----------
        loadings : numpy.ndarray, shape (N, J)
            B, with the mean given ``u_L = F x`` equal to ``B x`` and x white.
        nodes : numpy.ndarray of int, shape (J,)
        rng : numpy.random.Generator
        """
        from_nodes = loadings @ np.linalg.inv(loadings[nodes])

        def given(fields: np.ndarray) -> Float[np.ndarray, " N"]:
            squares: np.ndarray = ((fields - from_nodes @ fields[nodes]) ** 2).sum(axis=1)
            squares[nodes] = 0.0
            return squares

        weights = self.laplacian.node_scale**2
        null = np.sqrt(self.null_variance) * self.laplacian.null_profile[:, None]
        exact = given(null) + given(self.low)
        energy = float(weights @ ((null**2).sum(axis=1) + (self.low**2).sum(axis=1)))
        if self.is_exact:
            return Spread(exact, 0.0, energy, 0.0)
        total, energies, error = np.zeros_like(exact), np.zeros(0), np.inf
        for fields in self._rest(rng):
            total += given(fields)
            energies = np.append(energies, weights @ fields**2)
            drawn = total / len(energies)
            variance = exact + drawn
            share = np.divide(drawn, variance, out=np.zeros_like(drawn), where=variance > 0)
            error = float(share.mean() * np.sqrt(2 / len(energies)) / 2)
            if len(energies) >= MIN_DRAWS and error <= ENOUGH:
                break
        energy += energies.mean()
        spread = energies.std(ddof=1) / np.sqrt(len(energies))
        return Spread(exact + drawn, error, energy, float(spread / energy))

    def _rest(self, rng: np.random.Generator) -> Iterator[Float[np.ndarray, "N b"]]:
        """Yield draws of the field without null part and without the part of low rank.

        White noise orthogonal to the smallest eigenvectors is independent of that along them.
        """
        for _ in range(0, MAX_DRAWS, BLOCK):
            noise = rng.standard_normal((self.laplacian.n_nodes, BLOCK))
            noise -= self._vectors @ (self._vectors.T @ noise)
            drawn = self._quick_power(noise, self.precision.power / 2, LOOSE)
            yield self._rest_scale * drawn
