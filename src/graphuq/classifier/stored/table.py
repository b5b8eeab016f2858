"""The table of answers of all rows, block by block of the source."""

from functools import lru_cache
from pathlib import Path
from threading import Lock

import numpy as np
from jaxtyping import Int

from graphuq.engine.basis import StoredBasis
from graphuq.engine.store import Stage
from graphuq.engine.tasks import Tasks
from graphuq.results.formats.parquet import arrow_table
from graphuq.results.latent_numbers import at_rows_or_nodes, interval_at_rows_or_nodes
from graphuq.results.loading import load
from graphuq.results.result import Result
from graphuq.results.table import INTERVAL, Latent, answer_columns, given_codes
from graphuq.utils.files import atomic_write

UNRANKED = "unranked"  # tables of blocks before the ranks among all rows are known
RESULT = "result"  # file of the posterior's stage
ROWS = 16_384  # rows whose columns are in memory together

_reading = Lock()


def result_of(posterior: Stage) -> Result:
    """Return the result that the stage of a posterior holds."""
    with _reading:
        return _read(posterior.path(RESULT, suffix=".nc"))


@lru_cache(maxsize=1)
def _read(path: Path) -> Result:
    return load(path)


def write_probabilities(
    stage: Stage, rows: Stage, basis: StoredBasis, posterior: Stage, tasks: Tasks
) -> None:
    """Write the table of each block of the source, in the order of its rows.

    The rank of a row among all rows is known once the margins of all blocks are.
    """
    blocks = rows.record["blocks"]
    n_files = len(blocks) - 1
    arguments = [(stage, basis, posterior, *blocks[k : k + 2], k) for k in range(n_files)]
    tasks.map(_write_block, arguments, "probabilities")
    ranked = [(stage, posterior, n_files, k) for k in range(n_files)]
    counts = tasks.map(_rank_block, ranked, "ranks")
    found = np.sum([some for some, _ in counts], axis=0)
    total = np.sum([some for _, some in counts], axis=0)
    for k in range(n_files):
        stage.path(UNRANKED, k, ".parquet").unlink(missing_ok=True)
    record = {"counts": found.tolist(), "sums": total.tolist(), "n_files": n_files}
    stage.finish(record, temporary=["margins"])


def _write_block(
    stage: Stage, basis: StoredBasis, posterior: Stage, begin: int, end: int, k: int
) -> None:
    """Write the table of a block, with ranks inside the block, and its margins in order."""
    from pyarrow import parquet

    path, ranked = stage.path(UNRANKED, k, ".parquet"), stage.path("rows", k, ".parquet")
    if stage.has("margins", k) and (path.is_file() or ranked.is_file()):
        return
    pieces = [
        _columns(np.arange(first, min(first + ROWS, end)), basis, posterior)
        for first in range(begin, end, ROWS)
    ]
    columns = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    with atomic_write(path) as temporary:
        parquet.write_table(arrow_table(columns), temporary)
    stage.save("margins", k, np.sort(columns["margin"]))


def _rank_block(
    stage: Stage, posterior: Stage, n_files: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Write the table of a block with ranks; return rows and sums of probabilities by class."""
    import pyarrow as pa
    from pyarrow import compute, parquet

    classes, path = posterior.record["classes"], stage.path("rows", k, ".parquet")
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


def nodes_of(rows: Int[np.ndarray, " R"], sample: Int[np.ndarray, " n"]) -> Int[np.ndarray, " R"]:
    """Return the nodes of the posterior that rows of the table are, or −1."""
    at = np.searchsorted(sample, rows).clip(max=len(sample) - 1)
    return np.where(sample[at] == rows, at, -1)


def has_evidence(basis: StoredBasis, places: Int[np.ndarray, " R"], posterior: Stage) -> np.ndarray:
    """Return whether the component of each place has a label."""
    return np.isin(basis.pairs.components(places), posterior.load("components"))


def _columns(
    rows: Int[np.ndarray, " B"], basis: StoredBasis, posterior: Stage
) -> dict[str, np.ndarray]:
    """Return the columns of the table of some rows."""
    result, sample = result_of(posterior), np.asarray(posterior.load("sample"))
    nodes, places = nodes_of(rows, sample), basis.pairs.places(rows)
    names = [block.name for block in result.posterior.spectrum.blocks]
    vectors = basis.columns_at(places[nodes < 0], names, len(sample))
    found, latent = at_rows_or_nodes(result, vectors, nodes), None
    if found.latent_mean.ndim == 1:
        interval = interval_at_rows_or_nodes(result, vectors, nodes, INTERVAL)
        latent = Latent(found.latent_mean, found.latent_std, interval)
    return answer_columns(
        rows,
        result.classes,
        found.probabilities,
        mcse=found.mcse,
        has_evidence=has_evidence(basis, places, posterior),
        given=np.where(nodes >= 0, given_codes(result)[nodes], -1),
        latent=latent,
    )
