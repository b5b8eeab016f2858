"""The basis at a sample of the rows of a store, of which a posterior is made."""

import dataclasses
from functools import partial
from typing import Any

import numpy as np

from graphuq.engine.basis import StoredBasis
from graphuq.engine.stages import Stages
from graphuq.engine.tasks import Tasks
from graphuq.graphs.variables import Variables
from graphuq.spectrum import Basis
from graphuq.spectrum.exponential import EXPONENTIAL, ExponentialColumns, Landmarks
from graphuq.spectrum.few_variables import FEW_VARIABLES
from graphuq.spectrum.whitened import MAX_ROWS
from graphuq.utils.concurrency import cached_property

WHOLE_UP_TO = MAX_ROWS  # rows up to which `result_` has all, as there may be a second graph
SAMPLED = 10_000  # rows of a longer table that it has, besides the labelled ones


@dataclasses.dataclass(frozen=True)
class StoredBlock:
    """A block of functions of the features at the sampled rows, computed when it is first used."""

    name: str
    compute: Any

    @cached_property
    def values(self) -> Any:
        """Columns, shape (n, m)."""
        return self.compute()


@dataclasses.dataclass(frozen=True)
class StoredGraph(StoredBlock):
    """A block of eigenpairs of another graph at the sampled rows."""

    @cached_property
    def spectrum(self) -> Any:
        """Eigenpairs as those of so many nodes."""
        return self.compute()

    @cached_property
    def values(self) -> Any:
        """Eigenvectors as functions on the nodes."""
        return self.spectrum.eigenvectors


@dataclasses.dataclass(frozen=True)
class StoredFew(StoredBlock):
    """A block of functions of a few variables, which the labels have chosen.

    Attributes
    ----------
    columns : ExponentialColumns
        As a function of a row.
    log_prior : float
        See `graphuq.FunctionsOfFew`.
    """

    columns: ExponentialColumns
    log_prior: float

    @property
    def scales(self) -> Any:
        """What columns of features are divided by, shape (d,)."""
        return self.columns.landmarks.scales


@dataclasses.dataclass(frozen=True)
class StoredTable:
    """Variables of a store, whose nodes are rows at some places; see `TableOfVariables`."""

    basis: StoredBasis
    places: np.ndarray

    @property
    def variables(self) -> Variables:
        """Variable and scale of each column."""
        numbers, scales = (self.basis.functions.load(name) for name in ("variables", "scales"))
        return Variables(np.asarray(numbers), np.asarray(scales))

    @property
    def landmarks(self) -> np.ndarray:
        """Features of the rows from which covariances are known."""
        return np.asarray(self.basis.functions.load("landmarks"))

    def rows(self, nodes: np.ndarray) -> np.ndarray:
        """Return the features of nodes."""
        return self.basis.features(self.places[nodes]).astype(np.float64)

    def functions(self, scales: np.ndarray, log_prior: float) -> StoredFew:
        """Return the block of scales and of their log prior probability."""
        columns = Landmarks(scales, self.landmarks).columns(-1.0)
        at = partial(_values_of, columns, self.basis, self.places)
        return StoredFew(FEW_VARIABLES, at, columns, log_prior)


def sizes() -> list[int]:
    """Return the numbers of rows that determine a sample."""
    return [WHOLE_UP_TO, SAMPLED]


def sample_of(stages: Stages, labelled: np.ndarray) -> np.ndarray:
    """Return labelled rows, a row of each component, and a random sample of all rows, in order."""
    n_rows = stages.table.n_rows
    if n_rows <= WHOLE_UP_TO:
        return np.arange(n_rows)
    random = np.random.default_rng(0).choice(n_rows, min(SAMPLED, n_rows), replace=False)
    return np.unique(np.concatenate([labelled, stages.first.stored.first_rows(), random]))


def sampled_basis(stages: Stages, sample: np.ndarray, tasks: Tasks) -> Basis:
    """Return the basis at some rows, as one of so many nodes; blocks are computed when used."""
    stored, settings = stages.first.stored, stages.first.described()
    places, blocks = stored.places(sample), list[StoredBlock]()
    own = StoredBasis(stored, stages.functions)
    for name in stages.blocks(tasks):
        if name in stages.graphs:
            at = partial(_spectrum_of, stages, name, places, settings, tasks)
            blocks.append(StoredGraph(name, at))
        else:
            blocks.append(StoredBlock(name, partial(own.of_features, places, name)))
    is_table = EXPONENTIAL in stages.functions.record["blocks"]
    table = StoredTable(own, places) if is_table else None
    return Basis(stored.spectrum(sample, settings), tuple(blocks), table=table)


def _values_of(columns: ExponentialColumns, basis: StoredBasis, places: np.ndarray) -> np.ndarray:
    return columns.at(basis.features(places))


def _spectrum_of(
    stages: Stages, name: str, places: np.ndarray, settings: dict[str, Any], tasks: Tasks
) -> Any:
    return stages.other(name, tasks).spectrum(places, settings)
