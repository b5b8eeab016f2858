"""Covariance columns: the prior solved for at the labelled nodes, without eigenpairs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import IncompatibleParts
from graphuq.spectrum.basis import NodeBasis
from graphuq.spectrum.laplacian import Laplacian
from graphuq.spectrum.precision import Precision
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import xarray as xr

PER_NODE = ("components", "degrees", "node_scale")  # arrays of shape (N,)


@dataclass(frozen=True, eq=False)
class CovarianceColumns(NodeBasis):
    """Exact field ``N(0, (β (L + c I))⁻¹)``, conditioned on its values at the labelled nodes.

    With ``u_L = F x`` and x white, the field is ``B x`` plus a residual. The residual of each node
    is a Gaussian of deviation r.

    Attributes
    ----------
    columns : numpy.ndarray, shape (N, J + 1)
        Rows ``[B, r]``.
    labelled : numpy.ndarray of int, shape (J,)
    beta, shift : float
        β and c.
    components : numpy.ndarray of int, shape (N,)
        Connected component of each node.
    degrees, node_scale : numpy.ndarray, shape (N,)
        Degrees of the graph; `Laplacian.node_scale`.
    settings : dict
        How graph and columns were made.
    laplacian : Laplacian or None
        None in a result that was read from a file, which does not hold the graph.
    """

    columns: Float[np.ndarray, "N J_1"]
    labelled: Int[np.ndarray, " J"]
    beta: float
    shift: float
    components: Int[np.ndarray, " N"]
    degrees: Float[np.ndarray, " N"]
    node_scale: Float[np.ndarray, " N"]
    settings: Mapping[str, Any]
    laplacian: Laplacian | None = None
    has_eigenpairs: ClassVar[Literal[False]] = False

    @staticmethod
    def of(
        source: "Laplacian | CovarianceColumns",
        beta: float,
        shift: float,
        labelled: Int[np.ndarray, " J"],
    ) -> "CovarianceColumns":
        """Solve for the columns of the covariance at the labelled nodes, one for each label.

        On a sparse graph of more than 3,000 nodes, deviations are estimated from a fixed seed.
        Their relative error of a few per cent is ``settings["deviation_error"]``.

        Parameters
        ----------
        source : Laplacian or CovarianceColumns
            Columns are returned as they are if β, c and the labelled nodes are the same. Otherwise
            the columns are solved for again, with the Laplacian that they came from.
        beta, shift : float
            β and c.
        labelled : numpy.ndarray of int, shape (J,)

        Raises
        ------
        IncompatibleParts
            If other columns are needed and the source was read from a file.
        """
        if isinstance(source, CovarianceColumns):
            same = (source.beta, source.shift) == (beta, shift)
            if same and np.array_equal(source.labelled, labelled):
                return source
            if source.laplacian is None:
                raise IncompatibleParts(
                    "these columns of a covariance were read from a file, which does not hold the "
                    "graph; make the posterior again from a Laplacian or from laplacian_spectrum"
                )
            source = source.laplacian
        return _solve(source, beta, shift, labelled)

    def to_dataset(self) -> "xr.Dataset":
        """Return the columns as arrays and attributes, without the Laplacian."""
        require_extra("files")
        import xarray as xr

        stored = xr.Dataset(
            {
                "columns": (("node", "column"), self.columns),
                "labelled": ("labelled_node", self.labelled),
            },
            attrs={
                "beta": self.beta,
                "shift": self.shift,
                "settings": json.dumps(dict(self.settings)),
            },
        )
        for name in PER_NODE:
            stored[name] = ("node", getattr(self, name))
        return stored

    @staticmethod
    def from_dataset(stored: "xr.Dataset") -> "CovarianceColumns":
        """Return the columns that `to_dataset` took apart; `laplacian` is None."""
        per_node: dict[str, Any] = {name: stored[name].to_numpy() for name in PER_NODE}
        return CovarianceColumns(
            columns=stored["columns"].to_numpy(),
            labelled=stored["labelled"].to_numpy(),
            beta=float(stored.attrs["beta"]),
            shift=float(stored.attrs["shift"]),
            settings=json.loads(stored.attrs["settings"]),
            **per_node,
        )

    @property
    def basis(self) -> Float[np.ndarray, "N J_1"]:
        """Matrix of `columns`."""
        return self.columns

    @property
    def factor(self) -> Float[np.ndarray, "J J"]:
        """F, with ``F Fᵀ = G_LL`` the prior covariance at the labelled nodes."""
        nodes = self.labelled
        factor: np.ndarray = self.node_scale[nodes, None] * self.columns[nodes, :-1]
        return factor

    def __repr__(self) -> str:
        return (
            f"CovarianceColumns({len(self.labelled)} labelled of {self.n_nodes} nodes, "
            f"{self.settings['laplacian']}, beta={self.beta:.4g}, shift={self.shift:.4g})"
        )


def _solve(
    laplacian: Laplacian, beta: float, shift: float, labelled: Int[np.ndarray, " J"]
) -> CovarianceColumns:
    graph = laplacian.graph
    precision = Precision(laplacian, shift)
    columns = precision.columns(labelled)
    prior = columns[labelled]
    values, vectors = np.linalg.eigh((prior + prior.T) / 2)
    root = np.sqrt(np.maximum(values, np.finfo(float).eps * values[-1]))
    loadings = columns @ (vectors / root)
    loadings[labelled] = vectors * root
    rng = np.random.default_rng(0)
    variance, error = precision.conditional_variance(loadings, labelled, rng)
    return CovarianceColumns(
        columns=np.column_stack([loadings, np.sqrt(variance)]) / np.sqrt(beta),
        labelled=labelled,
        beta=beta,
        shift=shift,
        components=graph.components,
        degrees=graph.degrees,
        node_scale=laplacian.node_scale,
        settings={
            **graph.settings,
            "laplacian": laplacian.kind,
            "solver": "cholesky" if precision.is_dense else "conjugate gradients",
            "deviation_error": error / 2,  # half the relative error of the variance
        },
        laplacian=laplacian,
    )
