"""The posterior from the labelled rows, and probabilities of all rows, block by block.

A row of the eigenvectors is all that the posterior needs of a row. So labels are explored with the
labelled rows and a sample of the others, as a spectrum of n nodes instead of N. With eigenvectors
multiplied by ``√(N/n)`` its priors, which have ``E|u|² = n``, are those of the whole table.
"""

import dataclasses
import json
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from graphuq.blocks.store import Stage
from graphuq.blocks.tasks import Tasks
from graphuq.errors import require
from graphuq.inference import ExpectationPropagation, GaussianApproximation, GaussianMixture
from graphuq.models import Labels, Model
from graphuq.posterior.field import ClassField, LowRankField
from graphuq.results.formats.parquet import arrow_table
from graphuq.results.label_numbers import with_classes
from graphuq.results.result import Result
from graphuq.results.summaries import Rows, credible_interval, summarize
from graphuq.results.table import (
    INTERVAL,
    Latent,
    answer_columns,
)
from graphuq.run.infer import infer
from graphuq.spectrum import Spectrum
from graphuq.utils.files import atomic_write

SAMPLED = 10_000  # rows without label whose posterior `BlockClassifier.result_` has
UNRANKED = "unranked"  # tables of blocks before the ranks among all rows are known
FIELD = ("factor", "coefficient_map", "mode_variance")
GAUSSIAN = GaussianApproximation._fields[:5]


@dataclasses.dataclass(frozen=True)
class Basis:
    """Eigenvectors of all rows, null vectors included, in the store.

    Attributes
    ----------
    graph, pairs : Stage
    starts : list of int
        Places at which the parts begin.
    """

    graph: Stage
    pairs: Stage
    starts: list[int]

    @property
    def n_null(self) -> int:
        """Number of null vectors, one for each component of the graph."""
        return int(self.graph.record["n_components"])

    def rows(self, places: Int[np.ndarray, " R"]) -> Float[np.ndarray, "R L"]:
        """Return rows of eigenvectors."""
        vectors = self.pairs.parts("vectors", self.starts).take(places)
        n_null = self.n_null
        rows = np.zeros((len(places), n_null + vectors.shape[1]))
        rows[np.arange(len(places)), self.components(places)] = self.graph.parts(
            "profile", self.starts
        ).take(places)
        rows[:, n_null:] = vectors
        return rows

    def components(self, places: Int[np.ndarray, " R"]) -> Int[np.ndarray, " R"]:
        """Return the component of each row."""
        return np.asarray(self.graph.parts("component", self.starts).take(places))


def sampled_spectrum(
    basis: Basis, places: Int[np.ndarray, " n"], settings: dict[str, Any]
) -> Spectrum:
    """Return the spectrum at some rows, as one of so many nodes."""
    n_rows, record = basis.starts[-1], basis.pairs.record
    zeros = np.zeros(basis.n_null)
    return Spectrum(
        eigenvalues=np.append(zeros, record["eigenvalues"]),
        eigenvectors=basis.rows(places) * np.sqrt(n_rows / len(places)),
        residuals=np.append(zeros, record["residuals"]),
        tail_eigenvalue=None,
        components=basis.components(places),
        degrees=np.asarray(basis.graph.parts("degree", basis.starts).take(places)),
        node_scale=np.ones(len(places)),
        settings=settings,
    )


def sample_of(basis: Basis, labelled: Int[np.ndarray, " J"], seed: int) -> Int[np.ndarray, " n"]:
    """Return the labelled places, then others: a row of each component, and a random sample."""
    n_rows = basis.starts[-1]
    rng = np.random.default_rng(seed)
    random = np.arange(n_rows) if n_rows <= SAMPLED else rng.choice(n_rows, SAMPLED, False)
    if basis.n_null > 1:
        first = np.full(basis.n_null, n_rows)
        for part in range(len(basis.starts) - 1):
            component = np.asarray(basis.graph.load("component", part))
            found, at = np.unique(component, return_index=True)
            np.minimum.at(first, found, basis.starts[part] + at)
        random = np.append(first, random)
    return np.append(labelled, np.setdiff1d(random, labelled))


