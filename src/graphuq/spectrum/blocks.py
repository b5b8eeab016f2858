"""Basis of several blocks of columns: eigenpairs of a Laplacian, functions of the features.

A prior gives each column a variance. A prior on eigenpairs is a function of the eigenvalue; a block
of functions has the same variance in each of its columns, whose lengths are those of the
covariance that they stand for. A block may also hold eigenpairs of another graph of the nodes.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from graphuq.errors import InvalidInput, require
from graphuq.graphs import Graph
from graphuq.graphs.inputs import MatrixLike
from graphuq.graphs.variables import variables_of
from graphuq.spectrum.basis import SMALLEST_DEGREE, SpectralBasis
from graphuq.spectrum.closed_form import ProductBasis
from graphuq.spectrum.exponential import ExponentialFunctions, has_exponential
from graphuq.spectrum.feature_block import has_varying_rows
from graphuq.spectrum.few_variables import FEW_VARIABLES, TableInMemory, TableOfVariables
from graphuq.spectrum.joined import JOINED_GRAPH, JoinedGraph, columns_that_tear
from graphuq.spectrum.known_blocks import Functions, OtherEigenpairs
from graphuq.spectrum.node_blocks import NODE_BLOCKS, informed, node_blocks
from graphuq.spectrum.powers import (
    POWERS,
    THIRD_POWER,
    PowerFunctions,
    ThirdPower,
    has_third_power,
)
from graphuq.spectrum.solve import laplacian_spectrum
from graphuq.spectrum.spectrum import Spectrum
from graphuq.spectrum.whitened import (
    WhitenedGraph,
    WhitenedLinear,
    has_whitened_graph,
)
from graphuq.utils.concurrency import cached_property
from graphuq.utils.progress import Progress

if TYPE_CHECKING:
    import xarray as xr

EIGENPAIRS = "eigenpairs"  # name of the block of a spectrum
STORED_BLOCK = "block_"  # prefix of the name under which a block of functions is stored
STORED_SCALES = "scales_"  # and that of what `FunctionsOfFew` divides features by
STORED_GRAPH, EIGENVECTORS = "graph_", "_eigenvectors"  # of names of arrays of another graph


@dataclass(frozen=True, eq=False, repr=False)
class Basis(SpectralBasis):
    """Eigenpairs of a graph, and blocks of functions of the features beside them.

    Attributes
    ----------
    spectrum : Spectrum
        Eigenpairs.
    blocks : tuple of Functions
        Blocks of functions, each with a ``name`` and ``values`` of shape (N, m), such as
        `PowerFunctions`, which are computed when they are first used. A block of eigenpairs of
        another graph has a ``spectrum`` too.
    features : array_like or sparse matrix, shape (N, d), optional
        Rows of which the blocks were made; not stored in files.
    table : TableOfVariables, optional
        Of which the labels may choose a few variables; not stored in files.

    Raises
    ------
    InvalidInput
        If two blocks have one name, or the spectrum is that of a grid.

    Examples
    --------
    >>> import graphuq as gq
    >>> moons = gq.datasets.two_moons(100, n_features=2)
    >>> basis = gq.Basis.of(gq.graphs.knn_graph(moons.features), n_eigenpairs=20)
    >>> [block.name for block in basis.blocks]
    ['powers', 'whitened linear', 'exponential', 'whitened graph']
    >>> basis.with_blocks(["powers"]).n_columns  # the leading direction, and the constant
    22
    """

    spectrum: Spectrum
    blocks: tuple[Any, ...] = field(default=())
    features: Any = None
    table: TableOfVariables | None = None
    has_eigenpairs: ClassVar[Literal[True]] = True

    def __post_init__(self) -> None:
        names = [EIGENPAIRS, *(block.name for block in self.blocks)]
        require(len(set(names)) == len(names), "blocks", f"names {names[1:]}", "use each name once")
        if self.blocks and isinstance(self.spectrum.eigenvectors, ProductBasis):
            raise InvalidInput(
                "spectrum", f"{self.spectrum} of a grid", "leave the blocks of functions out"
            )

    @staticmethod
    def of(
        graph: Graph,
        laplacian: str = "symmetric",
        n_eigenpairs: int | None = None,
        *,
        tail_eigenvalue: bool | float | str = False,
        progress: Progress | None = None,
    ) -> "Basis":
        """Return the basis of a graph: its eigenpairs, and functions of its features if it has any.

        A graph of `graphuq.graphs.node_graph` has more blocks; see docs/nodes.md.

        Parameters
        ----------
        graph : Graph
        laplacian, n_eigenpairs, tail_eigenvalue, progress
            See `laplacian_spectrum`. With a tail there are no functions.
        """
        spectrum = laplacian_spectrum(
            graph, laplacian, n_eigenpairs, tail_eigenvalue=tail_eigenvalue, progress=progress
        )
        basis = Basis(spectrum).with_functions(graph.features)
        more = node_blocks(graph, laplacian, n_eigenpairs)
        if not more:
            return basis
        require(
            spectrum.tail_eigenvalue is None,
            "tail_eigenvalue",
            f"{tail_eigenvalue!r} beside features of the nodes, or several graphs",
            "leave it out",
        )
        settings = {**spectrum.settings, NODE_BLOCKS: [block.name for block in more]}
        own = basis.blocks
        if graph.has_node_features:  # whose powers are among the other blocks
            own = tuple(one for one in own if one.name not in (POWERS, THIRD_POWER))
        return Basis(
            dataclasses.replace(spectrum, settings=settings), (*own, *more), graph.features
        )

    def with_functions(self, features: MatrixLike | None, before: "Basis | None" = None) -> "Basis":
        """Return the basis with functions of the features; the same without any, or with a tail.

        Parameters
        ----------
        features : array_like or sparse matrix, shape (N, d), optional
        before : Basis, optional
            That of the first rows, which may have a `JoinedGraph`, or functions of few variables:
            there are some here then, too.
        """
        plain = not isinstance(self.spectrum.eigenvectors, ProductBasis)
        if features is None or self.spectrum.tail_eigenvalue is not None or not plain:
            return self
        powers = PowerFunctions(features)
        if not has_varying_rows(powers.features):
            return dataclasses.replace(self, blocks=())
        components = powers.components
        blocks: list[Any] = [powers, WhitenedLinear(features, components=components)]
        variables, table = variables_of(components), None
        if variables is not None and has_exponential(variables):
            table = TableInMemory(components, variables)
            blocks.append(ExponentialFunctions(features, components=components))
        if has_third_power(features):
            blocks.append(ThirdPower(features, components=components))
        if has_whitened_graph(features):
            laplacian = self.settings["laplacian"]
            blocks.append(WhitenedGraph(features, laplacian, components=components))
            first = self if before is None or not before.has(JOINED_GRAPH) else before
            rows: Any = features
            tears = columns_that_tear(first.spectrum, rows[: first.n_nodes])
            if tears.any():
                others = np.asarray(features)[:, ~tears]
                blocks.append(JoinedGraph(others, laplacian))
        if table is not None and before is not None and before.has(FEW_VARIABLES):
            scales = next(b.scales for b in before.blocks if b.name == FEW_VARIABLES)
            blocks.append(table.functions(scales, 0.0))
        return dataclasses.replace(self, blocks=tuple(blocks), features=features, table=table)

    def with_blocks(self, names: Iterable[str]) -> "Basis":
        """Return the basis with these blocks of functions alone, which need not be any."""
        chosen = set(names)
        kept = tuple(block for block in self.blocks if block.name in chosen)
        return dataclasses.replace(self, blocks=kept)

    @cached_property
    def basis(self) -> Any:
        """Matrix of all columns, one row for each node, divided by `node_scale`."""
        if not self.blocks:
            return self.spectrum.eigenvectors
        for block in self.blocks:
            require(
                len(block.values) == self.n_nodes,
                "blocks",
                f"{len(block.values)} rows of {block.name} beside {self.n_nodes} nodes",
                "give one row for each node",
            )
        scale = self.node_scale[:, None]
        found = np.empty((self.n_nodes, self.n_columns))
        found[:, : self.n_eigenpairs] = self.spectrum.eigenvectors
        for block in self.blocks:
            np.divide(block.values, scale, out=found[:, self.columns_of(block.name)])
        return found

    def columns_of(self, name: str) -> slice:
        """Return the places of the columns of a block: "eigenpairs", or the name of functions.

        Raises
        ------
        InvalidInput
            If there is no such block.
        """
        begin = self.n_eigenpairs
        if name == EIGENPAIRS:
            return slice(0, begin)
        for block in self.blocks:
            end = begin + block.values.shape[1]
            if block.name == name:
                return slice(begin, end)
            begin = end
        known = ", ".join([EIGENPAIRS, *(block.name for block in self.blocks)])
        raise InvalidInput("block", f"{name!r} is unknown", f"use one of {known}")

    def with_tail(self, eigenvalue: float) -> "Basis":
        """Return the basis with one eigenvalue for all eigenvectors that are left out."""
        return dataclasses.replace(self, spectrum=self.spectrum.with_tail(eigenvalue))

    @property
    def n_columns(self) -> int:
        """Number of columns of all blocks."""
        return self.n_eigenpairs + sum(block.values.shape[1] for block in self.blocks)

    @property
    def eigenvalues(self) -> Float[np.ndarray, " l"]:  # type: ignore[override]
        """Eigenvalues of the eigenpairs, shape (ℓ,)."""
        return self.spectrum.eigenvalues

    @property
    def eigenvectors(self) -> Any:
        """Eigenvectors alone, shape (N, ℓ)."""
        return self.spectrum.eigenvectors

    @property
    def residuals(self) -> Float[np.ndarray, " l"]:  # type: ignore[override]
        """Residuals of the eigenpairs."""
        return self.spectrum.residuals

    @property
    def tail_eigenvalue(self) -> float | None:  # type: ignore[override]
        """Eigenvalue of the tail; see `Spectrum`."""
        return self.spectrum.tail_eigenvalue

    def informed_by(self, nodes: Int[np.ndarray, " J"]) -> Bool[np.ndarray, " N"]:
        """Return which nodes labels at some nodes inform, by any block of a given graph."""
        own = [one for one in self.blocks if one.name in self.settings.get(NODE_BLOCKS, ())]
        return super().informed_by(nodes) | informed(own, nodes)

    def has(self, name: str) -> bool:
        """Return whether there is a block of functions of this name."""
        return any(block.name == name for block in self.blocks)

    @property
    def tail_energy(self) -> float:
        """Energy beyond the eigenpairs; see `Spectrum`."""
        return self.spectrum.tail_energy

    @cached_property
    def energy(self) -> Float[np.ndarray, " L"]:
        """Energy that a unit coefficient of each column adds to ``|u|²``."""
        functions = [np.einsum("nm,nm->m", block.values, block.values) for block in self.blocks]
        return np.concatenate([self.spectrum.energy, *functions])

    @property
    def components(self) -> Int[np.ndarray, " N"]:  # type: ignore[override]
        """Connected component of each node."""
        return self.spectrum.components

    @property
    def degrees(self) -> Float[np.ndarray, " N"]:  # type: ignore[override]
        """Degrees of the graph."""
        return self.spectrum.degrees

    @property
    def node_scale(self) -> Float[np.ndarray, " N"]:  # type: ignore[override]
        """Factor of the field at each node; see `Laplacian.node_scale`."""
        return self.spectrum.node_scale

    @property
    def settings(self) -> Any:  # type: ignore[override]
        """How graph and spectrum were made."""
        return self.spectrum.settings

    def extend(self, weights: sparse.csr_array) -> Float[np.ndarray, "M L"]:
        """Return rows for new nodes; a function of the features is the mean over neighbours.

        See `NodeBasis.extend`, and `functions_of_rows` for the functions themselves.
        """
        rows = [self.spectrum.extend(weights)]
        degree = np.asarray(weights.sum(axis=1)).ravel()
        near = degree >= SMALLEST_DEGREE
        inverse = np.where(near, 1 / np.where(near, degree, 1.0), 0.0)
        scale = self.extend_scale(weights)[:, None]
        rows += [inverse[:, None] * (weights @ block.values) / scale for block in self.blocks]
        return np.hstack(rows)

    def extended(self, weights: sparse.csr_array) -> "Basis":
        """Return the basis with new nodes, whose rows are weighted means over their neighbours.

        See `Spectrum.extended`.
        """
        grown = self.spectrum.extended(weights)
        new, factor = self.extend(weights), self.extend_scale(weights)[:, None]
        shrink = np.sqrt(self.n_nodes / grown.n_nodes)
        blocks: list[Any] = []
        for block in self.blocks:
            more = new[:, self.columns_of(block.name)] * factor
            values, spectrum = shrink * np.concatenate([block.values, more]), _spectrum(block)
            if spectrum is None:
                blocks.append(Functions(block.name, values, getattr(block, "scales", None)))
            else:
                blocks.append(OtherEigenpairs(block.name, _with_functions(spectrum, values)))
        return Basis(grown, tuple(blocks))

    def to_dataset(self) -> "xr.Dataset":
        """Return the basis as arrays and attributes, to be stored inside a larger file."""
        stored = self.spectrum.to_dataset()
        for block in self.blocks:
            spectrum = _spectrum(block)
            if spectrum is None:
                stored[STORED_BLOCK + block.name] = (("node", f"column_{block.name}"), block.values)
                scales = getattr(block, "scales", None)
                if scales is not None:
                    stored[STORED_SCALES + block.name] = (f"feature_{block.name}", scales)
            else:
                other = spectrum.to_dataset().rename_dims(pair=f"pair_{block.name}")
                prefix = f"{STORED_GRAPH}{block.name}_"
                stored = stored.assign({prefix + str(name): other[name] for name in other})
                stored.attrs |= {prefix + str(name): value for name, value in other.attrs.items()}
        return stored

    @staticmethod
    def from_dataset(stored: "xr.Dataset") -> "Basis":
        """Return the basis that `to_dataset` took apart."""
        blocks: list[Any] = []
        for name in map(str, stored):
            if name.startswith(STORED_BLOCK):
                own = name.removeprefix(STORED_BLOCK)
                scales = stored.get(STORED_SCALES + own)
                known = None if scales is None else scales.to_numpy()
                blocks.append(Functions(own, stored[name].to_numpy(), known))
            elif name.startswith(STORED_GRAPH) and name.endswith(EIGENVECTORS):
                own = name.removeprefix(STORED_GRAPH).removesuffix(EIGENVECTORS)
                prefix = f"{STORED_GRAPH}{own}_"
                arrays = {str(n): str(n).removeprefix(prefix) for n in stored}
                other = stored[[n for n in arrays if n.startswith(prefix)]]
                attrs = {
                    str(n).removeprefix(prefix): value
                    for n, value in stored.attrs.items()
                    if str(n).startswith(prefix)
                }
                other = other.rename({n: arrays[str(n)] for n in other}).assign_attrs(attrs)
                blocks.append(OtherEigenpairs(own, Spectrum.from_dataset(other)))
        return Basis(Spectrum.from_dataset(stored), tuple(blocks))

    def __repr__(self) -> str:
        more = [f"{block.values.shape[1]} {block.name} functions" for block in self.blocks]
        return f"Basis({', '.join([repr(self.spectrum), *more])})"


def spectrum_of(basis: SpectralBasis, block: str) -> SpectralBasis | None:
    """Return the eigenpairs of a block of a basis, or None for a block of functions."""
    if block == EIGENPAIRS:
        return basis.spectrum if isinstance(basis, Basis) else basis
    return next((_spectrum(one) for one in basis.blocks if one.name == block), None)


def _spectrum(block: Any) -> Spectrum | None:
    """Return the eigenpairs of a block, or None for one of functions."""
    found: Spectrum | None = getattr(block, "spectrum", None)
    return found


def _with_functions(spectrum: Spectrum, values: Float[np.ndarray, "M l"]) -> Spectrum:
    """Return a spectrum with eigenvectors for more nodes, which belong to its first component."""
    n_more = len(values) - spectrum.n_nodes
    scale = np.append(spectrum.node_scale, np.ones(n_more))
    return dataclasses.replace(
        spectrum,
        eigenvectors=values / scale[:, None],
        components=np.append(spectrum.components, np.zeros(n_more, int)),
        degrees=np.append(spectrum.degrees, np.full(n_more, spectrum.degrees.mean())),
        node_scale=scale,
    )
