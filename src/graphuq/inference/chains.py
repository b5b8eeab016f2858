"""The loop that runs many chains of a kernel in parallel and adapts step sizes in warm-up."""

from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from graphuq.inference.base import WhiteTarget
from graphuq.inference.draws import BLOCK, Draws, StopRule
from graphuq.inference.driver import Block, drive
from graphuq.inference.settings import check_run
from graphuq.inference.transitions import CompiledSteps, State, TransitionKernel
from graphuq.utils.arrays import array_namespace
from graphuq.utils.part import unchecked
from graphuq.utils.progress import Progress
from graphuq.utils.with_jax import Array, PRNGKeyArray, eqx, jax, jnp, with_dtype


@runtime_checkable
class StartableTarget(WhiteTarget, Protocol):
    """A target that offers starting points."""

    def start(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        """Return a starting point of a chain."""
        ...


class _Position(NamedTuple):
    """State of all chains and of the adaptation, from which a run resumes."""

    states: State  # each leaf (C, …)
    log_step: Float[Array, "*b"]
    log_step_sum: Float[Array, "*b"]  # over the second half of warm-up
    log_step_count: Float[Array, ""]
    n_steps: Float[Array, ""]


class _Kept(NamedTuple):
    white: Any
    log_likelihood: Any
    acceptance: Any


def run_chains(
    target: StartableTarget,
    kernel: TransitionKernel,
    *,
    n_samples: int = 1000,
    n_chains: int = 8,
    n_warmup: int = 2000,
    thin: int = 20,
    rng: int | np.random.Generator = 0,
    precision: str = "float64",
    stop: StopRule | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> Draws:
    """Run many chains of a kernel in parallel.

    Warm-up adapts the step size to the kernel's target acceptance, pooled over chains. Then the
    step size stays at its mean over the second half of warm-up. The random key of step t of
    chain c is made of (seed, c, t) alone, so neither blocks nor interruptions change a number.

    Parameters
    ----------
    target : Target
        An object with ``dimension``, ``log_likelihood`` and ``start``.
    kernel : Kernel
    n_samples : int
        Kept draws per chain; with a ``stop`` rule, the largest number of them.
    n_chains : int
    n_warmup : int
        Steps of warm-up, rounded up to whole blocks of ``50 thin``; 0 adapts nothing.
    thin : int
        Steps per kept draw.
    rng : int or numpy.random.Generator
    precision : {"float64", "float32"}
    stop : callable, optional
        Called with the draws at increasing intervals; returns the reason to stop, or None.
    progress : callable, optional
    checkpoint : path, optional
        File that the run is written to every ten seconds and on interruption, and resumes from.

    Returns
    -------
    Draws

    Raises
    ------
    InvalidInput
        If a number is out of range.
    StorageError
        If the checkpoint cannot be written, is corrupt, or belongs to another run.
    """
    n_warmup, seed = check_run(
        target.dimension, n_samples, n_chains, n_warmup, thin, rng, precision,
        dtype=precision, apart=thin,
    )  # fmt: skip
    dtype, kernel = np.dtype(precision), kernel.bind(target)
    fingerprint = (target, kernel, n_chains, n_warmup, thin, seed, precision)
    with jax.enable_x64(precision == "float64"):
        moves = kernel.moves(target, dtype)
        target = with_dtype(target, dtype)
        if moves is not None and n_warmup:
            kernel = unchecked(kernel, {"step_size": kernel.max_step_size})
        kernel = with_dtype(kernel, dtype)
        if moves is None:
            key_start, key_chains = jax.random.split(jax.random.key(seed))
            keys = jax.random.split(key_chains, n_chains)

        def start() -> _Position:
            if moves is None:
                return _initial(jax.random.split(key_start, n_chains), target, kernel)
            return _position(moves.start(_rngs(seed, n_chains, 0, 1)), kernel)

        def advance(n_steps: int, position: _Position) -> Block:
            if moves is None:
                moved, kept = _run_block(keys, position, target, kernel, n_warmup, thin)
            else:
                moved, kept = _moved_block(moves, position, seed, n_steps, thin)
            return Block(moved, _Kept(*map(np.asarray, kept)), BLOCK * thin, thin)

        return drive(
            start,
            advance,
            lambda position, kept: _collect(position, kept, n_warmup, thin),
            _Kept,
            n_samples=n_samples,
            n_warmup=n_warmup,
            stop=stop,
            progress=progress,
            checkpoint=checkpoint,
            fingerprint=fingerprint,
        )


def _compile_quickly(function: Any) -> Any:
    """Compile without optimisation, for code that runs once."""
    options = {"xla_backend_optimization_level": 0}
    return eqx.filter_jit(function, compiler_options=options)  # type: ignore[call-overload]


@_compile_quickly
def _initial(keys: Any, target: Any, kernel: Any) -> _Position:
    return _position(jax.vmap(lambda key: kernel.init(target.start(key), target))(keys), kernel)


def _position(states: State, kernel: TransitionKernel) -> _Position:
    """Return the position before the first step."""
    log_step = array_namespace(states.white).log(kernel.step_size)
    dtype = states.log_likelihood.dtype
    zeros: Any = (np.zeros(log_step.shape, dtype), np.zeros((), dtype), np.zeros((), np.int32))
    return _Position(states, log_step, *zeros)


def _rngs(seed: int, n_chains: int, *step: int) -> list[np.random.Generator]:
    """Return the generators of a step, one per chain; seeds may be negative."""
    return [np.random.default_rng([seed % 2**63, c, *step]) for c in range(n_chains)]


@eqx.filter_jit
def _run_block(
    keys: Any, position: _Position, target: Any, kernel: Any, n_warmup: int, thin: int
) -> tuple[_Position, _Kept]:
    """Run `BLOCK` times `thin` steps of every chain, adapting during warm-up."""
    target = kernel.prepare(target)

    def step(_: Any, carry: Any) -> Any:
        position, acceptance = carry
        tuned = unchecked(kernel, {"step_size": jnp.exp(position.log_step)})
        step_keys = jax.vmap(lambda key: jax.random.fold_in(key, position.n_steps))(keys)
        states, info = jax.vmap(lambda key, state: tuned.step(key, state, target))(
            step_keys, position.states
        )
        mean_acceptance = info.acceptance_probability.mean(axis=0)
        return _adapt(position, states, mean_acceptance, kernel, n_warmup), (
            acceptance + info.acceptance_probability / thin
        )

    def draw(position: _Position, _: Any) -> tuple[_Position, _Kept]:
        acceptance = jnp.zeros((len(keys), *position.log_step.shape), position.log_step.dtype)
        position, acceptance = jax.lax.fori_loop(0, thin, step, (position, acceptance))
        kept = jax.vmap(kernel.reported_state)(position.states)
        return position, _Kept(kept.white, kept.log_likelihood, acceptance)

    position, kept = jax.lax.scan(draw, position, None, length=BLOCK)
    return position, jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), kept)


