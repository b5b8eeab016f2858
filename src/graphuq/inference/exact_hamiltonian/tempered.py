"""Exact Hamiltonian trajectories of tempered replicas, for step likelihoods with high walls."""

from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from graphuq.errors import IncompatibleParts, require
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import FACTOR_NUMBERS, Approximation, Sampler
from graphuq.inference.draws import BLOCK, Draws, StopRule
from graphuq.inference.driver import Block, drive
from graphuq.inference.settings import RunSettings, check_run
from graphuq.inference.transitions import swap_replicas
from graphuq.posterior.posterior import Posterior
from graphuq.utils.checks import check_fields
from graphuq.utils.progress import Progress
from graphuq.utils.with_jax import Array, eqx, jax, jnp

FORGETTING = 2  # exponent: step i of warm-up has weight i²
MIN_REJECTION = 0.01  # smallest rejection rate of a swap, so that no two powers coincide
REPLICAS = 1.25  # replicas per √r log(1 / b_1)


class TemperedHamiltonian(Sampler):
    r"""Replicas at powers of a step likelihood that move as `ExactHamiltonian` and are swapped.

    Thousands of contradictory labels make a rugged landscape. Each wall is so high that
    trajectories are reflected everywhere, and chains stick. At a power b of the likelihood, walls
    are b times as high. In each step, replicas at powers ``b_1 < … < b_T = 1`` simulate one
    trajectory each. Then neighbours are swapped (Geyer 1991) with probability
    ``min(1, exp((b_k − b_l)(log L_l − log L_k)))``. Powers are adapted in warm-up so that all
    neighbours swap equally often, and then fixed (Syed, Bouchard-Côté, Deligiannidis & Doucet
    2022).

    Parameters
    ----------
    flattest : float, default 1.5
        Average cost of a wrong label in the flattest replica, in nats: above 0, and so small that
        this replica mixes by itself.
    n_replicas : int, optional
        T; by default ``1 + 1.25 √r log(1 / b_1)`` in r dimensions, with which about half of all
        swaps are accepted.
    max_events : int, default 50
        See `ExactHamiltonian`.
    reference
        Not used.
    """

    flattest: float = 1.5
    n_replicas: int | None = None
    max_events: int = 50
    reference: Approximation | None = None
    requires_gradient: ClassVar[bool] = False
    requires_step: ClassVar[bool] = True
    default_warmup: ClassVar[int] = 200
    default_chains: ClassVar[int | None] = 4  # each chain has all replicas
    default_thin: ClassVar[int] = 1

    def __check_init__(self) -> None:
        check_fields(self)
        require(
            self.reference is None,
            "reference",
            f"{self.reference}: between walls only the prior's own ellipses are exact",
            "leave it out",
        )
        require(self.flattest > 0, "flattest", f"{self.flattest!r}", "use a cost above 0")
        for name in ("n_replicas", "max_events"):
            value = getattr(self, name)
            require(value is None or value >= 1, name, f"{value}", "use 1 or more")

    def refusal(self, posterior: Posterior) -> str | None:
        """Return why the method cannot sample this posterior and what to do instead, or None."""
        reason = super().refusal(posterior)
        if reason is None:
            reason = self.target_refusal(posterior.target)
            reason = reason and f"TemperedHamiltonian needs {reason}; use ExactHamiltonian()"
        return reason

    def run(
        self,
        posterior: Posterior,
        settings: RunSettings,
        reference: GaussianApproximation | None = None,
    ) -> Draws:
        """Return draws of the replica of power 1; see `Sampler.run` and `sample`."""
        settings = settings.with_defaults(
            self.n_chains(posterior), self.default_warmup, self.default_thin
        )
        return self.sample(posterior.target, **settings.arguments())

    def sample(
        self,
        target: Any,
        *,
        n_samples: int,
        n_chains: int,
        n_warmup: int,
        thin: int,
        rng: int | np.random.Generator,
        precision: str = "float64",
        stop: StopRule | None = None,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
    ) -> Draws:
        """Run chains in parallel; arguments and errors are those of `chains.run_chains`.

        Raises
        ------
        IncompatibleParts
            If the likelihood is not of two levels above zero for two classes, or labels times
            dimensions are more than 2²⁶ numbers.
        """
        # Numba takes a while to import
        from graphuq.inference.exact_hamiltonian.trajectories import (
            log_likelihoods,
            simulate,
            walls_of,
        )

        n_warmup, seed = check_run(
            target.dimension, n_samples, n_chains, n_warmup, thin, rng, precision, dtype=precision
        )
        reason = self.target_refusal(target)
        if reason is not None:
            raise IncompatibleParts(f"TemperedHamiltonian needs {reason}; use ExactHamiltonian()")
        walls = walls_of(target, precision)
        max_walls = self.max_events * len(walls.labels)

        def start() -> _Position:
            powers = self._powers(walls)
            rng = np.random.default_rng([seed % 2**63, 0])  # seeds may be negative
            white = rng.normal(size=(len(powers), n_chains, target.dimension)).astype(precision)
            states = _Replicas(white, log_likelihoods(walls, white))
            return _Position(states, powers, np.zeros(()), np.zeros(len(powers) - 1))

        def advance(n_steps: int, position: _Position) -> Block:
            warms, (states, powers, count, rejected) = n_steps < n_warmup, position
            apart, shape = 1 if warms else thin, states.white.shape
            flat = shape[0] * shape[1]
            kept, seen = [], np.zeros_like(rejected)
            for step in range(n_steps, n_steps + BLOCK * apart):
                rng = np.random.default_rng([seed % 2**63, 1, step])
                found = simulate(
                    walls,
                    states.white.reshape(flat, -1),
                    states.log_likelihood.reshape(flat),
                    rng.standard_normal((flat, 1, shape[-1])).astype(precision),
                    rng.uniform(0.8, 1.0, (flat, 1)) * np.pi / 2,
                    max_walls,
                    np.repeat(powers, shape[1]),
                )
                white, value = found.white.reshape(shape), found.log_likelihood.reshape(shape[:2])
                seen += _rejections(value, powers).mean(axis=1)
                uniform = rng.random((shape[1], shape[0])).astype(precision)
                states = _Replicas(*map(np.asarray, _swap(uniform, powers, white, value)))
                if (step + 1 - n_steps) % apart == 0:
                    arrived = found.arrived.reshape(shape[:2])[-1]
                    kept.append((states.white[-1], states.log_likelihood[-1], arrived))
            if warms:
                share = (n_steps / (n_steps + BLOCK)) ** FORGETTING
                count, rejected = share * count + BLOCK, share * rejected + seen
                powers = _equalize_rejections(powers, rejected / count)
            position = _Position(states, powers, count, rejected)
            parts = (np.stack(part, axis=1) for part in zip(*kept, strict=True))
            return Block(position, _Kept(*parts), BLOCK * apart, apart)

        def collect(_: _Position, kept: _Kept) -> Draws:
            return Draws(
                white=kept.white,
                log_likelihood=kept.log_likelihood,
                acceptance=kept.acceptance.astype(precision),
                step_size=float(np.pi) / 2,
                n_warmup=n_warmup,
                thin=thin,
            )

        with jax.enable_x64(precision == "float64"):
            return drive(
                start,
                advance,
                collect,
                _Kept,
                n_samples=n_samples,
                n_warmup=n_warmup,
                stop=stop,
                progress=progress,
                checkpoint=checkpoint,
                fingerprint=(target, self, n_chains, n_warmup, thin, seed, precision),
            )

    @staticmethod
    def target_refusal(target: Any) -> str | None:
        """Return what the method needs and a target lacks, or None."""
        likelihood = target.likelihood
        if not likelihood.is_step or likelihood.is_multiclass:
            return (
                "a likelihood of two levels for two classes, such as LevelSet or AtomicNoise, "
                f"and {likelihood} is not"
            )
        if target.dimension * len(target.labels) > FACTOR_NUMBERS:
            return f"fewer than {len(target.labels)} labels in {target.dimension} dimensions"
        with jax.enable_x64(True):
            wrong = np.asarray(likelihood.log_levels(np.asarray(target.labels))[1])
        if np.isneginf(wrong).any():
            return f"labels that may be wrong, and {likelihood} allows none"
        return None

    def _powers(self, walls: Any) -> Float[np.ndarray, " T"]:
        """Return initial powers in equal ratios."""
        lowest = min(self.flattest / float(walls.rise.mean()), 1.0)
        n_replicas = 1 + int(np.ceil(-REPLICAS * np.log(lowest) * np.sqrt(walls.factor.shape[1])))
        return np.geomspace(1.0, lowest, self.n_replicas or n_replicas)[::-1]


