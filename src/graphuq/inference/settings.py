"""How a sampler is run: lengths, seed, precision, stop rule, progress and checkpoint."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from graphuq.errors import require
from graphuq.inference.draws import BLOCK, Draws, StopRule
from graphuq.utils.checks import MAX_COUNT, describe, require_integer, seed_number
from graphuq.utils.progress import Progress

PRECISIONS = ("float32", "float64")
MAX_DRAW_BYTES = 8e9  # kept draws are held in memory: a third of a 24 GB machine


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """Settings of one run of a sampler.

    Attributes
    ----------
    n_samples : int, default 1000
        Kept draws per chain; with a stop rule, the largest number of them.
    n_chains, n_warmup, thin : int or None
        Chains, steps of warm-up and steps per kept draw. With None the sampler uses its own
        number.
    rng : int or numpy.random.Generator, default 0
    precision : {"float64", "float32"}, default "float64"
        Floating-point type of the chains.
    stop : callable, optional
        Called with the present draws, in the coordinates of the posterior; returns the reason to
        stop, or None.
    progress : callable, optional
        Called with phase, steps done, total number of steps and acceptance.
    checkpoint : path, optional
        File from which an interrupted run resumes.
    """

    n_samples: int = 1000
    n_chains: int | None = None
    n_warmup: int | None = None
    thin: int | None = None
    rng: int | np.random.Generator = 0
    precision: str = "float64"
    stop: StopRule | None = None
    progress: Progress | None = None
    checkpoint: str | Path | None = None

    def with_defaults(self, n_chains: int, n_warmup: int, thin: int | None) -> "RunSettings":
        """Return the settings with these numbers in place of None."""
        return dataclasses.replace(
            self,
            n_chains=n_chains if self.n_chains is None else self.n_chains,
            n_warmup=n_warmup if self.n_warmup is None else self.n_warmup,
            thin=thin if self.thin is None else self.thin,
        )

    def in_coordinates(self, to_posterior: Callable[[Draws], Draws]) -> "RunSettings":
        """Return settings whose stop rule is given draws in the sampler's own coordinates."""
        stop = self.stop
        if stop is None:
            return self
        return dataclasses.replace(self, stop=lambda draws: stop(to_posterior(draws)))

    def arguments(self) -> dict[str, Any]:
        """Return the settings as keyword arguments of a sampler's main loop."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


def check_lengths(
    n_samples: Any, n_chains: Any = None, n_warmup: Any = None, thin: Any = None,
    precision: Any = None,
) -> None:  # fmt: skip
    """Raise if a length, or the precision, of a run is out of range; None is a default."""
    for name, value, least in (
        ("n_samples", n_samples, 4),
        ("n_chains", n_chains, 1),
        ("n_warmup", n_warmup, 0),
        ("thin", thin, 1),
    ):
        if value is not None:
            require_integer(name, value, least)
    require(
        precision is None or (isinstance(precision, str) and precision in PRECISIONS),
        "precision",
        f"{describe(precision)} is unknown",
        "use 'float64' or 'float32'",
    )


def check_run(
    dimension: int, n_samples: int, n_chains: int, n_warmup: int, thin: int, seed: Any,
    precision: str = "float64", *, dtype: str = "float64", apart: int = 1,
) -> tuple[int, int]:  # fmt: skip
    """Check all numbers of a run; return its steps of warm-up, and its seed as a number.

    Parameters
    ----------
    dimension : int
        Numbers in a kept draw.
    n_samples, n_chains, n_warmup, thin, seed, precision
        See `RunSettings`.
    dtype : str, default "float64"
        Floating-point type of kept draws.
    apart : int, default 1
        Steps for each kept draw in warm-up, which ends with a block of them.

    Raises
    ------
    InvalidInput
        If a number is out of range, or draws do not fit into memory.
    """
    check_lengths(n_samples, n_chains, n_warmup, thin, precision)
    check_memory(n_chains, n_samples, dimension, np.dtype(dtype))
    block = BLOCK * apart
    n_warmup = -(-n_warmup // block) * block
    check_steps(n_samples, n_warmup, thin)
    return n_warmup, seed_number(seed)


def check_steps(n_samples: int, n_warmup: int, thin: int) -> None:
    """Raise if a chain has more steps than a compiled program counts."""
    steps = n_warmup + n_samples * thin
    require(steps <= MAX_COUNT, "thin", f"{steps} steps a chain", f"use at most {MAX_COUNT} steps")


def check_memory(n_chains: int, n_samples: int, dimension: int, dtype: np.dtype) -> None:
    """Raise if the draws do not fit into memory."""
    n_bytes = n_chains * n_samples * dimension * dtype.itemsize
    n_fit = n_draws_that_fit(n_chains, dimension, dtype)
    require(
        n_bytes <= MAX_DRAW_BYTES,
        "n_samples",
        f"{n_samples} draws of {n_chains} chains in {dimension} dimensions fill "
        f"{n_bytes / 1e9:.0f} GB",
        f"keep {n_fit} or fewer and raise thin instead"
        if n_fit >= 4
        else 'use inference="expectation-propagation", which keeps no draws',
    )


def n_draws_that_fit(n_chains: int, dimension: int, dtype: Any = np.float64) -> int:
    """Return how many draws of each chain fit into memory."""
    return int(MAX_DRAW_BYTES // (n_chains * dimension * np.dtype(dtype).itemsize))