def _moved_block(
    moves: CompiledSteps, position: _Position, seed: int, n_steps: int, thin: int
) -> tuple[_Position, _Kept]:
    """Run a block by a kernel that compiles its steps itself and keeps its step size."""
    parts, states, step_size = [], position.states, float(np.exp(position.log_step))
    for begin in range(n_steps, n_steps + BLOCK * thin, BLOCK):
        rngs = _rngs(seed, len(states.white), begin)
        after, accepted = moves(rngs, states, step_size, BLOCK)
        states = State(after.white[:, -1], after.log_likelihood[:, -1])
        kept = slice((n_steps - begin - 1) % thin, None, thin)
        parts.append((after.white[:, kept], after.log_likelihood[:, kept], accepted))
    white, value, all_accepted = (np.concatenate(part, 1) for part in zip(*parts, strict=True))
    acceptance = all_accepted.reshape(len(white), BLOCK, thin).mean(axis=-1)
    moved = position._replace(states=states, n_steps=position.n_steps + BLOCK * thin)
    return moved, _Kept(white, value, acceptance)


def _adapt(
    position: _Position, states: State, acceptance: Array, kernel: TransitionKernel, n_warmup: int
) -> _Position:
    """Update the log step size (Robbins & Monro 1951); after warm-up keep its late mean."""
    t = position.n_steps + 1
    dtype = position.log_step.dtype
    gain = (jnp.asarray(t, dtype)) ** -0.5
    wanted = jnp.asarray(kernel.block_target_acceptance, dtype)
    moved = position.log_step + gain * (acceptance - wanted)
    moved = jnp.minimum(moved, jnp.log(kernel.max_step_size).astype(dtype))
    late = (t > n_warmup // 2) & (t <= n_warmup)
    total = position.log_step_sum + jnp.where(late, moved, 0.0)
    count = position.log_step_count + jnp.where(late, 1.0, 0.0)
    log_step = jnp.where(t < n_warmup, moved, position.log_step)
    log_step = jnp.where(t == n_warmup, total / jnp.maximum(count, 1.0), log_step)
    return _Position(states, log_step, total, count, t)


def _collect(position: _Position, kept: _Kept, n_warmup: int, thin: int) -> Draws:
    steps = np.exp(np.atleast_1d(np.asarray(position.log_step)))
    blocks = kept.acceptance if kept.acceptance.ndim > 2 else None
    return Draws(
        white=kept.white,
        log_likelihood=kept.log_likelihood,
        acceptance=kept.acceptance if blocks is None else blocks[..., 0],
        block_acceptance=blocks,
        block_step_sizes=None if blocks is None else steps,
        step_size=float(steps[0]),
        n_warmup=n_warmup,
        thin=thin,
    )
