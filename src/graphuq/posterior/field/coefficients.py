r"""Field in the coefficients of its series, the form of draws with learnt hyperparameters.

A draw is (a, w): coefficients ``a = s ξ`` of the eigenvectors and, with a tail, J further numbers
``w = s̄ z``. These make the tail's part of the field at the labelled nodes: ``u_L = Q_L a + C w``,
where C is the root of ``I − Q_L Q_Lᵀ``. At other nodes the tail's part has mean
``−q_j Q_Lᵀ C⁻¹ w`` and variance s̄² times ``1 − |q_j|² − |q_j Q_Lᵀ C⁻¹|²``. All of it is multiplied
by the node scale.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from graphuq.errors import IncompatibleParts
from graphuq.posterior.field.labelled import LowRankField
from graphuq.spectrum import SpectralBasis

MAX_WITH_TAIL = 2_000  # labelled nodes, as C has J² numbers
SPANNED = 1e-6  # deviation of the tail relative to s̄, below which a direction is without tail


class CoefficientField(LowRankField):
    """Series in its own coefficients; they are known in every draw and determine every node."""

    @staticmethod
    def of(spectrum: SpectralBasis, nodes: np.ndarray, n_modes: int) -> "CoefficientField":
        """Make the field of a spectrum.

        Parameters
        ----------
        spectrum : Spectrum
        nodes : numpy.ndarray of int, shape (J,)
            Labelled nodes; empty if they are treated like all others.
        n_modes : int
            Number of coefficients in a draw.
        """
        n_pairs = spectrum.n_columns
        return CoefficientField(
            factor=spectrum.node_scale[nodes, None] * spectrum.basis[nodes, :n_modes],
            coefficient_map=np.eye(n_pairs, n_modes),
            mode_variance=np.zeros(n_pairs),
            tail_std=0.0,
        )

    def loadings(self, rows: Float[np.ndarray, "B L"]) -> Float[np.ndarray, "B r"]:
        """Return the rows, one column for each coefficient."""
        return rows[:, : self.dimension].copy()

    def conditional_std(
        self, rows: Float[np.ndarray, "B L"], loadings: Float[np.ndarray, "B r"] | None = None
    ) -> Float[np.ndarray, " B"]:
        """Return zeros: the coefficients determine every node."""
        return np.zeros(len(rows))


class TailAtLabelled(NamedTuple):
    """Tail's part of the field at the labelled nodes, and at others given that, for s̄ = 1.

    Attributes
    ----------
    root : numpy.ndarray, shape (J, J)
        C.
    pull : numpy.ndarray, shape (L, J)
        ``−Q_Lᵀ C⁻¹``.
    """

    root: Float[np.ndarray, "J J"]
    pull: Float[np.ndarray, "L J"]

    @staticmethod
    def of(rows: Float[np.ndarray, "J L"]) -> "TailAtLabelled":
        """Compute both from rows of the eigenvectors.

        With ``Q_L = V Σ Wᵀ``, ``C = I + V (√(1 − Σ²) − 1) Vᵀ``.

        Raises
        ------
        IncompatibleParts
            If there are more than 2,000 labelled nodes.
        """
        if len(rows) > MAX_WITH_TAIL:
            raise IncompatibleParts(
                f"hyperparameters are learnt with a tail from at most {MAX_WITH_TAIL} nodes with "
                f"data, and there are {len(rows)}; compute the spectrum with tail_eigenvalue=False"
            )
        left, sigma, right = np.linalg.svd(rows, full_matrices=False)
        rest = np.sqrt(np.maximum(1 - sigma**2, 0.0))
        rest[rest < SPANNED] = 0.0
        inverse = np.where(rest > 0, 1 / np.where(rest > 0, rest, 1.0), 0.0)
        return TailAtLabelled(
            root=np.eye(len(rows)) + (left * (rest - 1)) @ left.T,
            pull=-(right.T * (sigma * inverse)) @ left.T,
        )


def coefficient_field_with_tail(spectrum: SpectralBasis, nodes: np.ndarray) -> LowRankField:
    """Return the field in coefficients with a tail.

    Its conditional deviation given a draw is in units of the s̄ of that draw.
    """
    rows = spectrum.eigenvectors[nodes]
    tail = TailAtLabelled.of(rows)
    n_pairs = spectrum.n_eigenpairs
    return LowRankField(
        factor=spectrum.node_scale[nodes, None] * np.hstack([rows, tail.root]),
        coefficient_map=np.hstack([np.eye(n_pairs), tail.pull]),
        mode_variance=np.zeros(n_pairs),
        tail_std=1.0,
    )
