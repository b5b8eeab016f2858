"""The loop over blocks of steps: warm-up, stop rule, progress, checkpoints."""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from graphuq.errors import StorageError
from graphuq.inference.checkpoint import Checkpoint
from graphuq.inference.draws import Draws, StopRule, is_check
from graphuq.utils.progress import Progress
from graphuq.utils.trees import leaves_of, with_leaves

Tuple = TypeVar("Tuple", bound=tuple[Any, ...])


class Block(NamedTuple):
    """Result of a block of steps."""

    state: Any  # tree of arrays: states of all chains, and what was adapted
    kept: Any  # named tuple of arrays (C, S, …) with a field ``acceptance``
    n_steps: int
    thin: int  # steps per kept draw


class _Run(NamedTuple):
    """Everything that changes during a run, in one value, so that interruptions are atomic."""

    n_steps: int
    state: Any
    kept: tuple[Any, ...]

    @property
    def n_kept(self) -> int:
        return sum(block.acceptance.shape[1] for block in self.kept)


def drive(
    start: Callable[[], Any],
    advance: Callable[[int, Any], Block],
    collect: Callable[[Any, Any], Draws],
    kept_type: type[Any],
    *,
    n_samples: int,
    n_warmup: int,
    stop: StopRule | None,
    progress: Progress | None,
    checkpoint: str | Path | None,
    fingerprint: tuple[Any, ...],
) -> Draws:
    """Advance until there are enough draws or the stop rule ends the run.

    Parameters
    ----------
    start : callable
        Returns the state before the first step.
    advance : callable
        Returns the next `Block`, given the number of steps made and the state. Its random
        numbers depend on these two alone.
    collect : callable
        Returns `Draws`, given the state and everything that was kept.
    kept_type : type
        Type of ``Block.kept``.
    n_samples, n_warmup : int
        Largest number of kept draws per chain; steps of warm-up, whose blocks are not kept.
    stop, progress, checkpoint
        As in `chains.run_chains`.
    fingerprint : tuple
        Values that identify the run, the target first.
    """
    began, stopped_by = time.perf_counter(), "fixed length"
    file = Checkpoint(checkpoint, *fingerprint)
    run = _restored(file.load(), start(), kept_type)
    try:
        while (done := run.n_kept) < n_samples:
            if stop is not None and is_check(done):
                reason = stop(collect(run.state, joined(run.kept)).first(n_samples))
                if reason is not None:
                    stopped_by = reason
                    break
            block = advance(run.n_steps, run.state)
            n_steps = run.n_steps + block.n_steps
            kept = (*run.kept, block.kept) if n_steps > n_warmup else ()
            run = _Run(n_steps, block.state, kept)
            if progress is not None:
                phase = "warm-up" if n_steps <= n_warmup else "sampling"
                total = n_warmup + n_samples * block.thin
                acceptance = float(np.mean(block.kept.acceptance))
                progress(phase, min(n_steps, total), total, acceptance)
            if file.due:
                file.save(_arrays(run))
    finally:
        file.save(_arrays(run))
    draws = collect(run.state, joined(run.kept)).first(n_samples)
    return dataclasses.replace(draws, stopped_by=stopped_by, seconds=time.perf_counter() - began)


def joined(parts: tuple[Tuple, ...], axis: int = 1) -> Tuple:
    """Return named tuples of arrays concatenated along an axis."""
    leaves = (np.concatenate(leaf, axis) for leaf in zip(*parts, strict=True))
    return type(parts[0])(*leaves)


def _arrays(run: _Run) -> dict[str, Any]:
    """Return the run as named arrays, for a file."""
    state = {f"state{i}": np.asarray(leaf) for i, leaf in enumerate(leaves_of(run.state))}
    kept = joined(run.kept)._asdict() if run.kept else {}
    return {"n_steps": run.n_steps, **state, **kept}


def _restored(arrays: dict[str, np.ndarray], start: Any, kept_type: Any) -> _Run:
    """Return the run that a file holds, or a run at its start."""
    if not arrays:
        return _Run(0, start, ())
    n_leaves = len(list(leaves_of(start)))
    stored = [arrays.get(f"state{i}") for i in range(n_leaves)]
    n_steps = arrays.get("n_steps")
    kept = [arrays.get(name) for name in kept_type._fields]
    empty = all(found is None for found in kept)
    parts = stored if empty else [*stored, *kept]
    if n_steps is None or any(part is None for part in parts):
        raise StorageError("the checkpoint lacks a part of the run; delete it")
    state = with_leaves(start, iter(stored))
    if empty:
        return _Run(int(n_steps), state, ())
    return _Run(int(n_steps), state, (kept_type(*kept),))
