"""Covariance columns: the prior solved for at the labelled nodes, with no eigenpair left out."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from graphuq.errors import IncompatibleParts
from graphuq.spectrum.basis import NodeBasis
from graphuq.spectrum.lanczos import near_order
from graphuq.spectrum.laplacian import Laplacian
from graphuq.spectrum.power_field import PowerField
from graphuq.spectrum.power_precision import PowerPrecision
from graphuq.spectrum.precision import Precision
from graphuq.utils.extras import require_extra

if TYPE_CHECKING:
    import xarray as xr

PER_NODE = ("components", "degrees", "node_scale")  # arrays of shape (N,)


@dataclass(frozen=True, eq=False)
class CovarianceColumns(NodeBasis):
    """Exact field ``N(0, (β (L + c I)^α)⁻¹)``, conditioned on its values at the labelled nodes.

    With ``u_L = F x`` and x white, the field is ``B x`` plus a residual. The residual of each node
    is a Gaussian of deviation r.

    Attributes
    ----------
    columns : numpy.ndarray, shape (N, J + 1)
        Rows ``[B, r]``.
    labelled : numpy.ndarray of int, shape (J,)
    precision : PowerPrecision
        β, c and α, as they were asked for.
    beta : float
        β. If E|u|² = N was asked for, it is computed up to 2,000 nodes and otherwise estimated,
        with the relative standard error ``settings["scale_error"]``.
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
    precision: PowerPrecision
    beta: float
    components: Int[np.ndarray, " N"]
    degrees: Float[np.ndarray, " N"]
    node_scale: Float[np.ndarray, " N"]
    settings: Mapping[str, Any]
    laplacian: Laplacian | None = None
    has_eigenpairs: ClassVar[Literal[False]] = False

    @staticmethod
    def of(
        source: "Laplacian | CovarianceColumns",
        precision: PowerPrecision,
        labelled: Int[np.ndarray, " J"],
    ) -> "CovarianceColumns":
        """Solve for the columns of the covariance at the labelled nodes, one for each label.

        On larger graphs deviations are estimated from a fixed seed. Their relative error of a few
        per cent is ``settings["deviation_error"]``.

        Parameters
        ----------
        source : Laplacian or CovarianceColumns
            Columns are returned as they are if precision and labelled nodes are the same. Otherwise
            the columns are solved for again, with the Laplacian that they came from.
        precision : PowerPrecision
        labelled : numpy.ndarray of int, shape (J,)

        Raises
        ------
        IncompatibleParts
            If other columns are needed and the source was read from a file.
        """
        if isinstance(source, CovarianceColumns):
            if source.precision == precision and np.array_equal(source.labelled, labelled):
                return source
            if source.laplacian is None:
                raise IncompatibleParts(
                    "these columns of a covariance were read from a file, which does not hold the "
                    "graph; make the posterior again from a Laplacian or from laplacian_spectrum"
                )
            source = source.laplacian
        return _solve(source, precision, labelled)

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
                "precision": json.dumps(self.precision._asdict()),
                "beta": self.beta,
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
            precision=PowerPrecision(**json.loads(stored.attrs["precision"])),
            beta=float(stored.attrs["beta"]),
            settings=json.loads(stored.attrs["settings"]),
            **per_node,
        )

    @property
    def basis(self) -> Float[np.ndarray, "N J_1"]:
        """Matrix of `columns`."""
        return self.columns

    def extend(self, weights: sparse.csr_array) -> Float[np.ndarray, "M J_1"]:
        """Return rows of `basis` for new nodes; see `NodeBasis.extend`.

        The deviation of a new node is the mean of those of its neighbours, opposed ones included.
        """
        rows = super().extend(weights)
        if self.is_signed:
            rows[:, -1] = super().extend(abs(weights))[:, -1]
        return rows

    @property
    def factor(self) -> Float[np.ndarray, "J J"]:
        """F, with ``F Fᵀ = G_LL`` the prior covariance at the labelled nodes."""
        nodes = self.labelled
        factor: np.ndarray = self.node_scale[nodes, None] * self.columns[nodes, :-1]
        return factor

    def __repr__(self) -> str:
        return (
            f"CovarianceColumns({len(self.labelled)} labelled of {self.n_nodes} nodes, "
            f"{self.settings['laplacian']}, beta={self.beta:.4g}, "
            f"shift={self.precision.shift:.4g}, power={self.precision.power:.4g})"
        )


def _solve(
    laplacian: Laplacian, precision: PowerPrecision, labelled: Int[np.ndarray, " J"]
) -> CovarianceColumns:
    graph, rng = laplacian.graph, np.random.default_rng(0)
    found: Any = {}
    if precision.beta is not None and precision.is_sparse:
        solver = Precision(laplacian, precision.shift)
        loadings = _loadings(solver.columns(labelled), labelled)
        variance, error = solver.conditional_variance(loadings, labelled, rng)
        beta = scale = precision.beta
        found["solver"] = "cholesky" if solver.is_dense else "conjugate gradients"
        found["deviation_error"] = error / 2  # half the relative error of the variance
    else:
        order = near_order(laplacian)
        place = np.argsort(order) if order is not None else np.arange(graph.n_nodes)
        near = laplacian if order is None else laplacian.on(order)
        field, nodes = PowerField(near, precision), place[labelled]
        loadings = _loadings(field.columns(nodes), nodes)
        variance, found["deviation_error"], energy, error = field.spread(loadings, nodes, rng)
        loadings, variance = loadings[place], variance[place]
        # Of the field and of L + c in units of u; their β differ by the power of the unit.
        scale, unit = energy / graph.n_nodes, math.exp(-precision.power * field.log_unit)
        if precision.beta is not None:
            scale, error = precision.beta / unit, 0.0
        beta = scale * unit
        found["solver"] = "all eigenpairs" if field.is_exact else "Chebyshev series"
        found["scale_error"] = error
    return CovarianceColumns(
        columns=np.column_stack([loadings, np.sqrt(variance)]) / np.sqrt(scale),
        labelled=labelled,
        precision=precision,
        beta=beta,
        components=graph.components,
        degrees=graph.degrees,
        node_scale=laplacian.node_scale,
        settings={**graph.settings, "laplacian": laplacian.kind, **laplacian.signs, **found},
        laplacian=laplacian,
    )


def _loadings(
    columns: Float[np.ndarray, "N J"], labelled: Int[np.ndarray, " J"]
) -> Float[np.ndarray, "N J"]:
    """Return B with ``G_·L = B F^T`` and ``G_LL = F F^T``, of the columns of a covariance G."""
    prior = columns[labelled]
    values, vectors = np.linalg.eigh((prior + prior.T) / 2)
    root = np.sqrt(np.maximum(values, np.finfo(float).eps * values[-1]))
    loadings = columns @ (vectors / root)
    loadings[labelled] = vectors * root
    return loadings
