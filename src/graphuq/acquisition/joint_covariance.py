"""Posterior covariance of the field at candidates and targets, by factors; a pick adds a column."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int


@dataclasses.dataclass(frozen=True, eq=False)
class JointCovariance:
    """Covariance ``A Aᵀ + diag(d) − U Uᵀ`` of M candidates, and ``A Bᵀ − U Vᵀ`` with T targets.

    Most rules need no more than a column for each pick. It costs O(M), where the whole matrices
    cost O(M² + M T) after each pick.

    Attributes
    ----------
    factor, target_factor : numpy.ndarray, shape (M, r) and (T, r)
        A and B.
    own : numpy.ndarray, shape (M,)
        d ≥ 0, the part of the variance that a candidate shares with no other row.
    lost, target_lost : numpy.ndarray, shape (M, n) and (T, n), optional
        U and V, a column for each pick so far; by default none.
    """

    factor: Float[np.ndarray, "M r"]
    target_factor: Float[np.ndarray, "T r"]
    own: Float[np.ndarray, " M"]
    lost: Float[np.ndarray, "M n"] | None = None
    target_lost: Float[np.ndarray, "T n"] | None = None

    @property
    def matrix(self) -> Float[np.ndarray, "M M"]:
        """Covariance of the candidates."""
        found = self.factor @ self.factor.T
        found[np.diag_indices_from(found)] += self.own
        return found if self.lost is None else found - self.lost @ self.lost.T

    @property
    def across(self) -> Float[np.ndarray, "M T"]:
        """Covariance of candidates and targets."""
        found = self.factor @ self.target_factor.T
        return found if self.lost is None else found - self.lost @ self._target_lost.T

    @property
    def variance(self) -> Float[np.ndarray, " M"]:
        """Variance of each candidate."""
        found = (self.factor**2).sum(axis=1) + self.own
        return np.asarray(found if self.lost is None else found - (self.lost**2).sum(axis=1))

    def column(self, at: int) -> Float[np.ndarray, " M"]:
        """Return the covariance of all candidates with one of them."""
        found = self.factor @ self.factor[at]
        found[at] += self.own[at]
        return found if self.lost is None else found - self.lost @ self.lost[at]

    def with_targets(
        self, at: int, targets: slice | Int[np.ndarray, " t"] = slice(None)
    ) -> Float[np.ndarray, " t"]:
        """Return the covariance of one candidate with these targets, all by default."""
        found = self.target_factor[targets] @ self.factor[at]
        return found if self.lost is None else found - self._target_lost[targets] @ self.lost[at]

    def given(self, at: int, gain: float) -> "JointCovariance":
        """Return the covariance after a pick takes ``gain c cᵀ`` from it; c is its column.

        The pick is no candidate any more.
        """
        root = np.sqrt(gain)
        column, across = root * self.column(at), root * self.with_targets(at)
        lost, target_lost = column[:, None], across[:, None]
        if self.lost is not None:
            lost, target_lost = (
                np.hstack([self.lost, lost]),
                np.hstack([self._target_lost, target_lost]),
            )
        return JointCovariance(
            factor=np.delete(self.factor, at, axis=0),
            target_factor=self.target_factor,
            own=np.delete(self.own, at),
            lost=np.delete(lost, at, axis=0),
            target_lost=target_lost,
        )

    @property
    def _target_lost(self) -> Float[np.ndarray, "T n"]:
        assert self.target_lost is not None  # with `lost`
        return self.target_lost
