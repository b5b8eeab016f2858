"""The run of a Gibbs sampler in NumPy: chains in parallel, blocks, and draws."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from graphuq.inference.base import Sampler
from graphuq.inference.draws import BLOCK, Draws
from graphuq.inference.driver import Block, drive
from graphuq.inference.settings import RunSettings, check_run
from graphuq.posterior.posterior import Posterior
from graphuq.utils.arrays import parallel_map


def run_gibbs(
    sampler: Sampler,
    posterior: Posterior,
    settings: RunSettings,
    thin: int,
    start: Callable[[np.random.Generator], np.ndarray],
    advance_chain: Callable[[np.random.Generator, np.ndarray, int], tuple[np.ndarray, Any]],
    kept_type: type[Any],
    hyperparameters: Callable[[Any], dict[str, np.ndarray]] = lambda kept: {},
) -> Draws:
    """Run the chains of a sampler that accepts every step.

    Parameters
    ----------
    sampler : Sampler
    posterior : Posterior
    settings : RunSettings
    thin : int
        Default number of sweeps for each kept draw.
    start : callable
        Returns the state of a chain.
    advance_chain : callable
        Returns the state after a block of kept draws, and what was kept, given the state and the
        number of sweeps for each draw. Its random numbers come from the generator alone.
    kept_type : type
        Named tuple of what is kept, with fields ``white``, ``log_likelihood`` and ``acceptance``.
    hyperparameters : callable, optional
        Returns what else was drawn, by name.
    """
    settings = settings.with_defaults(sampler.n_chains(posterior), sampler.default_warmup, thin)
    lengths: Any = settings.n_chains, settings.n_warmup, settings.thin  # no None is left
    n_chains, n_warmup, thin = lengths
    n_samples, dimension = settings.n_samples, posterior.field.dimension
    n_warmup, seed = check_run(
        dimension, n_samples, n_chains, n_warmup, thin, settings.rng, settings.precision,
        apart=thin,
    )  # fmt: skip

    def starts() -> np.ndarray:
        rngs = [np.random.default_rng([seed % 2**63, 0, c]) for c in range(n_chains)]
        return np.stack([start(rng) for rng in rngs])

    def one_chain(n_steps: int, state: np.ndarray, c: int) -> Any:
        return advance_chain(np.random.default_rng([seed % 2**63, 1 + n_steps, c]), state[c], thin)

    def advance(n_steps: int, state: np.ndarray) -> Block:
        chains = parallel_map(partial(one_chain, n_steps, state), range(n_chains))
        ends, parts = zip(*chains, strict=True)
        kept = kept_type(*map(np.stack, zip(*parts, strict=True)))
        return Block(np.stack(ends), kept, BLOCK * thin, thin)

    def collect(state: np.ndarray, kept: Any) -> Draws:
        return Draws(
            white=kept.white,
            log_likelihood=kept.log_likelihood,
            acceptance=kept.acceptance,
            step_size=1.0,
            n_warmup=n_warmup,
            thin=thin,
            hyperparameters=hyperparameters(kept),
        )

    return drive(
        starts,
        advance,
        collect,
        kept_type,
        n_samples=n_samples,
        n_warmup=n_warmup,
        stop=settings.stop,
        progress=settings.progress,
        checkpoint=settings.checkpoint,
        fingerprint=(posterior.plain_target, sampler, n_chains, n_warmup, thin, seed, BLOCK),
    )
