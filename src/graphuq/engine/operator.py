"""Products of the Laplacian with columns whose rows are in the store, part by part."""

import itertools
import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from graphuq.engine.graph import load_block
from graphuq.engine.store import SCRATCH, Stage
from graphuq.engine.tasks import Tasks

_numbers = itertools.count()


class Columns:
    """Columns with one row for each node, as scratch files of the parts.

    The files are removed with the last reference.
    """

    def __init__(self, stage: Stage, n_parts: int) -> None:
        self.stage, self.n_parts = stage, n_parts
        self.name = f"{SCRATCH}-{os.getpid()}-{next(_numbers)}"
        paths = [stage.path(self.name, p) for p in range(n_parts)]
        weakref.finalize(self, _remove, paths)


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


class PartedOperator:
    """Laplacian L in row blocks: the operator of `graphuq.spectrum.chebyshev.ChebyshevFilter`.

    A step reads columns from the store and writes new ones, so that it can be repeated.
    """

    def __init__(self, stage: Stage, graph: Stage, starts: list[int], tasks: Tasks) -> None:
        self.stage, self.graph, self.starts, self.tasks = stage, graph, starts, tasks
        self.n_steps = 0  # products with a group of columns so far

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self.starts) - 1

    def step(self, x: Any, of_l: float, of_x: float, before: Any = None) -> Columns:
        """Return ``of_l · L x + of_x · x − before``, one step of a three-term recurrence."""
        out = Columns(self.stage, self.n_parts)
        earlier = None if before is None else before.name
        arguments = [
            (self.stage, self.graph, self.starts, p, (x.name, earlier, out.name), of_l, of_x)
            for p in range(self.n_parts)
        ]
        self.tasks.map(_step, arguments)
        self.n_steps += 1
        return out


def _step(
    stage: Stage,
    graph: Stage,
    starts: list[int],
    p: int,
    names: tuple[str, str | None, str],
    of_l: float,
    of_x: float,
) -> None:
    x_name, earlier, out_name = names
    before = None if earlier is None else stage.load(earlier, p)
    image = step_of_part(stage, graph, starts, p, x_name, of_l, of_x, before)
    stage.save_scratch(out_name, p, image)


def step_of_part(
    stage: Stage,
    graph: Stage,
    starts: list[int],
    p: int,
    name: str,
    of_l: float,
    of_x: float,
    before: np.ndarray | None = None,
) -> Float[np.ndarray, "n b"]:
    """Return the rows of a part of ``of_l · L x + of_x · x − before``."""
    from graphuq.engine.laplacian_step import laplacian_step  # imports Numba

    block, columns = load_block(graph, p), stage.parts(name, starts)
    own, halo = columns.part(p), columns.take(block.halo)
    out = np.empty(own.shape, np.float32)
    factors = np.array([of_l, of_x, 0.0 if before is None else -1.0], np.float32)
    entries = block.weights.indptr, block.weights.indices, block.weights.data
    laplacian_step(*entries, own, halo, own if before is None else before, *factors, out)
    return out
