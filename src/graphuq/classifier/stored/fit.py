"""The fit of a classifier whose rows, graph and eigenpairs are parts in a store."""

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from graphuq.classifier.contradictions import FEW, warn_of_equal_rows
from graphuq.classifier.fitting import explore
from graphuq.classifier.labels import check_classes
from graphuq.classifier.options import DEFAULT_SHARPNESS, model_of
from graphuq.classifier.relabelling import check_kind
from graphuq.classifier.stored.labels import GivenLabels, given_labels
from graphuq.classifier.stored.parameters import (
    check_parameters,
    inference_of,
    n_eigenpairs_of,
    n_neighbors_of,
    needed_for,
    table_of,
)
from graphuq.classifier.stored.sample import sample_of, sampled_basis, sizes
from graphuq.classifier.stored.table import RESULT, nodes_of, result_of
from graphuq.engine.basis import StoredBasis
from graphuq.engine.resources import Estimate, check
from graphuq.engine.settings import Store
from graphuq.engine.stages import GraphOptions, Stages
from graphuq.engine.store import Stage
from graphuq.engine.tasks import Tasks, single_threaded
from graphuq.errors import require
from graphuq.graphs import SelfTuning
from graphuq.models import Labels, Model
from graphuq.results.label_numbers import with_classes
from graphuq.results.result import Result
from graphuq.spectrum.exponential import ExponentialColumns, Landmarks
from graphuq.utils.checks import numbers_among
from graphuq.utils.output_folder import output_folder
from graphuq.utils.progress import reporting
from graphuq.utils.serialization import from_plain, to_plain

LIBRARIES = ("pyarrow.compute", "pyarrow.parquet", "xarray", "h5netcdf",
             "graphuq.results.summaries.gaussian_fields", "graphuq.classifier.stored.table",
             "graphuq.classifier.stored.new_rows")  # fmt: skip
"""Modules that tasks of this package import late."""


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
    classifier.withdrawn_, classifier._queried = np.arange(0), np.arange(0)


def changed_labels(classifier: Any, rows: Any, values: Any, given: Any, method: Any) -> None:
    """Explore again with changed labels of some rows; see `GraphClassifier.add_labels`."""
    fit: StoredFit = classifier._stored
    numbers_among(rows, fit.stages.table.n_rows, "rows", "row", needed=False)
    check_kind(classifier.classes_, values[given])
    labels, model = fit.given.changed(rows, values, given), model_of(classifier.model)
    classes, codes = labels.coded
    check_classes(classes, None)
    model.check(Labels(labels.rows, codes, len(classes)))
    proposed = bool(np.isin(labels.rows, classifier._queried).any())
    with running(classifier) as tasks:
        own = classifier, fit.stages, labels, fit.needed, model, method, tasks
        _explore(*own, proposed, np.asarray(rows)[given])


def _explore(
    classifier: Any,
    stages: Stages,
    given: GivenLabels,
    needed: Estimate,
    model: Model,
    method: Any,
    tasks: Tasks,
    proposed: bool = False,
    changed: np.ndarray | None = None,
) -> None:
    """Find the posterior, unless it is in the store, and set the attributes of the classifier."""
    classes, codes = given.coded
    described = {
        "rows": given.rows.tolist(),
        "classes": to_plain(classes, "classes_"),
        "codes": codes.tolist(),
        "model": repr(model),
        "inference": repr(method),
        "sampled": sizes(),
        "seed": int(classifier.random_state),
        "proposed": proposed,
    }
    stage = Stage.of(stages.store, "posterior", described, [stages.first.pairs])
    places = stages.places(given.rows)
    features = stages.first.parts.parts("features", stages.first.stored.starts).take(places)
    n_rows = stages.table.n_rows
    n_distinct = stages.first.neighbors.record.get("n_distinct", n_rows)
    usual = n_distinct < (1 - FEW) * n_rows
    warn_of_equal_rows(features, given.rows, given.values, changed, lambda: usual)
    before = classifier.__dict__.copy()
    try:
        classifier.classes_ = classes
        if stage.is_done:
            classifier.result_ = result_of(stage)
            classifier.model_ = from_plain(stage.record["model"])
            classifier._tuning = None
            classifier._describe()
        else:
            _infer(classifier, stage, stages, given, model, method, tasks, proposed)
    except BaseException:
        vars(classifier).clear()
        vars(classifier).update(before)
        raise
    names = [block.name for block in classifier.result_.posterior.spectrum.blocks]
    sample = np.asarray(stage.load("sample"))
    chosen = {name: _chosen(stage, stages.functions, name) for name in stage.record["chosen"]}
    basis = stages.basis(names, chosen, tasks)
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
    proposed: bool,
) -> None:
    """Choose hyperparameters, find the posterior at a sample of the rows, and write it."""
    stored, (classes, codes) = stages.first.stored, given.coded
    sample = sample_of(stages, given.rows)
    basis = sampled_basis(stages, sample, tasks)
    labels = Labels(nodes_of(given.rows, sample), codes, len(classes), rows_were_chosen=proposed)
    selected = model.select(basis, labels)
    posterior = selected.posterior(basis, labels)
    classifier.model_ = selected.used(posterior)
    explore(classifier, posterior, method)
    result: Result = with_classes(classifier.result_, classes)
    components = np.unique(stored.components(stored.places(given.rows)))
    stage.save("sample", None, sample)
    stage.save("components", None, components)
    blocks = result.posterior.spectrum.blocks
    chosen = [block for block in blocks if block.name not in stages.blocks(tasks)]  # by labels
    for block in chosen:
        stage.save(f"{block.name} scales", None, block.scales)
        stage.save(f"{block.name} turn", None, block.columns.turn)
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
            "blocks": [block.name for block in blocks],
            "chosen": [block.name for block in chosen],
            "log_evidence": result.log_evidence,
            "verdict": str(result.trust),
            "description": result.diagnostics.verdict,
        }
    )


def _chosen(stage: Stage, functions: Stage, name: str) -> ExponentialColumns:
    """Return functions that the labels have chosen, from the stages of posterior and functions."""
    scales, turn = (np.asarray(stage.load(f"{name} {what}")) for what in ("scales", "turn"))
    landmarks = Landmarks(scales, np.asarray(functions.load("landmarks")))
    return ExponentialColumns(landmarks, -1.0, turn)


def _is_plain(value: object) -> bool:
    """Return whether JSON can hold a value."""
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True
