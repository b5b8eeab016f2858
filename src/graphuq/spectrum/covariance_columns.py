"""What takes a spectrum's place where the prior is solved for at the labelled nodes."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from graphuq.spectrum.laplacian import Laplacian
from graphuq.spectrum.precision import Precision
from graphuq.spectrum.spectrum import Spectrum


@dataclass(frozen=True, eq=False)
class CovarianceColumns(Spectrum):
    """The field ``N(0, (β (L + c I))⁻¹)`` as the labelled nodes see it; exact, and no series.

    Given ``u_L = F x``, x white, the field is ``B x`` and what labels leave open, of a deviation r
    of each node: `eigenvectors` holds the rows ``[B, r]``, N (J + 1) numbers, as if they were
    eigenvectors; all eigenvalues are 0.

    Attributes
    ----------
    laplacian : Laplacian
    labelled : numpy.ndarray of int, shape (J,)
    factor : numpy.ndarray, shape (J, J)
        F, with ``F Fᵀ = G_LL`` the prior covariance at the labelled nodes.
    beta, shift : float
        β and c.
    """

    laplacian: Laplacian | None = None
    labelled: Int[np.ndarray, " J"] = field(default_factory=lambda: np.arange(0))
    factor: Float[np.ndarray, "J J"] = field(default_factory=lambda: np.zeros((0, 0)))
    beta: float = 1.0
    shift: float = 1.0

    @staticmethod
    def of(
        laplacian: Laplacian, beta: float, shift: float, labelled: Int[np.ndarray, " J"]
    ) -> "CovarianceColumns":
        """Solve for the columns of the covariance at the labelled nodes, one for each label.

        Deviations of more than 3,000 nodes of a sparse graph are estimated, by a fixed seed: of a
        few per cent, which ``settings["deviation_error"]`` has.
        """
        graph = laplacian.graph
        precision = Precision(laplacian, shift)
        scale = laplacian.node_scale
        columns = precision.columns(labelled)
        prior = columns[labelled]
        values, vectors = np.linalg.eigh((prior + prior.T) / 2)
        root = np.sqrt(np.maximum(values, np.finfo(float).eps * values[-1]))
        loadings = columns @ (vectors / root)
        loadings[labelled] = vectors * root
        rng = np.random.default_rng(0)
        variance, error = precision.conditional_variance(loadings, labelled, rng)
        rows = np.column_stack([loadings, np.sqrt(variance)]) / np.sqrt(beta)
        n_columns = rows.shape[1]
        return CovarianceColumns(
            eigenvalues=np.zeros(n_columns),
            eigenvectors=rows,
            residuals=np.zeros(n_columns),
            tail_eigenvalue=None,
            components=graph.components,
            degrees=graph.degrees,
            node_scale=scale,
            settings={
                **graph.settings,
                "laplacian": laplacian.kind,
                "solver": "cholesky" if precision.is_dense else "conjugate gradients",
                "deviation_error": error / 2,  # half that of the variance
            },
            laplacian=laplacian,
            labelled=labelled,
            factor=scale[labelled, None] * rows[labelled, :-1],
            beta=beta,
            shift=shift,
        )
