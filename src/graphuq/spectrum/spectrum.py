"""Value class `Spectrum`: eigenpairs, their residuals, and the tail eigenvalue."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from graphuq.errors import IncompatibleParts, StorageError
from graphuq.spectrum.basis import SpectralBasis
from graphuq.spectrum.closed_form import ProductBasis
from graphuq.utils.concurrency import cached_property
from graphuq.utils.extras import require_extra
from graphuq.utils.files import atomic_write
from graphuq.utils.gate import read_npz, reading

if TYPE_CHECKING:
    import xarray as xr

FORMAT = 1


@dataclass(frozen=True, eq=False)
class Spectrum(SpectralBasis):
    """The ℓ smallest eigenpairs of a graph Laplacian.

    Attributes
    ----------
    eigenvalues : numpy.ndarray, shape (L,)
        Ascending; the first `n_null` are exactly 0.
    eigenvectors : numpy.ndarray, shape (N, L)
        Orthonormal columns; the entry of largest magnitude of each is positive, but for those in
        closed form. The first `n_null` are the null vectors, one per component, which a component
        with contradictory signs lacks. A grid has a `ProductBasis` instead of an array.
    residuals : numpy.ndarray, shape (L,)
        ``|L q − λ q|`` of each pair.
    tail_eigenvalue : float or None
        λ̄, the one value that stands for the eigenvalues from ℓ on (Bertozzi et al. 2018,
        Algorithm 3); it is None without a tail (Algorithm 2), or if no eigenvalue is left out.
    components : numpy.ndarray of int, shape (N,)
        Connected component of each node.
    degrees, node_scale : numpy.ndarray, shape (N,)
        Degrees of the graph; `Laplacian.node_scale`.
    settings : dict
        How graph and spectrum were made.
    """

    eigenvalues: Float[np.ndarray, " L"]
    eigenvectors: Float[np.ndarray, "N L"] | ProductBasis
    residuals: Float[np.ndarray, " L"]
    tail_eigenvalue: float | None
    components: Int[np.ndarray, " N"]
    degrees: Float[np.ndarray, " N"]
    node_scale: Float[np.ndarray, " N"]
    settings: Mapping[str, Any] = field(default_factory=dict)
    has_eigenpairs: ClassVar[Literal[True]] = True

    @property
    def basis(self) -> Float[np.ndarray, "N L"] | ProductBasis:
        """Matrix of `eigenvectors`."""
        return self.eigenvectors

    @cached_property
    def energy(self) -> Float[np.ndarray, " L"]:
        """Energy ``Σ_i (scale_i q_ji)²`` that a unit coefficient adds to ``|u|²``."""
        if np.all(self.node_scale == 1.0):
            return np.ones(self.n_eigenpairs)
        vectors = np.asarray(self.eigenvectors)
        return np.asarray(np.einsum("n,nl,nl->l", self.node_scale**2, vectors, vectors))

    @property
    def tail_energy(self) -> float:
        """Total energy of all directions beyond the ℓ kept ones; N − ℓ unless random-walk."""
        return float((self.node_scale**2).sum() - self.energy.sum())

    def with_tail(self, eigenvalue: float) -> "Spectrum":
        """Return the spectrum with one eigenvalue for all eigenvectors that are left out."""
        return dataclasses.replace(self, tail_eigenvalue=eigenvalue)

    def extended(self, weights: sparse.csr_array) -> "Spectrum":
        """Return the spectrum with new nodes, whose rows are weighted means over their neighbours.

        No eigenproblem is solved. The distribution at the present nodes does not change. A new
        node has the distribution of the series of the prior with the rows of `extend`.

        Parameters
        ----------
        weights : scipy.sparse.csr_array, shape (M, N)
            Weights from new nodes to the present nodes; see `FeatureSpace.connect`.

        Raises
        ------
        IncompatibleParts
            If this is no series of eigenvectors of a graph that can grow.
        """
        if isinstance(self.eigenvectors, ProductBasis):
            raise IncompatibleParts(
                "only a series of computed eigenvectors can be extended; make the graph again"
            )
        size = abs(weights)
        degree = np.asarray(size.sum(axis=1)).ravel()
        nearest = np.asarray(size.argmax(axis=1)).ravel()
        rows = np.concatenate([np.asarray(self.eigenvectors), self.extend(weights)])
        rows *= np.sqrt(self.n_nodes / len(rows))  # approximately unit length again
        return dataclasses.replace(
            self,
            eigenvectors=rows,
            components=np.append(self.components, self.components[nearest]),
            degrees=np.append(self.degrees, degree),
            node_scale=np.append(self.node_scale, self.extend_scale(weights)),
            settings={**self.settings, "extended": self.settings.get("extended", 0) + len(degree)},
        )

    def save(self, path: str | Path) -> None:
        """Write to an ``.npz`` file, whole or not at all; read it with `load_spectrum`.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        with atomic_write(path) as temporary, open(temporary, "wb") as file:
            np.savez(
                file,
                format=FORMAT,
                eigenvalues=self.eigenvalues,
                eigenvectors=np.asarray(self.eigenvectors),
                residuals=self.residuals,
                tail_eigenvalue=np.nan if self.tail_eigenvalue is None else self.tail_eigenvalue,
                components=self.components,
                degrees=self.degrees,
                node_scale=self.node_scale,
                settings=json.dumps(dict(self.settings)),
            )

    def to_dataset(self) -> "xr.Dataset":
        """Return the spectrum as arrays and attributes, to be stored inside a larger file."""
        require_extra("files")
        import xarray as xr

        basis = self.eigenvectors
        if isinstance(basis, ProductBasis):
            stored = basis.to_dataset()
        else:
            stored = xr.Dataset({"eigenvectors": (("node", "pair"), basis)})
        for name in ("eigenvalues", "residuals"):
            stored[name] = ("pair", getattr(self, name))
        for name in ("components", "degrees", "node_scale"):
            stored[name] = ("node", getattr(self, name))
        tail = np.nan if self.tail_eigenvalue is None else self.tail_eigenvalue
        return stored.assign_attrs(tail=tail, settings=json.dumps(dict(self.settings)))

    @staticmethod
    def from_dataset(stored: "xr.Dataset") -> "Spectrum":
        """Return the spectrum that `to_dataset` took apart."""
        names = ("eigenvalues", "residuals", "components", "degrees", "node_scale")
        tail = float(stored.attrs["tail"])
        return Spectrum(
            **{name: stored[name].to_numpy() for name in names},
            eigenvectors=(
                ProductBasis.from_dataset(stored)
                if "waves" in stored
                else stored["eigenvectors"].to_numpy()
            ),
            tail_eigenvalue=None if np.isnan(tail) else tail,
            settings=json.loads(stored.attrs["settings"]),
        )

    def __repr__(self) -> str:
        tail = "no tail" if self.tail_eigenvalue is None else f"tail at {self.tail_eigenvalue:.4g}"
        return (
            f"Spectrum({self.n_eigenpairs} of {self.n_nodes} eigenpairs, "
            f"{self.settings['laplacian']}, {tail}, largest residual {self.residuals.max():.1e})"
        )


