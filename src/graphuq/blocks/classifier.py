"""Classifier of tables that do not fit memory: from files to files, stage by stage in a store."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphuq.blocks import answer, pairs
from graphuq.blocks.labels import given_labels
from graphuq.blocks.resources import Estimate, check, estimate
from graphuq.blocks.sources import Source, open_source
from graphuq.blocks.stages import DEFAULT_EIGENPAIRS, StageOptions, Stages
from graphuq.blocks.store import Stage
from graphuq.blocks.tasks import Tasks, single_threaded
from graphuq.classifier.options import (
    DEFAULT_NEIGHBORS,
    DEFAULT_SHARPNESS,
    model_of,
)
from graphuq.errors import InvalidInput, require
from graphuq.graphs import SelfTuning
from graphuq.models import Labels
from graphuq.results.result import Result
from graphuq.results.summary import Summary
from graphuq.utils.checks import check_number, check_seed, require_integer
from graphuq.utils.extras import require_extra
from graphuq.utils.output_folder import atomic_folder, output_folder
from graphuq.utils.progress import reporting
from graphuq.utils.version import __version__

DEFAULT_TOLERANCE = 1e-2  # moves label means by less than 1e-4 (docs/scale.md)


class BlockClassifier:
    """`GraphClassifier` of tables of any length, which are read and written by blocks.

    All work is done by tasks that read from a folder, the store, and write to it. They run on the
    cores of this machine, or on the workers of a Dask cluster that sees the same folder. Each
    stage (rows, neighbours, graph, eigenpairs, posterior, probabilities) is kept there under a
    name with the hash of its settings and inputs. So a fit that was killed goes on where it was
    when it is repeated, and a fit with other labels begins with the posterior.

    The graph joins each row to its nearest neighbours by Euclidean distance, with self-tuning
    weights of sharpness 4. Hyperparameters of prior and likelihood are chosen by the evidence,
    and the posterior is that of expectation propagation.

    Parameters
    ----------
    store : path
        Folder of the stages. It takes one fit at a time.
    client : dask.distributed.Client, optional
        Cluster that runs the tasks, with the extra ``graphuq[dask]``. All workers must see the
        store and the source under the same paths. By default tasks run on threads.
    n_neighbors : int, default 15
    n_eigenpairs : int, optional
        ℓ, null vectors included; by default 150, and one more for each component of the graph
        beyond the first. Below 1,500 rows they are found by a dense factorisation; above there are
        at most a quarter as many as rows.
    tolerance : float, default 1e-2
        Largest residual ``|L q − λ q|`` of an eigenvector, relative to the largest eigenvalue.
    search : {"approximate", "exact"}, default "approximate"
        "approximate" searches the lists near a row's own, as many as hold 99 % of the true
        neighbours of a sample. "exact" compares all pairs.
    model : str or Model, default "auto"
        See `GraphClassifier`.
    missing_label : object, default -1
        Value that means unlabelled, besides an empty cell.
    n_parts : int, optional
        Number of parts; by default parts of at most 200,000 rows that fit the memory.
    memory : int, optional
        Bytes of memory that may be used; by default what is free.
    random_state : int, default 0
        Seed. The same seed and the same versions give the same files.
    progress : bool or callable, default False
        See `graphuq.infer`.

    Attributes
    ----------
    classes_ : list
    result_ : Result
        Posterior at the labelled rows, which come first, and up to 10,000 others.
    recall_ : float
        Share of the true neighbours that were found, estimated from 400 rows.
    n_components_ : int
        Number of connected components of the graph.
    estimate_ : Estimate
        Memory and disk that were estimated before the work.

    Examples
    --------
    >>> import tempfile, numpy as np, graphuq as gq
    >>> folder = tempfile.mkdtemp()
    >>> moons = gq.datasets.two_moons(400, n_features=4, noise_std=0.05)
    >>> np.save(f"{folder}/moons.npy", moons.features)
    >>> classifier = gq.BlockClassifier(f"{folder}/store", n_eigenpairs=20)
    >>> labels = {row: int(moons.classes[row]) for row in range(20)}
    >>> files = classifier.fit(f"{folder}/moons.npy", labels).to_parquet(f"{folder}/out")
    >>> [path.name for path in files]
    ['rows-00000.parquet', 'settings.json']
    """

    def __init__(
        self,
        store: str | Path,
        *,
        client: Any = None,
        n_neighbors: int = DEFAULT_NEIGHBORS["knn"],
        n_eigenpairs: int | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        search: str = "approximate",
        model: Any = "auto",
        missing_label: Any = -1,
        n_parts: int | None = None,
        memory: int | None = None,
        random_state: int = 0,
        progress: Any = False,
    ) -> None:
        require(isinstance(store, str | Path), "store", f"{store!r}", "give a path of a folder")
        require(
            search in ("approximate", "exact"),
            "search",
            f"{search!r} is unknown",
            "use 'approximate' or 'exact'",
        )
        require_integer("n_neighbors", n_neighbors, 1)
        check_number("tolerance", tolerance, "use a number such as 1e-2")
        require(1e-5 <= tolerance < 1, "tolerance", f"{tolerance!r}", "use 1e-5 or more, below 1")
        for name, value in (("n_eigenpairs", n_eigenpairs), ("n_parts", n_parts)):
            if value is not None:
                require_integer(name, value, 1 + (name == "n_eigenpairs"))
        if memory is not None:
            require_integer("memory", memory, 1)
        check_seed("random_state", random_state)
        self.model = model_of(model)
        require(
            self.model.needs_eigenpairs or n_eigenpairs is not None,
            "model",
            f"{self.model!r}, which is solved exactly",
            "give n_eigenpairs, or another prior",
        )
        Tasks(client)  # raise for another kind of client before any work
        self.store, self.client = Path(store).resolve(), client
        self.n_neighbors, self.n_eigenpairs = n_neighbors, n_eigenpairs
        self.tolerance, self.search, self.missing_label = tolerance, search, missing_label
        self.n_parts, self.memory, self.random_state = n_parts, memory, random_state
        self.progress = progress

    def estimate(self, source: Any, no_features: Sequence[str] = ()) -> Estimate:
        """Return the memory and disk that a fit needs."""
        return self._estimate(open_source(source, no_features))

    def _estimate(self, table: Source) -> Estimate:
        n_columns = self.n_eigenpairs or DEFAULT_EIGENPAIRS
        n_columns += max(pairs.MIN_SPARE, round(pairs.SPARE_SHARE * n_columns))
        return estimate(
            table.n_rows,
            table.width,
            self.n_neighbors,
            n_columns,
            Tasks(self.client).n_workers,
            self.n_parts,
            self.memory,
        )

    def fit(
        self,
        source: Any,
        labels: str | Mapping[int, Any],
        no_features: Sequence[str] = (),
    ) -> "BlockClassifier":
        """Infer the class of every row; `to_parquet` writes them.

        Parameters
        ----------
        source : path, dask.array.Array or dask.dataframe.DataFrame
            A folder of Parquet files, which are taken in the order of their names; a Parquet or
            NPY file; a Zarr array; or a Dask collection, which is computed block by block. A
            file that has another size or time than before counts as another one.
        labels : str or dict
            Name of the column with the class of each labelled row, which is empty elsewhere; or
            the class of some rows, by row number from 0. Classes of a column are texts.
        no_features : sequence of str
            Further columns that are no features.

        Returns
        -------
        BlockClassifier
            The classifier itself.

        Raises
        ------
        InvalidInput
            If the table or the labels cannot be used, or memory or disk are too small.
        StorageError
            If a file cannot be read or written. What is complete stays.
        MissingPackage
            Without the extra ``graphuq[blocks]``.

        Warns
        -----
        DisconnectedGraphWarning
            If the graph has several components.
        NotConvergedWarning
            If ``n_eigenpairs`` is not given and fewer than by default converge. ``settings.json``
            says how many.
        """
        require_extra("blocks")
        column = labels if isinstance(labels, str) else None
        require(
            column is not None or isinstance(labels, Mapping),
            "labels",
            f"a {type(labels).__name__}",
            "give the name of a column, or a dict from row numbers to classes",
        )
        special = [*([] if column is None else [column]), *no_features]
        table = open_source(source, special)
        n_rows = table.n_rows
        require(
            n_rows > self.n_neighbors + 1,
            "source",
            f"{n_rows} rows, with {self.n_neighbors} neighbours each",
            "give more rows, or use fewer neighbours",
        )
        self.estimate_ = self._estimate(table)
        options = StageOptions(
            n_parts=self.estimate_.n_parts,
            n_neighbors=self.n_neighbors,
            exact=self.search == "exact",
            weight=SelfTuning(DEFAULT_SHARPNESS["knn"]),
            n_eigenpairs=self.n_eigenpairs,
            tolerance=self.tolerance,
            seed=self.random_state,
        )
        with output_folder(self.store), single_threaded(), reporting(self.progress) as report:
            check(self.estimate_, self.store, self.memory)
            tasks = Tasks(self.client, report, self.store)
            rows, codes, classes = given_labels(table, labels, self.missing_label, tasks)
            self._stages = Stages(self.store, table, options)
            self._stages.complete(tasks)
            self.recall_, self.n_components_ = self._stages.recall, self._stages.n_components
            self._explore(self._stages.places(rows), codes, classes)
        return self

    def _explore(self, places: np.ndarray, codes: np.ndarray, classes: list[Any]) -> None:
        """Find the posterior, unless it is in the store."""
        order = np.argsort(places)
        self.classes_ = classes
        self.model.check(Labels(places[order], codes[order], len(classes)))
        described = {
            "rows": places[order].tolist(),
            "codes": codes[order].tolist(),
            "classes": classes,
            "model": repr(self.model),
        }
        self._posterior = Stage.of(self.store, "posterior", described, [self._stages.pairs])
        self._arguments = (
            self._posterior, self._stages.basis, places[order], codes[order], classes, self.model,
            self._stages.described(),
        )  # fmt: skip
        self._result: Result | None = None
        if not self._posterior.is_done:
            self._result = answer.explore(*self._arguments)

    @property
    def result_(self) -> Result:
        """Posterior at the labelled rows and a sample; found again if it is from an earlier run."""
        self._check_fitted()
        if self._result is None:
            with output_folder(self.store), single_threaded():
                self._result = answer.explore(*self._arguments)
        return self._result

    def to_parquet(self, path: str | Path) -> list[Path]:
        """Write class and probabilities of each row, in the order of the source.

        There is one file for each block of the source. docs/files.md describes the columns;
        ``id`` is the number of the row in the source. ``settings.json`` has all settings, the
        version, and the summary.

        Parameters
        ----------
        path : path
            Folder, whose files are replaced together; see docs/robustness.md.

        Returns
        -------
        list of Path
            The files.

        Raises
        ------
        StorageError
            If a file cannot be written; what was there before is then unchanged.
        """
        self._check_fitted()
        with output_folder(self.store), single_threaded(), reporting(self.progress) as report:
            tasks = Tasks(self.client, report, self.store)
            stage = Stage.of(self.store, "probabilities", {}, [self._posterior])
            if not stage.is_done:
                answer.write_probabilities(
                    stage, self._stages.parts, self._stages.basis, self._posterior, tasks
                )
            self._counted = stage.record
            with (
                output_folder(path) as output,
                atomic_folder(output, "rows-?????.parquet") as folder,
            ):
                for k in range(self._counted["n_files"]):
                    file = stage.path("rows", k, ".parquet")
                    _link_or_copy(file, folder / file.name)
                text = json.dumps(self._described(), indent=1)
                (folder / "settings.json").write_text(text, encoding="utf-8")
                names = sorted(file.name for file in folder.iterdir())
        return [Path(path) / name for name in names]

    def _described(self) -> dict[str, Any]:
        posterior = self._posterior.record
        return {
            "graphuq_version": __version__,
            **posterior["settings"],
            "hyperparameters": posterior["hyperparameters"],
            "log_evidence": posterior["log_evidence"],
            "classes": self.classes_,
            "counts": self._counted["counts"],
            "graph_record": self._stages.graph.record,
            "n_passes": self._stages.pairs.record["n_passes"],
            "verdict": posterior["verdict"],
        }

    def summary(self) -> Summary:
        """Return a short text: verdict, counts by class, hyperparameters.

        Counts and mean probabilities of all rows are there after `to_parquet`.
        """
        self._check_fitted()
        record = self._posterior.record
        counted = getattr(self, "_counted", None)
        lines = [record["verdict"], ""]
        lines.append(
            f"{self._stages.table.n_rows} rows, {record['n_labelled']} labelled, "
            f"{len(self.classes_)} classes; recall of the neighbours {self.recall_:.4f}; "
            f"{self.n_components_} component(s)."
        )
        if counted is not None:
            for k, name in enumerate(self.classes_):
                number, total = counted["counts"][k], counted["sums"][k]
                mean = f"{total / number:.3f}" if number else "-"
                lines.append(f"{name}: {number} rows, mean probability {mean}")
        for name, value in record["hyperparameters"].items():
            lines.append(f"Hyperparameter {name}: {value:.4g}, chosen by the evidence.")
        lines.append(f"Log evidence: {record['log_evidence']:.2f}.")
        if record["description"] not in record["verdict"]:
            lines.append(record["description"])
        return Summary("\n".join(lines))

    def _check_fitted(self) -> None:
        if not hasattr(self, "_posterior"):
            raise InvalidInput("fit", "was not called", "call fit(source, labels) first")

    def __repr__(self) -> str:
        return f"BlockClassifier(store={str(self.store)!r})"


def _link_or_copy(file: Path, target: Path) -> None:
    """Give a file a second name, or copy it if the file system of the target is another one."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)