def explore(
    stage: Stage,
    basis: Basis,
    labelled: Int[np.ndarray, " J"],
    codes: Int[np.ndarray, " J"],
    classes: list[Any],
    model: Model,
    settings: dict[str, Any],
) -> Result:
    """Choose hyperparameters, find the posterior and write it; return it at a sample of the rows.

    Parameters
    ----------
    stage : Stage
    basis : Basis
    labelled : numpy.ndarray of int, shape (J,)
        Places of the labelled rows, in order.
    codes : numpy.ndarray of int, shape (J,)
        Their classes, as indices into ``classes``.
    classes : list
    model : Model
    settings : dict
        Settings of graph and spectrum.
    """
    sample = sample_of(basis, labelled, seed=0)
    spectrum = sampled_spectrum(basis, sample, settings)
    given = Labels(np.arange(len(labelled)), codes, len(classes))
    posterior = model.posterior(spectrum, given)
    result = with_classes(infer(posterior, ExpectationPropagation()), np.array(classes))
    write_answer(stage, result, labelled, codes, len(sample))
    stage.finish(
        {
            "classes": classes,
            "link": result.posterior.likelihood.link is not None,
            "n_labelled": len(labelled),
            "n_classes": result.posterior.n_fields if result.posterior.n_fields > 1 else 0,
            "settings": {k: v for k, v in result.settings.items() if _is_plain(v)},
            "model": repr(model.select(spectrum, given).used(posterior)),
            "hyperparameters": {
                name: float(value)
                for name, value in result.hyperparameters.items()
                if np.ndim(value) == 0
            },
            "log_evidence": result.log_evidence,
            "verdict": str(result.trust),
            "description": result.diagnostics.verdict,
        }
    )
    return result


def write_answer(
    stage: Stage, result: Result, labelled: np.ndarray, codes: np.ndarray, n_sampled: int
) -> None:
    """Write what the tasks of the blocks need: fields, Gaussians, link, and places of labels."""
    answer: Any = result.answer
    parts: Any = [answer]
    fields: Any = [result.posterior.field]
    weights = np.ones(1)
    if isinstance(answer, GaussianMixture):
        parts, fields, weights = answer.components, answer.fields, answer.weights
    for m, (part, own) in enumerate(zip(parts, fields, strict=True)):
        field = own.one_class
        require(
            isinstance(field, LowRankField) and isinstance(part, GaussianApproximation),
            "inference",
            f"{type(field).__name__} with {type(part).__name__}",
            "use a prior without tail, and expectation propagation",
        )
        for name in FIELD:
            stage.save(f"field_{name}_{m}", None, np.asarray(getattr(field, name)))
        for name in GAUSSIAN:
            stage.save(f"gaussian_{name}_{m}", None, np.asarray(getattr(part, name)))
    stage.save("weights", None, np.asarray(weights))
    link = result.posterior.likelihood.link
    if link is not None:
        stage.save("link", None, np.stack(link))
    evidence = np.unique(result.posterior.spectrum.components[: len(labelled)])
    stage.save("labelled", None, labelled)
    stage.save("codes", None, codes)
    stage.save("components", None, evidence)
    stage.save("n_sampled", None, np.array(n_sampled))


def _read_answer(stage: Stage) -> tuple[Any, Any, Any]:
    """Return a field, the Gaussians with their fields, and the link."""
    record, weights = stage.record, np.asarray(stage.load("weights"))
    about: dict[str, Any] = {
        "log_evidence": 0.0, "n_iterations": 0, "seconds": 0.0, "description": "",
    }  # fmt: skip
    fields: list[Any] = []
    parts = []
    for m in range(len(weights)):
        arrays = {name: np.asarray(stage.load(f"field_{name}_{m}")) for name in FIELD}
        own = LowRankField(**arrays, tail_std=0.0)
        fields.append(ClassField(own, record["n_classes"]) if record["n_classes"] else own)
        gaussian: Any = {n: np.asarray(stage.load(f"gaussian_{n}_{m}")) for n in GAUSSIAN}
        parts.append(GaussianApproximation(**gaussian, **about))
    numbers = np.arange(len(weights))
    answer = GaussianMixture(tuple(parts), numbers, weights, tuple(fields), **about)
    link = tuple(np.asarray(stage.load("link"))) if record["link"] else None
    return fields[0], answer, link


