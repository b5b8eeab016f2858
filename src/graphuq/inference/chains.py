"""Drives any kernel: warm-up, many chains, thinning, progress, checkpoints, stopping."""

import dataclasses
import hashlib
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from graphuq.errors import InvalidInput, StorageError, require
from graphuq.files import written_whole
from graphuq.inference.base import Gaussian, Kernel, State, WhiteTarget, with_dtype
from graphuq.progress import Progress

BLOCK = 50  # kept draws a chain between two returns to Python
CHECKPOINT_SECONDS = 10.0
CHECKPOINT_FORMAT = 1
MAX_DRAW_BYTES = 8e9  # kept draws are held in memory: a third of a 24 GB machine
FIRST_CHECK, CHECK_GROWTH = 100, 1.3  # draws at which a stop rule is asked, and their growth


@runtime_checkable
class StartableTarget(WhiteTarget, Protocol):
    """A target that offers starting points."""

    def start(self, key: PRNGKeyArray) -> Float[Array, " n"]:
        """A point for a chain to start from."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class Draws:
    """What the chains left behind.

    Attributes
    ----------
    white : numpy.ndarray, shape (C, S, n)
        Kept draws in white coordinates; every N-sized number is computed from them.
    log_likelihood, acceptance : numpy.ndarray, shape (C, S)
        Log likelihood of each kept draw; mean acceptance probability since the one before.
    step_size : float
        The step size that warm-up chose; of several blocks, the first's.
    n_warmup, thin : int
        Steps of warm-up, and steps a kept draw.
    stopped_by : str
        Why sampling ended, in words.
    reference : Gaussian or None
        The Gaussian that the sampler moved about, a control variate for what is averaged.
    log_ratio : numpy.ndarray, shape (C, S), or None
        Log density of the posterior over the reference at each draw, up to a constant.
    seconds : float
        Wall time of warm-up and sampling, compilation included.
    hyperparameters : dict of str to numpy.ndarray, shape (C, S) or (C, S, m)
        Draws of what was learnt beside the field.
    block_acceptance : numpy.ndarray, shape (C, S, b), or None
    block_step_sizes : numpy.ndarray, shape (b,), or None
        Acceptance and step size of each block, where a step moves several in turn; the first
        is the field's, and is what ``acceptance`` and ``step_size`` say.
    """

    white: Float[np.ndarray, "C S n"]
    log_likelihood: Float[np.ndarray, "C S"]
    acceptance: Float[np.ndarray, "C S"]
    step_size: float
    n_warmup: int
    thin: int
    stopped_by: str = "fixed length"
    seconds: float = 0.0
    reference: Gaussian | None = None
    log_ratio: Float[np.ndarray, "C S"] | None = None
    hyperparameters: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    block_acceptance: Float[np.ndarray, "C S b"] | None = None
    block_step_sizes: Float[np.ndarray, " b"] | None = None

    @property
    def n_chains(self) -> int:
        """Number of chains C."""
        return len(self.white)

    @property
    def n_samples(self) -> int:
        """Kept draws a chain S."""
        return int(self.white.shape[1])

    def first(self, n_samples: int) -> "Draws":
        """The first so many draws of each chain."""
        return dataclasses.replace(
            self,
            white=self.white[:, :n_samples],
            log_likelihood=self.log_likelihood[:, :n_samples],
            acceptance=self.acceptance[:, :n_samples],
            log_ratio=None if self.log_ratio is None else self.log_ratio[:, :n_samples],
            block_acceptance=None
            if self.block_acceptance is None
            else self.block_acceptance[:, :n_samples],
            hyperparameters={k: v[:, :n_samples] for k, v in self.hyperparameters.items()},
        )


StopRule = Callable[[Draws], str | None]
"""Returns the reason to stop, in words, or None to go on."""


class _Position(NamedTuple):
    """Where the run stands: enough to go on from."""

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
    kernel: Kernel,
    *,
    n_samples: int = 1000,
    n_chains: int = 8,
    n_warmup: int = 2000,
    thin: int = 20,
    seed: int | np.random.Generator = 0,
    precision: str = "float64",
    stop: StopRule | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
) -> Draws:
    """Run many chains of a kernel side by side.

    Warm-up adapts the step size to the kernel's target acceptance, pooled over chains, then
    freezes it at its mean over the second half of warm-up. Step t of chain c draws from a key
    made of (seed, c, t) alone, so that neither blocks nor interruptions change a number.

    Parameters
    ----------
    target : Target
        Anything with ``dimension``, ``log_likelihood`` and ``start``.
    kernel : Kernel
    n_samples : int
        Kept draws a chain: exactly, or at most where there is a ``stop`` rule.
    n_chains, n_warmup, thin : int
        Chains; steps of warm-up, rounded up to whole blocks of ``50 thin``, 0 to adapt nothing;
        steps a kept draw.
    seed : int or numpy.random.Generator
    precision : {"float64", "float32"}
    stop : callable, optional
        Asked now and then whether to end.
    progress : callable, optional
    checkpoint : path, optional
        File to write the run to, every ten seconds and on interruption, and to resume from.

    Returns
    -------
    Draws

    Raises
    ------
    InvalidInput
        If a number is out of range.
    StorageError
        If the checkpoint cannot be written, is corrupt, or is of another run.
    """
    _check_lengths(n_samples, n_chains, n_warmup, thin, precision)
    began = time.perf_counter()
    if isinstance(seed, np.random.Generator):
        seed = int(seed.integers(2**31))
    dtype = np.dtype(precision)
    kernel = kernel.suited_to(target)
    n_warmup = -(-n_warmup // (BLOCK * thin)) * BLOCK * thin
    _check_memory(n_chains, n_samples, target.dimension, dtype)
    fingerprint = _fingerprint(target, kernel, n_chains, n_warmup, thin, seed, precision)
    with jax.enable_x64(precision == "float64"):
        target, kernel = with_dtype(target, dtype), with_dtype(kernel, dtype)
        key_start, key_chains = jax.random.split(jax.random.key(seed))
        keys = jax.random.split(key_chains, n_chains)
        # One name for both, so that an interruption finds them in step with each other.
        run = _load(checkpoint, fingerprint) or (
            _initial(jax.random.split(key_start, n_chains), target, kernel),
            [],
        )
        stopped_by = "fixed length"
        saved = time.perf_counter()
        try:
            while (done := sum(k.white.shape[1] for k in run[1])) < n_samples:
                reason = None
                if stop is not None and _is_check(done):
                    reason = stop(_collect(*run, n_samples, n_warmup, thin))
                if reason is not None:
                    stopped_by = reason
                    break
                moved, computed = _run_block(keys, run[0], target, kernel, n_warmup, thin)
                block = _Kept(*(np.asarray(leaf) for leaf in computed))
                n_steps = int(moved.n_steps)
                run = moved, [*run[1], block] if n_steps > n_warmup else run[1]
                if progress is not None:
                    phase = "warm-up" if n_steps <= n_warmup else "sampling"
                    total = n_warmup + n_samples * thin
                    acceptance = float(np.mean(block.acceptance))
                    progress(phase, min(n_steps, total), total, acceptance)
                if checkpoint is not None and time.perf_counter() - saved > CHECKPOINT_SECONDS:
                    _save(checkpoint, fingerprint, *run)
                    saved = time.perf_counter()
        finally:
            if checkpoint is not None:
                _save(checkpoint, fingerprint, *run)
        draws = _collect(*run, n_samples, n_warmup, thin)
    return dataclasses.replace(draws, stopped_by=stopped_by, seconds=time.perf_counter() - began)


def _check_lengths(n_samples: int, n_chains: int, n_warmup: int, thin: int, precision: str) -> None:
    for name, value, least in (
        ("n_samples", n_samples, 4),
        ("n_chains", n_chains, 1),
        ("n_warmup", n_warmup, 0),
        ("thin", thin, 1),
    ):
        require(value >= least, name, f"{value}", f"use {least} or more")
    require(
        precision in ("float32", "float64"),
        "precision",
        f"{precision!r} is unknown",
        "use 'float64' or 'float32'",
    )


def _check_memory(n_chains: int, n_samples: int, dimension: int, dtype: np.dtype) -> None:
    n_bytes = n_chains * n_samples * dimension * dtype.itemsize
    require(
        n_bytes <= MAX_DRAW_BYTES,
        "n_samples",
        f"{n_samples} draws of {n_chains} chains in {dimension} dimensions fill "
        f"{n_bytes / 1e9:.0f} GB",
        "keep fewer and raise thin instead",
    )


def _is_check(done: int) -> bool:
    """Whether the stop rule is asked: at counts that no clock and no interruption changes."""
    check = FIRST_CHECK
    while check <= done - BLOCK:
        check = int(check * CHECK_GROWTH) + 1
    return check <= done


@eqx.filter_jit
def _initial(keys: Any, target: Any, kernel: Any) -> _Position:
    states = jax.vmap(lambda key: kernel.init(target.start(key), target))(keys)
    log_step = jnp.log(kernel.step_size)
    zero = jnp.zeros((), states.log_likelihood.dtype)
    return _Position(states, log_step, jnp.zeros_like(log_step), zero, jnp.zeros((), jnp.int32))


@eqx.filter_jit
def _run_block(
    keys: Any, position: _Position, target: Any, kernel: Any, n_warmup: int, thin: int
) -> tuple[_Position, _Kept]:
    """`BLOCK` times `thin` steps of every chain; adapts while in warm-up."""
    target = kernel.prepare(target)

    def step(_: Any, carry: Any) -> Any:
        position, acceptance = carry
        tuned = eqx.tree_at(lambda k: k.step_size, kernel, jnp.exp(position.log_step))
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
        kept = jax.vmap(kernel.visible)(position.states)
        return position, _Kept(kept.white, kept.log_likelihood, acceptance)

    position, kept = jax.lax.scan(draw, position, None, length=BLOCK)
    return position, jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), kept)


def _adapt(
    position: _Position, states: State, acceptance: Array, kernel: Kernel, n_warmup: int
) -> _Position:
    """Robbins-Monro on the log step size; at the end of warm-up, its late mean for good."""
    t = position.n_steps + 1
    dtype = position.log_step.dtype
    gain = (jnp.asarray(t, dtype)) ** -0.5
    wanted = jnp.asarray(kernel.wanted_acceptance, dtype)
    moved = position.log_step + gain * (acceptance - wanted)
    moved = jnp.minimum(moved, jnp.log(kernel.max_step_size).astype(dtype))
    late = (t > n_warmup // 2) & (t <= n_warmup)
    total = position.log_step_sum + jnp.where(late, moved, 0.0)
    count = position.log_step_count + jnp.where(late, 1.0, 0.0)
    log_step = jnp.where(t < n_warmup, moved, position.log_step)
    log_step = jnp.where(t == n_warmup, total / jnp.maximum(count, 1.0), log_step)
    return _Position(states, log_step, total, count, t)


def _collect(
    position: _Position, kept: list[_Kept], n_samples: int, n_warmup: int, thin: int
) -> Draws:
    white, log_likelihood, acceptance = (
        np.concatenate(parts, axis=1)[:, :n_samples] for parts in zip(*kept, strict=True)
    )
    steps = np.exp(np.atleast_1d(np.asarray(position.log_step)))
    blocks = acceptance if acceptance.ndim > 2 else None
    return Draws(
        white=white,
        log_likelihood=log_likelihood,
        acceptance=acceptance if blocks is None else acceptance[..., 0],
        block_acceptance=blocks,
        block_step_sizes=None if blocks is None else steps,
        step_size=float(steps[0]),
        n_warmup=n_warmup,
        thin=thin,
    )


def _fingerprint(
    target: Any,
    kernel: Kernel,
    n_chains: int,
    n_warmup: int,
    thin: int,
    seed: int,
    precision: str,
) -> str:
    digest = hashlib.sha256(
        repr(
            (kernel, n_chains, n_warmup, thin, seed, precision, str(jax.tree.structure(target)))
        ).encode()
    )
    for leaf in jax.tree.leaves(target):
        digest.update(np.asarray(leaf).tobytes())
    return digest.hexdigest()


def _save(path: str | Path, fingerprint: str, position: _Position, kept: list[_Kept]) -> None:
    leaves: dict[str, Any] = {
        f"position{i}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(position))
    }
    if kept:
        joined = (np.concatenate(parts, axis=1) for parts in zip(*kept, strict=True))
        leaves |= dict(zip(_Kept._fields, joined, strict=True))
    with written_whole(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, format=CHECKPOINT_FORMAT, fingerprint=fingerprint, **leaves)


def _load(path: str | Path | None, fingerprint: str) -> tuple[_Position, list[_Kept]] | None:
    if path is None or not Path(path).exists():
        return None
    try:
        with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as file:
            if int(file["format"]) != CHECKPOINT_FORMAT or str(file["fingerprint"]) != fingerprint:
                raise InvalidInput(
                    "checkpoint",
                    f"'{path}' belongs to another run (other data, settings or version)",
                    "delete it, or name another file",
                )
            leaves = [jnp.asarray(file[f"position{i}"]) for i in range(6)]
            position = _Position(State(leaves[0], leaves[1]), *leaves[2:])
            kept = [_Kept(*(file[name] for name in _Kept._fields))] if "white" in file else []
            return position, kept
    except InvalidInput:
        raise
    except (OSError, KeyError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise StorageError(f"'{path}' is not a checkpoint ({error}); delete it") from None
