"""Columns of ``(L + c I)⁻¹``, and its diagonal: a prior solved for instead of expanded.

The null space is taken out before and put back after, exactly, so that a small c costs nothing.
"""

import warnings
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import linalg

from graphuq.errors import NotConvergedWarning
from graphuq.spectrum.laplacian import Laplacian

DENSE_UP_TO = 3_000  # nodes of a sparse graph; a dense one is always factorised
MAX_ITERATIONS = 5_000
N_PROBES = 200  # fields drawn for the diagonal where there is no factorisation
BLOCK = 64  # right-hand sides solved at once


class Precision:
    """``L + c I``, c > 0, by one Cholesky factorisation or by conjugate gradients.

    Factorised up to 3,000 nodes, or where the weights are dense; else solved by conjugate gradients
    with the diagonal as preconditioner, all right-hand sides at once, memory N times as many.

    Parameters
    ----------
    laplacian : Laplacian
    shift : float
        c.
    factorize : bool, default True
        False: solve a sparse graph of any size by conjugate gradients, a third to a sixth of the
        time where a few columns are all that is wanted.
    tolerance : float, default 1e-9
        Of conjugate gradients: largest residual norm relative to that of the right-hand side.
    """

    def __init__(
        self,
        laplacian: Laplacian,
        shift: float,
        *,
        factorize: bool = True,
        tolerance: float = 1e-9,
    ) -> None:
        self.laplacian, self.shift, self.tolerance = laplacian, shift, tolerance
        graph = laplacian.graph
        few = factorize and graph.n_nodes <= DENSE_UP_TO
        self.is_dense = isinstance(graph.weights, np.ndarray) or few
        self._lower: np.ndarray | None = None
        # Stands for the null space's own eigenvalue, and is as good as any other.
        self._lift = max(float(laplacian.diagonal.mean()), shift)

    def columns(self, nodes: Int[np.ndarray, " J"]) -> Float[np.ndarray, "N J"]:
        """``(L + c I)⁻¹ e_j`` of each node j."""
        right = np.zeros((self.laplacian.graph.n_nodes, len(nodes)))
        right[nodes, np.arange(len(nodes))] = 1.0
        return self.solve(right)

    def solve(
        self, right: Float[np.ndarray, "N J"], start: Float[np.ndarray, "N J"] | None = None
    ) -> Float[np.ndarray, "N J"]:
        """``(L + c I)⁻¹ B``.

        Parameters
        ----------
        right : numpy.ndarray, shape (N, J)
            B.
        start : numpy.ndarray, shape (N, J), optional
            Where conjugate gradients begin; a solution for a similar graph saves steps.

        Warns
        -----
        NotConvergedWarning
            If conjugate gradients do not reach the tolerance.
        """
        null = self.laplacian.project_to_null_space(right)
        rest = right - null
        if self.is_dense:
            found = linalg.cho_solve((self._factor(), True), rest, check_finite=False)
        else:
            found = np.empty_like(rest)
            for begin in range(0, rest.shape[1], BLOCK):
                part = slice(begin, begin + BLOCK)
                guess = None if start is None else start[:, part]
                found[:, part] = self._conjugate_gradients(rest[:, part], guess)
        return found - self.laplacian.project_to_null_space(found) + null / self.shift

    def conditional_variance(
        self,
        loadings: Float[np.ndarray, "N J"],
        nodes: Int[np.ndarray, " J"],
        rng: np.random.Generator,
    ) -> tuple[Float[np.ndarray, " N"], float]:
        """Variance of each node of ``N(0, (L + c I)⁻¹)`` given the field at some nodes.

        Parameters
        ----------
        loadings : numpy.ndarray, shape (N, J)
            B, with the mean given ``u_L = F x`` equal to ``B x`` and x white.
        nodes : numpy.ndarray of int, shape (J,)
        rng : numpy.random.Generator

        Returns
        -------
        variance : numpy.ndarray, shape (N,)
            0 at those nodes.
        error : float
            Its relative standard error, the mean over nodes; 0 where factorised.

        Notes
        -----
        Without factorisation, from 200 draws: given its neighbours' values a node's variance is
        known, and only that of its mean is estimated (Sidén, Lindgren, Bolin & Villani 2018). A
        draw is the solution for noise on every edge and node (Papandreou & Yuille 2010).
        """
        if self.is_dense:
            variance = self._diagonal() - (loadings**2).sum(axis=1)
            error = 0.0
        else:
            own = 1 / (self.laplacian.diagonal + self.shift)
            spread = self._spread_of_means(loadings, nodes, own, rng)
            variance = own + spread
            share = np.divide(spread, variance, out=np.zeros_like(own), where=variance > 0)
            error = float(share.mean() * np.sqrt(2 / N_PROBES))
        variance[nodes] = 0.0
        return np.maximum(variance, 0.0), error

    def _spread_of_means(
        self,
        loadings: Float[np.ndarray, "N J"],
        nodes: Int[np.ndarray, " J"],
        own: Float[np.ndarray, " N"],
        rng: np.random.Generator,
    ) -> Float[np.ndarray, " N"]:
        """Variance of a node's mean given its neighbours, of fields that are 0 at ``nodes``."""
        total = np.zeros(len(own))
        to_white = np.linalg.inv(loadings[nodes])
        for begin in range(0, N_PROBES, BLOCK):
            n_draws = min(BLOCK, N_PROBES - begin)
            noise = self.laplacian.draw(n_draws, rng)
            noise += np.sqrt(self.shift) * rng.normal(size=noise.shape)
            fields = self.solve(noise)
            fields -= loadings @ (to_white @ fields[nodes])
            # The mean given the neighbours is u − (L + c I) u / diagonal.
            means = fields - own[:, None] * (self.laplacian @ fields + self.shift * fields)
            total += (means**2).sum(axis=1)
        return total / N_PROBES

    def _factor(self) -> Float[np.ndarray, "N N"]:
        """Cholesky factor of ``L + c I``, the null space lifted."""
        if self._lower is None:
            matrix = self.laplacian.dense()
            matrix[np.diag_indices(len(matrix))] += self.shift
            components, profile = self.laplacian.graph.components, self.laplacian.null_profile
            for component in range(self.laplacian.graph.n_components):
                inside = np.flatnonzero(components == component)
                own = profile[inside]
                matrix[np.ix_(inside, inside)] += self._lift * np.multiply.outer(own, own)
            self._lower = linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        return self._lower

    def _diagonal(self) -> Float[np.ndarray, " N"]:
        """Of the inverse."""
        inverse, failed = linalg.lapack.dpotri(self._factor(), lower=True)
        assert not failed
        null = self.laplacian.null_profile**2
        diagonal: np.ndarray = inverse.diagonal() - null / (self._lift + self.shift)
        return diagonal + null / self.shift

    def _conjugate_gradients(
        self, right: Float[np.ndarray, "N J"], start: Float[np.ndarray, "N J"] | None
    ) -> Float[np.ndarray, "N J"]:
        """Each column by its own conjugate gradients, on the complement of the null space."""
        laplacian = self.laplacian
        inverse_diagonal = 1 / (laplacian.diagonal + self.shift)[:, None]

        def without_null(x: Any) -> Any:
            return x - laplacian.project_to_null_space(x)

        def apply(x: Any) -> Any:
            return laplacian @ x + self.shift * x

        x = np.zeros_like(right) if start is None else without_null(start)
        residual = right - apply(x) if start is not None else right.copy()
        bound = self.tolerance * np.maximum(np.linalg.norm(right, axis=0), 1e-300)
        direction = without_null(inverse_diagonal * residual)
        slope = np.einsum("nj,nj->j", residual, direction)
        for _ in range(MAX_ITERATIONS):
            missing = np.linalg.norm(residual, axis=0)
            if (missing <= bound).all():
                break
            image = apply(direction)
            curvature = np.einsum("nj,nj->j", direction, image)
            step = _ratio(slope, curvature)
            x += step * direction
            residual -= step * image
            preconditioned = without_null(inverse_diagonal * residual)
            before, slope = slope, np.einsum("nj,nj->j", residual, preconditioned)
            direction *= _ratio(slope, before)
            direction += preconditioned
        else:
            warnings.warn(
                f"conjugate gradients left residuals up to {(missing / bound).max():.1g} times the "
                f"tolerance after {MAX_ITERATIONS} steps; use a larger tolerance or a denser graph",
                NotConvergedWarning,
                stacklevel=4,
            )
        return x


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Quotient, 0 where there is nothing left to divide by."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
