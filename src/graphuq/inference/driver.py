"""Drives a sampler block by block: warm-up, stopping, progress, checkpoints."""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from graphuq.inference.checkpoint import Checkpoint
from graphuq.inference.draws import Draws, StopRule, is_check
from graphuq.utils.progress import Progress

Tuple = TypeVar("Tuple", bound=tuple[Any, ...])


class Block(NamedTuple):
    """What some steps on brought."""

    state: Any  # any tree of arrays: where all chains are, and what was adapted
    kept: Any  # a named tuple of arrays (C, S, …), with ``acceptance`` among them
    n_steps: int
    thin: int  # steps a kept draw


class _Run(NamedTuple):
    """Where the run stands. One name for all that changes: interruptions find it whole."""

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
    """Advance until there are enough draws, or the rule says so.

    Parameters
    ----------
    start : callable
        The state before the first step.
    advance : callable
        From the number of steps made and the state to the next `Block`, by random numbers that
        these two decide.
    collect : callable
        From the state and all that was kept, joined, to `Draws`.
    kept_type : type
        Of ``Block.kept``.
    n_samples, n_warmup : int
        Kept draws a chain, at most; steps from which on blocks are kept.
    stop, progress, checkpoint
        As in `chains.run_chains`.
    fingerprint : tuple
        What makes the run: the target first.
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
    """Named tuples of arrays as one such tuple."""
    leaves = (np.concatenate(leaf, axis) for leaf in zip(*parts, strict=True))
    return type(parts[0])(*leaves)


def _arrays(run: _Run) -> dict[str, Any]:
    """Named, for a file."""
    leaves = jax.tree.leaves(run.state)
    state = {f"state{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    kept = joined(run.kept)._asdict() if run.kept else {}
    return {"n_steps": run.n_steps, **state, **kept}


def _restored(arrays: dict[str, np.ndarray], start: Any, kept_type: Any) -> _Run:
    """The run of a file, or one at its start."""
    if not arrays:
        return _Run(0, start, ())
    leaves, structure = jax.tree.flatten(start)
    state = jax.tree.unflatten(structure, [arrays[f"state{i}"] for i in range(len(leaves))])
    n_steps = int(arrays["n_steps"])
    if "acceptance" not in arrays:
        return _Run(n_steps, state, ())
    return _Run(n_steps, state, (kept_type(*(arrays[name] for name in kept_type._fields)),))