def load_spectrum(path: str | Path) -> Spectrum:
    """Read a spectrum that `Spectrum.save` wrote.

    Raises
    ------
    StorageError
        If the file is missing, truncated, or of another format.
    """
    arrays = read_npz(path, "saved spectrum")
    with reading(path, "saved spectrum"):
        found = int(arrays["format"])
        if found != FORMAT:
            raise StorageError(
                f"'{path}' has format {found}, this graphuq reads {FORMAT}; compute the spectrum "
                "again"
            )
        tail = float(arrays["tail_eigenvalue"])
        vectors, values = arrays["eigenvectors"], arrays["eigenvalues"]
        per_node = [arrays[name] for name in ("components", "degrees", "node_scale")]
        shapes = {len(one) for one in per_node if one.ndim} | {len(vectors)}
        if vectors.ndim != 2 or vectors.shape[1:] != values.shape or len(shapes) != 1:
            raise ValueError(f"eigenvectors of shape {vectors.shape} do not fit")
        return Spectrum(
            eigenvalues=values,
            eigenvectors=vectors,
            residuals=arrays["residuals"],
            tail_eigenvalue=None if np.isnan(tail) else tail,
            components=per_node[0],
            degrees=per_node[1],
            node_scale=per_node[2],
            settings=json.loads(str(arrays["settings"])),
        )
