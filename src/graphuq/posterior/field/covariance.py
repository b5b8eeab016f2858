"""Fields known by their covariance at the labelled nodes, for the evidence and its gradient.

Nothing of them is sampled: they have no white coordinates.
"""

import dataclasses

import numpy as np
from jaxtyping import Float

from graphuq.posterior.field.conditioning import (
    FieldMoments,
    FloorConditioning,
    condition_with_floor,
    moments_with_floor,
    without_coordinates,
)
from graphuq.utils.concurrency import cached_property


@dataclasses.dataclass(frozen=True)
class CovarianceField:
    """Field given by its covariance G at the labelled nodes.

    Attributes
    ----------
    covariance : numpy.ndarray, shape (J, J)
        G, which may be singular.
    """

    covariance: Float[np.ndarray, "J J"]

    def condition(
        self, precision: Float[np.ndarray, " J"], shift: Float[np.ndarray, " J"]
    ) -> FieldMoments:
        """Return mean and variance given sites: ``Σ = (I + G T)⁻¹ G``."""
        system = np.eye(len(precision)) + self.covariance * precision
        covariance = np.linalg.solve(system, self.covariance)
        log_determinant = np.linalg.slogdet(system)[1]
        return without_coordinates(
            covariance @ shift, np.diagonal(covariance), shift, log_determinant
        )

    def slopes(
        self,
        precision: Float[np.ndarray, " J"],
        shift: Float[np.ndarray, " J"],
        given: FieldMoments,
    ) -> Float[np.ndarray, "J J"]:
        """Return ``(b bᵀ − R)/2``, the derivative of the log evidence in G.

        Here ``b = ν − τ E u`` and ``R = T − T Σ T`` (Rasmussen & Williams 2006, (5.9)).
        """
        pull = shift - precision * given.mean
        system = np.eye(len(precision)) + precision[:, None] * self.covariance
        resistance = np.linalg.solve(system, np.diag(precision))  # (I + T G)⁻¹ T = T − T Σ T
        return (np.outer(pull, pull) - (resistance + resistance.T) / 2) / 2


@dataclasses.dataclass(frozen=True)
class SeriesField:
    """Field of a series, for gradients of the evidence in its spectral deviations.

    ``u_L = R diag(s) ξ + s̄ r``, times the node scale, has covariance
    ``G = R diag(d) Rᵀ + s̄² I`` with ``d = s² − s̄²``. `condition` works in J or ℓ dimensions,
    whichever is smaller. G may be singular.

    Attributes
    ----------
    rows : numpy.ndarray, shape (J, L)
        R.
    scale : numpy.ndarray, shape (J,)
        Node scale.
    modes, tail : numpy.ndarray of shape (L,), and float
        s and s̄.
    """

    rows: Float[np.ndarray, "J L"]
    scale: Float[np.ndarray, " J"]
    modes: Float[np.ndarray, " L"]
    tail: float

    @cached_property
    def mode_variance(self) -> Float[np.ndarray, " L"]:
        """``d = s² − s̄²``."""
        variance: np.ndarray = self.modes**2 - self.tail**2
        return variance

    @cached_property
    def dense(self) -> CovarianceField | None:
        """Field of the covariance before scaling, or None with more labels than modes."""
        n_labels, n_modes = self.rows.shape
        if n_labels > n_modes:
            return None
        prior = (self.rows * self.mode_variance) @ self.rows.T
        return CovarianceField(prior + self.tail**2 * np.eye(n_labels))

    def condition(
        self, precision: Float[np.ndarray, " J"], shift: Float[np.ndarray, " J"]
    ) -> FieldMoments:
        """Return the moments at the labelled nodes, and the normaliser, given sites."""
        precision, shift = precision * self.scale**2, shift * self.scale
        if self.dense is not None:
            found = self.dense.condition(precision, shift)
        else:
            parts = self.rows, self.mode_variance, self.tail**2, precision, shift
            proper = precision.min() >= 0 and self.mode_variance.min() >= 0
            found = moments_with_floor(*parts) if proper else condition_with_floor(*parts).field
        return found._replace(mean=self.scale * found.mean, variance=self.scale**2 * found.variance)

    def _condition_by_modes(
        self, precision: Float[np.ndarray, " J"], shift: Float[np.ndarray, " J"]
    ) -> FloorConditioning:
        return condition_with_floor(self.rows, self.mode_variance, self.tail**2, precision, shift)

    def slopes(
        self,
        precision: Float[np.ndarray, " J"],
        shift: Float[np.ndarray, " J"],
        given: FieldMoments,
    ) -> tuple[Float[np.ndarray, " L"], float]:
        """Return the derivatives of the log evidence in s and in s̄.

        ``Rᵀ (T − T Σ T) R = (I + M d)⁻¹ M`` with more labels than modes; see
        `condition_with_floor` for M.
        """
        mean, variance = given.mean / self.scale, given.variance / self.scale**2
        precision, shift = precision * self.scale**2, shift * self.scale
        pull = shift - precision * mean
        if self.dense is not None:
            by_prior = self.dense.slopes(precision, shift, given._replace(mean=mean))
            by_variance = ((by_prior @ self.rows) * self.rows).sum(axis=0)
        else:
            steps = self._condition_by_modes(precision, shift)
            solved = np.linalg.solve(steps.system, steps.information)
            by_variance = ((self.rows.T @ pull) ** 2 - np.diagonal(solved)) / 2
        by_floor = (pull @ pull - (precision - precision**2 * variance).sum()) / 2
        by_tail = 2 * self.tail * float(by_floor - by_variance.sum())
        return 2 * self.modes * by_variance, by_tail
