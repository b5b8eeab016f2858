"""Tempered multiple-try Metropolis, for step likelihoods of thousands of labels."""

from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from graphuq.arrays import with_dtype
from graphuq.errors import IncompatibleParts, require
from graphuq.field import LowRankField
from graphuq.inference.base import Approximation, Gaussian, Sampler
from graphuq.inference.draws import (
    BLOCK,
    Draws,
    StopRule,
    check_lengths,
    check_memory,
    is_check,
    seed_number,
)
from graphuq.inference.driver import Block, drive
from graphuq.inference.multiple_try import Kept, Ladder, Replicas, Seen, Walls, run_block
from graphuq.progress import Progress

FORGETTING = 2  # of warm-up: what was seen at step i weighs i²
LEAST_VARIANCE = 1e-8  # of an axis, as a share of the largest
LEAST_REJECTION = 0.01  # of a swap, so that no two powers meet
MOST_UNCOUNTED = 1.0  # nats by which labels not counted change the log likelihood
COUNTED_AT_FIRST = 1024  # labels, in the first half of warm-up: each new number is compiled anew
REPLICAS = 1.5  # as many again as the swaps alone would need


class TemperedMultipleTry(Sampler):
    r"""Replicas at powers of a step likelihood, each moved along axes of its own, by many tries.

    Labels that contradict each other by the hundred make a rugged landscape: each wall that is
    crossed raises or lowers it. What counts is ``E(x)``, what all labels on the wrong side cost.
    Replicas at powers ``b_1 < … < b_T = 1`` of the likelihood swap places (Geyer 1991), and a
    step moves each of them:

    - along ``n_moves`` random principal axes of its own covariance: ``n_tries`` points are laid
      about the present one, and one of all is taken with probability ∝ its density (a
      multiple-try move; Liu, Liang & Wong 2000; Tjelmeland 2004);
    - by a density that counts only labels which the replica is likely to flip, those of smallest
      ``|mean| / deviation``. The moves of a step are then accepted together with probability
      ``min(1, exp(−b ΔE))``, ΔE of all other labels (surrogate transitions; Liu 2001, §9.4.3);
    - to a new distance from the origin: E depends on the direction of x alone, and a priori the
      distance is independent of that.

    Axes, labels to count and powers are found in warm-up and then kept, powers so that all
    neighbours swap equally often (Syed, Bouchard-Côté, Deligiannidis & Doucet 2022).

    Parameters
    ----------
    flattest : float, default 0.5
        What a wrong label costs the flattest replica on average, in nats: above 0, and so little
        that this replica mixes by itself.
    n_replicas : int, optional
        T; by default ``1 + 1.5 √r log(1 / b_1)`` in r dimensions, of which about two thirds of
        all swaps are accepted.
    n_tries, n_moves : int, default 8 and 32
        1 or more.
    n_counted : int, optional
        Labels that moves count; by default so many that what the rest cost changes by less than
        a nat from draw to draw of the posterior, rounded up to a power of two.
    reference
        Without use.
    """

    flattest: float = 0.5
    n_replicas: int | None = None
    n_tries: int = 8
    n_moves: int = 32
    n_counted: int | None = None
    reference: Approximation | None = None
    requires_gradient: ClassVar[bool] = False
    requires_step: ClassVar[bool] = True
    usual_warmup: ClassVar[int] = 2000
    usual_chains: ClassVar[int | None] = 4  # each is one beside its replicas
    usual_thin: ClassVar[int] = 20

    def __check_init__(self) -> None:
        require(
            self.reference is None,
            "reference",
            f"{self.reference}: replicas find axes of their own",
            "leave it out",
        )
        require(self.flattest > 0, "flattest", f"{self.flattest!r}", "use a cost above 0")
        for name in ("n_replicas", "n_tries", "n_moves", "n_counted"):
            value = getattr(self, name)
            require(value is None or value >= 1, name, f"{value}", "use 1 or more")

    def run(
        self,
        target: Any,
        gaussian: Gaussian | None = None,
        *,
        n_samples: int,
        n_chains: int,
        n_warmup: int,
        thin: int | None,
        seed: int | np.random.Generator,
        precision: str = "float64",
        stop: StopRule | None = None,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
    ) -> Draws:
        """Run chains side by side; arguments and errors are those of `chains.run_chains`.

        A draw is 20 steps by default. Tries are weighed in single precision whatever is asked.

        Raises
        ------
        IncompatibleParts
            If the likelihood is not of two levels above zero for two classes, or the field has a
            tail and more labels than modes.
        """
        thin = self.usual_thin if thin is None else thin
        check_lengths(n_samples, n_chains, n_warmup, thin, precision)
        seed, n_warmup = seed_number(seed), -(-n_warmup // BLOCK) * BLOCK
        walls, most = _walls(target)
        check_memory(n_chains, n_samples, walls.dimension, np.dtype(precision))
        known: dict[int, Ladder] = {}  # what follows from the present tuning

        def start() -> _Position:
            tuning = self._untuned(walls)
            rng = np.random.default_rng([seed % 2**63, 0])  # seeds may be negative
            size = (len(tuning.powers), n_chains, walls.dimension)
            white = rng.normal(size=size).astype(precision)
            replicas = Replicas(white, np.asarray(walls.costs(white), precision))
            return _Position(replicas, tuning, Seen.nothing(len(white), walls.dimension))

        def advance(n_steps: int, position: _Position) -> Block:
            warms, (replicas, tuning, seen) = n_steps < n_warmup, position
            apart = 1 if warms else thin
            if id(tuning) not in known:
                known.clear()
                known[id(tuning)] = tuning.ladder(walls, precision)
            moved, later, kept = run_block(
                jax.random.key(seed),
                jnp.asarray(n_steps),
                jnp.asarray(apart),
                with_dtype(replicas, precision),
                with_dtype(walls, precision),
                known[id(tuning)],
                self.n_tries,
                self.n_moves,
            )
            if warms:
                after = n_steps + BLOCK
                seen = _with_later(seen, later, n_steps, after)
                if is_check(after) or after == n_warmup:
                    at_first = COUNTED_AT_FIRST if 2 * after < n_warmup else None
                    n_counted = self.n_counted or at_first
                    tuning = _tuned(seen, tuning.powers, walls, n_counted)
            state = _Position(Replicas(*map(np.asarray, moved)), tuning, seen)
            return Block(state, Kept(*map(np.asarray, kept)), BLOCK * apart, apart)

        def collect(_: _Position, kept: Kept) -> Draws:
            return Draws(
                white=kept.white,
                log_likelihood=most - kept.cost,
                acceptance=kept.acceptance,
                step_size=1.0,
                n_warmup=n_warmup,
                thin=thin,
            )

        with jax.enable_x64(precision == "float64"):
            return drive(
                start,
                advance,
                collect,
                Kept,
                n_samples=n_samples,
                n_warmup=n_warmup,
                stop=stop,
                progress=progress,
                checkpoint=checkpoint,
                fingerprint=(target, self, n_chains, n_warmup, thin, seed, precision),
            )

    @staticmethod
    def refusal(target: Any) -> str | None:
        """What a target lacks, in words; None where all is there."""
        likelihood = target.likelihood
        if not likelihood.step or likelihood.several:
            return (
                "a likelihood of two levels for two classes, such as LevelSet or AtomicNoise, "
                f"and {likelihood} is not"
            )
        if not isinstance(target.field, LowRankField):
            return "a field without a tail, or with fewer labels than eigenpairs"
        if np.isneginf(_levels(target)[1]).any():
            return f"labels that may be wrong, and {likelihood} allows none"
        return None

    def _untuned(self, walls: Walls) -> "_Tuning":
        """The prior's axes, powers in equal ratios; all labels are counted."""
        n_labels, dimension = walls.factor.shape
        lowest = min(self.flattest / float(walls.rise.mean()), 1.0)
        n_replicas = 1 + int(np.ceil(-REPLICAS * np.log(lowest) * np.sqrt(dimension)))
        n_replicas = self.n_replicas or n_replicas
        return _Tuning(
            np.geomspace(1.0, lowest, n_replicas)[::-1],
            np.tile(np.eye(dimension), (n_replicas, 1, 1)),
            np.tile(np.arange(n_labels), (n_replicas, 1)),
        )


class _Tuning(NamedTuple):
    """What warm-up finds for each replica."""

    powers: Any  # (T,)
    axes: Any  # (T, r, r): principal axes, times deviations, as rows
    counted: Any  # (T, A): labels

    def ladder(self, walls: Walls, precision: str) -> Ladder:
        """What steps need of it."""
        factor = walls.factor[self.counted]
        along = self.axes @ np.swapaxes(factor, 1, 2)
        counted = with_dtype((factor, walls.rise[self.counted], along), "float32")
        return Ladder(*with_dtype((self.powers, self.axes), precision), *counted)


class _Position(NamedTuple):
    """Where the run stands."""

    replicas: Replicas
    tuning: _Tuning
    seen: Seen


def _walls(target: Any) -> tuple[Walls, float]:
    """What a target's labels cost, and its log likelihood where all are right."""
    reason = TemperedMultipleTry.refusal(target)
    if reason is not None:
        raise IncompatibleParts(f"TemperedMultipleTry needs {reason}; use ExactHamiltonian()")
    labels = np.asarray(target.labels)
    right, wrong = _levels(target)
    factor = labels[:, None] * np.asarray(target.field.factor)
    return Walls(factor, right - wrong), float(right.sum())


def _levels(target: Any) -> tuple[Any, Any]:
    """Log likelihood of each label, right and wrong."""
    with jax.enable_x64(True):
        right, wrong = target.likelihood.log_levels(np.asarray(target.labels))
        return np.asarray(right), np.asarray(wrong)


def _with_later(seen: Seen, later: Seen, before: int, after: int) -> Seen:
    """Steps of warm-up added to those before, which weigh less."""
    share = (before / after) ** FORGETTING
    return Seen(*(share * old + np.asarray(new) for old, new in zip(seen, later, strict=True)))


def _tuned(
    seen: Seen, powers: Float[np.ndarray, " T"], walls: Walls, n_counted: int | None
) -> _Tuning:
    """Principal axes, the labels of least certain sign, and powers that are swapped alike."""
    mean = seen.first / seen.count
    covariance = seen.second / seen.count - mean[:, :, None] * mean[:, None, :]
    variances, columns = np.linalg.eigh(covariance)
    variances = np.maximum(variances, LEAST_VARIANCE * variances[:, -1:])
    axes = np.swapaxes(columns, 1, 2) * np.sqrt(variances)[:, :, None]
    deviation = np.stack([np.linalg.norm(walls.factor @ own.T, axis=1) for own in axes])
    sure = np.abs(mean @ walls.factor.T) / np.maximum(deviation, np.finfo(float).tiny)
    least_sure = np.argsort(sure, axis=1)
    n_counted = n_counted or _enough(sure[-1, least_sure[-1]], walls.rise[least_sure[-1]])
    counted = np.sort(least_sure[:, :n_counted], axis=1)
    return _Tuning(_swapped_alike(powers, seen), axes, counted)


def _enough(sure: Float[np.ndarray, " J"], rise: Float[np.ndarray, " J"]) -> int:
    """Labels to count, the least sure first."""
    right = ndtr(sure)
    change = 2 * right * (1 - right) * rise  # between two independent draws, expected
    after = np.append(np.cumsum(change[::-1])[::-1], 0.0)  # of all labels but the first so many
    least = int(np.argmax(after <= MOST_UNCOUNTED))
    return min(1 << max(least - 1, 0).bit_length(), len(sure))


def _swapped_alike(powers: Float[np.ndarray, " T"], seen: Seen) -> Float[np.ndarray, " T"]:
    """Powers between which as many swaps would be rejected as between any others."""
    rejected = np.maximum(seen.rejections / seen.count, LEAST_REJECTION)
    passed = np.concatenate([[0.0], np.cumsum(rejected)])
    even: np.ndarray = np.interp(np.linspace(0.0, passed[-1], len(powers)), passed, powers)
    return even