class _Replicas(NamedTuple):
    """States of all replicas, with C chains of each."""

    white: Any  # (T, C, n)
    log_likelihood: Any  # (T, C)


class _Position(NamedTuple):
    """State of a run."""

    states: _Replicas
    powers: Any  # (T,)
    count: Any  # weighted number of warm-up steps
    rejected: Any  # (T − 1,): weighted rejections of swaps between neighbours


class _Kept(NamedTuple):
    """Draws of the replica of power 1, shape (C, S, …)."""

    white: Any
    log_likelihood: Any
    acceptance: Any


def _rejections(
    value: Float[np.ndarray, "T C"], powers: Float[np.ndarray, " T"]
) -> Float[np.ndarray, "T_1 C"]:
    """Return the probabilities that neighbours are not swapped."""
    log_ratio = -np.diff(powers)[:, None] * np.diff(value, axis=0)
    rejections: np.ndarray = -np.expm1(np.minimum(log_ratio, 0.0))
    return rejections


@eqx.filter_jit
def _swap(noise: Any, powers: Any, white: Any, value: Any) -> tuple[Array, Array]:
    """Swap even pairs and then odd ones, separately in each chain."""
    n_replicas = len(powers)

    def swap_chain(noise: Array, white: Array, value: Array) -> tuple[Array, Array]:
        for first in (0, 1):
            places = slice(first, n_replicas - 1, 2)
            white, value = swap_replicas(noise[places], first, jnp.asarray(powers), white, value)
        return white, value

    return jax.vmap(swap_chain, in_axes=(0, 1, 1), out_axes=1)(noise, white, value)


def _equalize_rejections(
    powers: Float[np.ndarray, " T"], rejected: Float[np.ndarray, " T_1"]
) -> Float[np.ndarray, " T"]:
    """Return powers with equal expected rejection rates of swaps between neighbours."""
    passed = np.concatenate([[0.0], np.cumsum(np.maximum(rejected, MIN_REJECTION))])
    even: np.ndarray = np.interp(np.linspace(0.0, passed[-1], len(powers)), passed, powers)
    return even
