"""Columns and diagonal of ``(L + c I)⁻¹``: a prior that is solved for instead of expanded.

The null space is removed before and restored after each solution, so that a small c costs nothing.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy import linalg

from graphuq.errors import NotConvergedWarning
from graphuq.spectrum.laplacian import Laplacian
from graphuq.utils.user_warnings import warn_user

DENSE_UP_TO = 3_000  # nodes; a sparse graph with more is not factorised, a dense one always is
MAX_ITERATIONS = 5_000  # steps of conjugate gradients
N_PROBES = 200  # fields that are drawn to estimate the diagonal without factorisation
BLOCK = 64  # right-hand sides per solution


class Precision:
    """Precision matrix ``L + c I``, c > 0, with solutions of linear systems.

    One Cholesky factorisation serves all systems if weights are dense or there are at most 3,000
    nodes. Otherwise conjugate gradients with a diagonal preconditioner solve 64 right-hand sides
    at a time. Their memory is N numbers per right-hand side.

    Parameters
    ----------
    laplacian : Laplacian
    shift : float
        c > 0.
    factorize : bool, default True
        With False, conjugate gradients are used for a sparse graph of any size. They take a third
        to a sixth of the time if only a few columns are needed.
    tolerance : float, default 1e-9
        Largest residual norm of conjugate gradients, relative to that of the right-hand side.
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
        # Replaces the eigenvalue of the null space; any positive number would do.
        self._lift = max(float(laplacian.diagonal.mean()), shift)

    def columns(self, nodes: Int[np.ndarray, " J"]) -> Float[np.ndarray, "N J"]:
        """Return ``(L + c I)⁻¹ e_j`` of each node j."""
        right = np.zeros((self.laplacian.graph.n_nodes, len(nodes)))
        right[nodes, np.arange(len(nodes))] = 1.0
        return self.solve(right)

    def solve(
        self, right: Float[np.ndarray, "N J"], start: Float[np.ndarray, "N J"] | None = None
    ) -> Float[np.ndarray, "N J"]:
        """Return ``(L + c I)⁻¹ B``.

        Parameters
        ----------
        right : numpy.ndarray, shape (N, J)
            B.
        start : numpy.ndarray, shape (N, J), optional
            Start of conjugate gradients; a solution for a similar graph saves steps.

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
        """Return the variance of ``N(0, (L + c I)⁻¹)`` at each node, given the field at some nodes.

        Parameters
        ----------
        loadings : numpy.ndarray, shape (N, J)
            B, with the mean given ``u_L = F x`` equal to ``B x`` and x white.
        nodes : numpy.ndarray of int, shape (J,)
        rng : numpy.random.Generator

        Returns
        -------
        variance : numpy.ndarray, shape (N,)
            Conditional variance; 0 at the given nodes.
        error : float
            Relative standard error, averaged over nodes; 0 with a factorisation.

        Notes
        -----
        Without factorisation it is estimated from 200 draws. The variance of a node given its
        neighbours is known. Only the variance of its conditional mean is estimated (Sidén,
        Lindgren, Bolin & Villani 2018). A draw is the solution for noise on every edge and node
        (Papandreou & Yuille 2010).
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
        """Estimate the variance of each conditional mean, for fields that are 0 at ``nodes``."""
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
        """Return the Cholesky factor of ``L + c I`` with a shifted null space."""
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
        """Return the diagonal of ``(L + c I)⁻¹``."""
        inverse, failed = linalg.lapack.dpotri(self._factor(), lower=True)
        assert not failed
        null = self.laplacian.null_profile**2
        diagonal: np.ndarray = inverse.diagonal() - null / (self._lift + self.shift)
        return diagonal + null / self.shift

    def _conjugate_gradients(
        self, right: Float[np.ndarray, "N J"], start: Float[np.ndarray, "N J"] | None
    ) -> Float[np.ndarray, "N J"]:
        """Solve for each column by conjugate gradients on the complement of the null space."""
        laplacian = self.laplacian
        inverse_diagonal = 1 / (laplacian.diagonal + self.shift)[:, None]

        def without_null(x: np.ndarray) -> np.ndarray:
            result: np.ndarray = x - laplacian.project_to_null_space(x)
            return result

        def apply(x: np.ndarray) -> np.ndarray:
            result: np.ndarray = laplacian @ x + self.shift * x
            return result

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
            warn_user(
                f"conjugate gradients left residuals up to {(missing / bound).max():.1g} times the "
                f"tolerance after {MAX_ITERATIONS} steps; use a larger tolerance or a denser graph",
                NotConvergedWarning,
            )
        return x


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Return the quotient; 0 where the denominator is not positive."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
