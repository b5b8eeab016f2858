"""The fit of a classifier whose rows, graph and eigenpairs are parts in a store."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import numpy as np

from graphuq.classifier.fitting import explore
from graphuq.classifier.labels import check_classes
from graphuq.classifier.options import DEFAULT_NEIGHBORS, DEFAULT_SHARPNESS, is_word, model_of
from graphuq.classifier.relabelling import check_kind, check_rows
from graphuq.classifier.stored.labels import GivenLabels, given_labels
from graphuq.classifier.stored.table import RESULT, nodes_of, result_of
from graphuq.engine import pairs
from graphuq.engine.basis import StoredBasis
from graphuq.engine.resources import Estimate, check, estimate
from graphuq.engine.settings import Store
from graphuq.engine.sources import Source, open_source
from graphuq.engine.stages import GraphOptions, Stages
from graphuq.engine.store import Stage
from graphuq.engine.tasks import Tasks, single_threaded
from graphuq.errors import require
from graphuq.graphs import SelfTuning
from graphuq.graphs.inputs import is_frame, is_polars
from graphuq.inference import MCMC, ExpectationPropagation
from graphuq.models import Labels, Model
from graphuq.results.label_numbers import with_classes
from graphuq.results.result import Result
from graphuq.run.words import inference_from
from graphuq.spectrum import Basis
from graphuq.spectrum.solve import DEFAULT_EIGENPAIRS
from graphuq.spectrum.whitened import MAX_ROWS
from graphuq.utils.checks import check_seed, require_integer
from graphuq.utils.extras import require_extra
from graphuq.utils.output_folder import output_folder
from graphuq.utils.progress import reporting
from graphuq.utils.serialization import from_plain, to_plain

WHOLE_UP_TO = MAX_ROWS  # rows up to which `result_` has all, as there may be a second graph
SAMPLED = 10_000  # rows of a longer table that it has, besides the labelled ones
SERVED = {
    "graph": "knn", "weights": "auto", "metric": None, "laplacian": "symmetric",
    "tail_eigenvalue": False, "max_classes": None, "class_proportions": None,
    "out_of_sample": "mean",
}  # fmt: skip
"""Parameters of the classifier that have one value beside a store."""

LIBRARIES = ("pyarrow.compute", "pyarrow.parquet", "xarray", "h5netcdf",
             "graphuq.results.summaries.gaussian_fields", "graphuq.classifier.stored.table",
             "graphuq.classifier.stored.new_rows")  # fmt: skip
"""Modules that tasks of this package import late."""


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


@dataclasses.dataclass
class StoredFit:
    """What a classifier keeps of a fit in a store.

    Attributes
    ----------
    stages : Stages
    given : GivenLabels
    needed : Estimate
    posterior : Stage
    basis : StoredBasis
        With the blocks that the posterior uses.
    sample : numpy.ndarray of int, shape (n,)
        Rows of the table that are the nodes of ``result_``.
    counted : dict, optional
        What is known once the table of all rows has been written.
    """

    stages: Stages
    given: GivenLabels
    needed: Estimate
    posterior: Stage
    basis: StoredBasis
    sample: np.ndarray
    counted: dict[str, Any] | None = None

    def nodes(self, rows: Any) -> np.ndarray:
        """Return the nodes of ``result_`` that rows of the table are.

        Raises
        ------
        InvalidInput
            If a row is none of them.
        """
        found = nodes_of(np.asarray(rows, dtype=np.int64), self.sample)
        require(
            bool((found >= 0).all()),
            "candidates",
            f"row {np.asarray(rows)[found < 0][:1].tolist()} is not among sampled_rows_",
            "choose among these",
        )
        return found


@contextmanager
def running(classifier: Any) -> Iterator[Tasks]:
    """Hold the store of a classifier, and yield what runs tasks in it."""
    folder = Store.of(classifier.store).folder
    with (
        output_folder(folder),
        single_threaded(LIBRARIES),
        reporting(classifier.progress) as report,
    ):
        yield Tasks(classifier.client, report, folder, LIBRARIES)


def check_parameters(classifier: Any, sample_weight: Any = None) -> tuple[Store, Model]:
    """Return the store and the model; refuse parameters that have no meaning beside a store.

    Raises
    ------
    InvalidInput
        If there is one, or a value is out of range.
    """
    require_extra("store")
    store, model = Store.of(classifier.store), model_of(classifier.model)
    for name, only in SERVED.items():
        value = getattr(classifier, name)
        require(
            isinstance(value, type(only)) and value == only,
            name,
            f"{value!r} beside a store, where it can only be {only!r}",
            "leave it out, or leave store out",
        )
    require(sample_weight is None, "sample_weight", "given beside a store", "leave it out")
    for name in ("n_neighbors", "n_eigenpairs"):
        value = getattr(classifier, name)
        if not is_word(value, "auto"):
            require_integer(name, value, 1 + (name == "n_eigenpairs"))
    check_seed("random_state", classifier.random_state)
    require(
        model.needs_eigenpairs or not is_word(classifier.n_eigenpairs, "auto"),
        "model",
        f"{model!r}, which is solved exactly",
        "give n_eigenpairs, or another prior",
    )
    likelihood = getattr(model, "likelihood", None)
    require(
        not (model.needs_features or getattr(likelihood, "uses_all_nodes", False)),
        "model",
        f"{model!r} beside a store: it needs all rows at a time",
        "use another model, or leave store out",
    )
    inference_of(classifier)
    Tasks(classifier.client)  # raise for another kind of client
    return store, model


def inference_of(classifier: Any) -> Any:
    """Return the method; "auto" is expectation propagation, so that large tables take minutes."""
    if is_word(classifier.inference, "auto"):
        return ExpectationPropagation()
    found = inference_from(classifier.inference)
    if isinstance(found, MCMC):
        require(
            found.on_first_result is None and found.checkpoint is None,
            "inference",
            f"{found!r} beside a store, which keeps what is done",
            "leave on_first_result and checkpoint out",
        )
    return found


def n_neighbors_of(classifier: Any) -> int:
    """Return the number of neighbours of a row."""
    given = classifier.n_neighbors
    return DEFAULT_NEIGHBORS["knn"] if is_word(given, "auto") else int(given)


def n_eigenpairs_of(classifier: Any) -> int | None:
    """Return the number of eigenpairs, or None for the default."""
    return None if is_word(classifier.n_eigenpairs, "auto") else int(classifier.n_eigenpairs)


def needed_for(classifier: Any, table: Source) -> Estimate:
    """Return the memory and disk that a fit needs."""
    store = Store.of(classifier.store)
    n_columns = n_eigenpairs_of(classifier) or DEFAULT_EIGENPAIRS
    n_columns += max(pairs.MIN_SPARE, round(pairs.SPARE_SHARE * n_columns))
    n_workers = Tasks(classifier.client).n_workers
    return estimate(
        table.n_rows, table.width, n_neighbors_of(classifier), n_columns, n_workers,
        store.n_parts, store.memory,
    )  # fmt: skip


def table_of(X: Any, y: Any, store: Store) -> tuple[Source, Any]:
    """Return a table in blocks, and labels; those in a column of a frame are taken out of it."""
    special = [*([y] if isinstance(y, str) else []), *store.no_features]
    if isinstance(y, str) and (is_frame(X) or is_polars(X)):
        require(y in X.columns, "y", f"no column {y!r}", "name a column of X")
        y = X[y]
    return open_source(X, special), y


def fit_in_store(classifier: Any, X: Any, y: Any, sample_weight: Any = None) -> None:
    """Infer the class of every row; see `GraphClassifier.fit`."""
    store, model = check_parameters(classifier, sample_weight)
    table, y = table_of(X, y, store)
    n_neighbors = n_neighbors_of(classifier)
    require(
        table.n_rows > n_neighbors + 1,
        "X",
        f"{table.n_rows} rows, with {n_neighbors} neighbours each",
        "give more rows, or use fewer neighbours",
    )
    needed = needed_for(classifier, table)
    options = GraphOptions(
        n_parts=needed.n_parts,
        n_neighbors=n_neighbors,
        exact=store.search == "exact",
        weight=SelfTuning(DEFAULT_SHARPNESS["knn"]),
        n_eigenpairs=n_eigenpairs_of(classifier),
        tolerance=store.tolerance,
        seed=int(classifier.random_state),
    )
    with running(classifier) as tasks:
        check(needed, store.folder, store.memory)
        given = given_labels(table, y, classifier.missing_label, tasks)
        classes, codes = given.coded
        model.check(Labels(given.rows, codes, len(classes)))
        stages = Stages(store.folder, table, options)
        stages.complete(tasks)
        _explore(classifier, stages, given, needed, model, inference_of(classifier), tasks)
    classifier.n_features_in_ = table.width
    vars(classifier).pop("feature_names_in_", None)
    if table.names:
        classifier.feature_names_in_ = np.array(table.names, dtype=object)
    classifier.withdrawn_ = np.arange(0)


def changed_labels(classifier: Any, rows: Any, values: Any, given: Any, method: Any) -> None:
    """Explore again with changed labels of some rows; see `GraphClassifier.add_labels`."""
    fit: StoredFit = classifier._stored
    check_rows(rows, fit.stages.table.n_rows)
    check_kind(classifier.classes_, values[given])
    labels, model = fit.given.changed(rows, values, given), model_of(classifier.model)
    classes, codes = labels.coded
    check_classes(classes, None)
    model.check(Labels(labels.rows, codes, len(classes)))
    with running(classifier) as tasks:
        _explore(classifier, fit.stages, labels, fit.needed, model, method, tasks)


def _explore(
    classifier: Any,
    stages: Stages,
    given: GivenLabels,
    needed: Estimate,
    model: Model,
    method: Any,
    tasks: Tasks,
) -> None:
    """Find the posterior, unless it is in the store, and set the attributes of the classifier."""
    classes, codes = given.coded
    described = {
        "rows": given.rows.tolist(),
        "classes": to_plain(classes, "classes_"),
        "codes": codes.tolist(),
        "model": repr(model),
        "inference": repr(method),
        "sampled": [WHOLE_UP_TO, SAMPLED],
        "seed": int(classifier.random_state),
    }
    stage = Stage.of(stages.store, "posterior", described, [stages.first.pairs])
    before = classifier.__dict__.copy()
    try:
        classifier.classes_ = classes
        if stage.is_done:
            classifier.result_ = result_of(stage)
            classifier.model_ = from_plain(stage.record["model"])
            classifier._tuning = None
            classifier._describe()
        else:
            _infer(classifier, stage, stages, given, model, method, tasks)
    except BaseException:
        vars(classifier).clear()
        vars(classifier).update(before)
        raise
    names = [block.name for block in classifier.result_.posterior.spectrum.blocks]
    sample = np.asarray(stage.load("sample"))
    basis = stages.basis(names, tasks)
    classifier._stored = StoredFit(stages, given, needed, stage, basis, sample)
    classifier.sampled_rows_ = sample
    classifier.estimate_, classifier.recall_ = needed, stages.first.recall
    classifier.n_components_ = stages.first.stored.n_null


def _infer(
    classifier: Any,
    stage: Stage,
    stages: Stages,
    given: GivenLabels,
    model: Model,
    method: Any,
    tasks: Tasks,
) -> None:
    """Choose hyperparameters, find the posterior at a sample of the rows, and write it."""
    stored, (classes, codes) = stages.first.stored, given.coded
    sample = sample_of(stages, given.rows)
    basis = sampled_basis(stages, sample, tasks)
    labels = Labels(nodes_of(given.rows, sample), codes, len(classes))
    selected = model.select(basis, labels)
    posterior = selected.posterior(basis, labels)
    classifier.model_ = selected.used(posterior)
    explore(classifier, posterior, method)
    result: Result = with_classes(classifier.result_, classes)
    components = np.unique(stored.components(stored.places(given.rows)))
    stage.save("sample", None, sample)
    stage.save("components", None, components)
    result.save(stage.path(RESULT, suffix=".nc"))
    stage.finish(
        {
            "classes": classes.tolist(),
            "n_labelled": len(given.rows),
            "settings": {k: v for k, v in result.settings.items() if _is_plain(v)},
            "model": to_plain(classifier.model_, "model_"),
            "hyperparameters": {
                name: float(value)
                for name, value in result.hyperparameters.items()
                if np.ndim(value) == 0
            },
            "blocks": [block.name for block in result.posterior.spectrum.blocks],
            "log_evidence": result.log_evidence,
            "verdict": str(result.trust),
            "description": result.diagnostics.verdict,
        }
    )


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
    for name in stages.blocks(tasks):
        if name in stages.graphs:
            at = partial(_spectrum_of, stages, name, places, settings, tasks)
            blocks.append(StoredGraph(name, at))
        else:
            own = StoredBasis(stored, stages.functions, {})
            blocks.append(StoredBlock(name, partial(own.of_features, places, name)))
    return Basis(stored.spectrum(sample, settings), tuple(blocks))


def _spectrum_of(
    stages: Stages, name: str, places: np.ndarray, settings: dict[str, Any], tasks: Tasks
) -> Any:
    return stages.other(name, tasks).spectrum(places, settings)


def _is_plain(value: object) -> bool:
    """Return whether JSON can hold a value."""
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True
