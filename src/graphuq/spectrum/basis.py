"""Bases of what carries a Gaussian prior to the nodes: eigenvectors, or columns of a covariance."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from graphuq.spectrum.closed_form import ProductBasis

N_NULL = "n_null_vectors"  # among the settings of a basis on a graph with negative weights
SMALLEST_DEGREE = np.finfo(np.float64).tiny  # its inverse is finite; a smaller degree counts as 0


class NodeBasis(ABC):
    """Basis in which the field is linear: ``u = node_scale * (basis @ coefficients)``.

    Attributes
    ----------
    has_eigenpairs : bool
        Whether the columns are eigenvectors with known eigenvalues. Learnt hyperparameters and
        likelihoods on all nodes need them.
    components : numpy.ndarray of int, shape (N,)
        Connected component of each node.
    degrees, node_scale : numpy.ndarray, shape (N,)
        Degrees of the graph; `Laplacian.node_scale`.
    settings : dict
        How graph and basis were made.
    blocks : tuple
        Blocks of functions of the features; see `Basis`.
    """

    has_eigenpairs: ClassVar[bool]
    components: Int[np.ndarray, " N"]
    degrees: Float[np.ndarray, " N"]
    node_scale: Float[np.ndarray, " N"]
    settings: Mapping[str, Any]
    blocks: tuple[Any, ...] = ()

    @property
    @abstractmethod
    def basis(self) -> Float[np.ndarray, "N L"] | ProductBasis:
        """Matrix with one row for each node."""

    @property
    def n_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.components)

    @property
    def n_columns(self) -> int:
        """Number of columns of `basis`."""
        return self.basis.shape[1]

    @property
    def n_components(self) -> int:
        """Number of connected components."""
        return int(self.components.max()) + 1

    @property
    def is_signed(self) -> bool:
        """Whether the graph has negative weights."""
        return N_NULL in self.settings

    @property
    def n_null(self) -> int:
        """Number of null vectors of the Laplacian, one for each component that is balanced."""
        return int(self.settings.get(N_NULL, self.n_components))

    def informed_by(self, nodes: Int[np.ndarray, " J"]) -> Bool[np.ndarray, " N"]:
        """Return which nodes labels at some nodes inform: those of their components."""
        return np.isin(self.components, self.components[nodes])

    def extend(self, weights: sparse.csr_array) -> Float[np.ndarray, "M L"]:
        """Return rows of `basis` for new nodes, each a weighted mean over its neighbours.

        ``q_k(*) = Σ_j w_*j √(d_*/d_j) q_k(j) / d_*`` for the symmetric and the random-walk
        Laplacian. It is the mean of the random walk's eigenvectors: the value at a node is nearly
        the mean over its neighbours. For the unnormalised Laplacian it is the plain mean. Degrees
        are sums of ``|w|``: an opposed node counts with the opposite sign.

        Parameters
        ----------
        weights : scipy.sparse.csr_array, shape (M, N)
            Weights from new rows to nodes; a row of zeros, up to underflow, is given zeros.

        Returns
        -------
        numpy.ndarray, shape (M, L)
        """
        degree = np.asarray(abs(weights).sum(axis=1)).ravel()
        near = degree >= SMALLEST_DEGREE
        inverse = np.where(near, 1 / np.where(near, degree, 1.0), 0.0)
        if self.settings["laplacian"] == "unnormalized":
            return inverse[:, None] * (weights @ np.asarray(self.basis))
        node_degree = np.where(self.degrees > 0, self.degrees, 1.0)
        mean = _times(weights, 1 / np.sqrt(node_degree)) @ np.asarray(self.basis)
        return (inverse * np.sqrt(degree))[:, None] * mean

    def combine(
        self, weights: sparse.csr_array
    ) -> tuple[Float[np.ndarray, "M L"], Float[np.ndarray, " M"]]:
        """Return rows of `basis`, and `node_scale`, of given combinations of nodes.

        Parameters
        ----------
        weights : scipy.sparse.csr_array, shape (M, N)
            Weights that add to one a row; see `FeatureSpace.connect`.
        """
        rows = _times(weights, self.node_scale) @ np.asarray(self.basis)
        return rows, np.ones(weights.shape[0])

    def extend_scale(self, weights: sparse.csr_array) -> Float[np.ndarray, " M"]:
        """Return `node_scale` of new nodes."""
        degree = np.asarray(abs(weights).sum(axis=1)).ravel()
        if self.settings["laplacian"] != "random-walk":
            return np.ones(len(degree))
        return np.sqrt(self.degrees.mean() / np.where(degree > 0, degree, self.degrees.mean()))


def _times(weights: sparse.csr_array, factor: Float[np.ndarray, " N"]) -> sparse.csr_array:
    """Return weights to nodes times a factor of each node."""
    values = weights.data * factor[weights.indices]
    return sparse.csr_array((values, weights.indices, weights.indptr), shape=weights.shape)


class SpectralBasis(NodeBasis):
    """Basis with eigenpairs of a Laplacian: a `Spectrum`, or a `Basis` that has one."""

    eigenvalues: Float[np.ndarray, " l"]
    eigenvectors: Any
    residuals: Float[np.ndarray, " l"]
    tail_eigenvalue: float | None

    @property
    @abstractmethod
    def energy(self) -> Float[np.ndarray, " L"]:
        """Energy that a unit coefficient of each column adds to ``|u|²``."""

    @property
    def n_eigenpairs(self) -> int:
        """Number of eigenpairs ℓ."""
        return len(self.eigenvalues)

    @property
    @abstractmethod
    def tail_energy(self) -> float:
        """Total energy of all directions beyond the ℓ eigenvectors."""

    @abstractmethod
    def with_tail(self, eigenvalue: float) -> "SpectralBasis":
        """Return the basis with one eigenvalue for all eigenvectors that are left out."""

    @abstractmethod
    def extended(self, weights: sparse.csr_array) -> "SpectralBasis":
        """Return the basis with new nodes, whose rows are those of `extend`.

        Parameters
        ----------
        weights : scipy.sparse.csr_array, shape (M, N)
            Weights from new nodes to those there are; see `FeatureSpace.connect`.

        Raises
        ------
        IncompatibleParts
            If the columns are not computed eigenvectors of a graph that can grow.
        """