def write_probabilities(
    stage: Stage, rows: Stage, basis: Basis, answer: Stage, tasks: Tasks
) -> None:
    """Write the table of each block of the source, in the order of its rows.

    The rank of a row among all rows is known once the margins of all blocks are.
    """
    blocks = rows.record["blocks"]
    n_files = len(blocks) - 1
    arguments = [(stage, rows, basis, answer, blocks[k], k) for k in range(n_files)]
    tasks.map(_write_block, arguments, "probabilities")
    ranked = [(stage, answer, n_files, k) for k in range(n_files)]
    counts = tasks.map(_rank_block, ranked, "ranks")
    found = np.sum([some for some, _ in counts], axis=0)
    total = np.sum([some for _, some in counts], axis=0)
    for k in range(n_files):
        stage.path(UNRANKED, k, ".parquet").unlink(missing_ok=True)
    record = {"counts": found.tolist(), "sums": total.tolist(), "n_files": n_files}
    stage.finish(record, temporary=["margins"])


def _write_block(
    stage: Stage, rows: Stage, basis: Basis, answer: Stage, begin: int, k: int
) -> None:
    """Write the table of a block, with ranks inside the block, and its margins in order."""
    from pyarrow import parquet

    path, ranked = stage.path(UNRANKED, k, ".parquet"), stage.path("rows", k, ".parquet")
    if stage.has("margins", k) and (path.is_file() or ranked.is_file()):
        return
    columns = _columns(np.asarray(rows.load("place", k)), begin, basis, answer)
    with atomic_write(path) as temporary:
        parquet.write_table(arrow_table(columns), temporary)
    stage.save("margins", k, np.sort(columns["margin"]))


def _rank_block(stage: Stage, answer: Stage, n_files: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Write the table of a block with ranks; return rows and sums of probabilities by class."""
    import pyarrow as pa
    from pyarrow import compute, parquet

    classes, path = answer.record["classes"], stage.path("rows", k, ".parquet")
    if not path.is_file():
        table = parquet.read_table(stage.path(UNRANKED, k, ".parquet"))
        margin = table.column("margin").to_numpy()
        order = np.argsort(margin)
        in_order, below = margin[order], np.zeros(len(margin), dtype=np.int64)
        for other in range(n_files):
            below[order] += np.searchsorted(stage.load("margins", other), in_order, side="left")
        place = table.column_names.index("rank")
        with atomic_write(path) as temporary:
            parquet.write_table(table.set_column(place, "rank", pa.array(below + 1)), temporary)
    table = parquet.read_table(path, columns=["label", "probability"])
    codes = compute.index_in(table.column("label"), value_set=pa.array(classes)).to_numpy()
    probability, n_classes = table.column("probability").to_numpy(), len(classes)
    return np.bincount(codes, minlength=n_classes), np.bincount(codes, probability, n_classes)


def _columns(
    places: Int[np.ndarray, " B"], begin: int, basis: Basis, answer: Stage
) -> dict[str, np.ndarray]:
    """Return the columns of the table of some rows."""
    field, gaussian, link = _read_answer(answer)
    labelled, codes = np.asarray(answer.load("labelled")), np.asarray(answer.load("codes"))
    scale = np.sqrt(basis.starts[-1] / int(answer.load("n_sampled")))
    at = np.searchsorted(labelled, places).clip(max=len(labelled) - 1)
    is_labelled = labelled[at] == places
    known = np.where(is_labelled, at, -1)
    rows = Rows(basis.rows(places) * scale, np.ones(len(places)), known)
    found, latent = summarize(gaussian, field, rows, link), None
    if found.label_mean.ndim == 1:
        interval = credible_interval(gaussian, field, rows, INTERVAL)
        latent = Latent(found.latent_mean, found.latent_std, interval)
    return answer_columns(
        begin + np.arange(len(places)),
        np.array(answer.record["classes"]),
        found.probabilities,
        mcse=found.mcse,
        has_evidence=np.isin(basis.components(places), answer.load("components")),
        given=np.where(is_labelled, codes[at], -1),
        latent=latent,
    )


def _is_plain(value: object) -> bool:
    """Return whether JSON can hold a value."""
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True
