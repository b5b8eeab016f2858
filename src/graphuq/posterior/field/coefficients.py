r"""The field in the coefficients of its series, as draws have it where hyperparameters are learnt.

A draw is (a, w): coefficients ``a = s ξ`` of the eigenvectors and, with a tail, J numbers more,
``w = s̄ z``, which make the tail's part of the field at the labelled nodes: ``u_L = Q_L a + C w``,
C the root of ``I − Q_L Q_Lᵀ``. Elsewhere the tail's part has the mean ``−q_j Q_Lᵀ C⁻¹ w`` and
s̄² times the variance ``1 − |q_j|² − |q_j Q_Lᵀ C⁻¹|²``, all times the node scale.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from graphuq.errors import IncompatibleParts
from graphuq.posterior.field.labelled import LowRankField
from graphuq.spectrum import Spectrum

MAX_WITH_TAIL = 2_000  # labelled nodes: C has J² numbers
SPANNED = 1e-6  # deviation of the tail, over s̄, below which a direction has none of it


class CoefficientField(LowRankField):
    """The series in its own coefficients, which are known in every draw: nothing is left open."""

    @staticmethod
    def of(spectrum: Spectrum, nodes: np.ndarray, n_modes: int) -> "CoefficientField":
        """With the rows of its labelled nodes, if they are to be told from others."""
        n_pairs = spectrum.n_eigenpairs
        return CoefficientField(
            factor=spectrum.node_scale[nodes, None] * spectrum.eigenvectors[nodes, :n_modes],
            coefficient_map=np.eye(n_pairs, n_modes),
            mode_variance=np.zeros(n_pairs),
            tail_std=0.0,
        )

    def loadings(self, rows: Float[np.ndarray, "B L"]) -> Float[np.ndarray, "B r"]:
        """The rows themselves."""
        return rows[:, : self.dimension].copy()

    def conditional_std(
        self, rows: Float[np.ndarray, "B L"], loadings: Float[np.ndarray, "B r"] | None = None
    ) -> Float[np.ndarray, " B"]:
        """None."""
        return np.zeros(len(rows))


class TailAtLabelled(NamedTuple):
    """The tail's part of the field at the labelled nodes, and elsewhere given that, for s̄ = 1."""

    root: Float[np.ndarray, "J J"]  # C
    pull: Float[np.ndarray, "L J"]  # −Q_Lᵀ C⁻¹

    @staticmethod
    def of(rows: Float[np.ndarray, "J L"]) -> "TailAtLabelled":
        """From rows of the eigenvectors: with ``Q_L = V Σ Wᵀ``, ``C = I + V (√(1 − Σ²) − 1) Vᵀ``.

        Raises
        ------
        IncompatibleParts
            If there are too many labelled nodes for a matrix of them.
        """
        if len(rows) > MAX_WITH_TAIL:
            raise IncompatibleParts(
                f"hyperparameters are learnt with a tail from at most {MAX_WITH_TAIL} nodes that "
                f"the likelihood sees, and there are {len(rows)}; compute the spectrum with "
                "tail_eigenvalue=False"
            )
        left, sigma, right = np.linalg.svd(rows, full_matrices=False)
        rest = np.sqrt(np.maximum(1 - sigma**2, 0.0))
        rest[rest < SPANNED] = 0.0
        inverse = np.where(rest > 0, 1 / np.where(rest > 0, rest, 1.0), 0.0)
        return TailAtLabelled(
            root=np.eye(len(rows)) + (left * (rest - 1)) @ left.T,
            pull=-(right.T * (sigma * inverse)) @ left.T,
        )


def coefficient_field_with_tail(spectrum: Spectrum, nodes: np.ndarray) -> LowRankField:
    """The same with a tail, whose deviation given a draw is in units of the draw's own s̄."""
    rows = spectrum.eigenvectors[nodes]
    tail = TailAtLabelled.of(rows)
    n_pairs = spectrum.n_eigenpairs
    return LowRankField(
        factor=spectrum.node_scale[nodes, None] * np.hstack([rows, tail.root]),
        coefficient_map=np.hstack([np.eye(n_pairs), tail.pull]),
        mode_variance=np.zeros(n_pairs),
        tail_std=1.0,
    )
