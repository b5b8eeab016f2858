"""Independence sampling: proposals from a Gaussian that is close to the posterior."""

import time
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import solve_triangular

from graphuq.errors import require
from graphuq.inference.base import Approximation, Gaussian, Sampler, WhiteTarget, with_dtype
from graphuq.inference.checkpoint import Checkpoint
from graphuq.inference.draws import (
    BLOCK,
    Draws,
    StopRule,
    check_lengths,
    check_memory,
    is_check,
    seed_number,
)
from graphuq.progress import Progress
from graphuq.target import log_likelihoods

THINS = ((0.9, 1), (0.5, 4), (0.0, 8))  # acceptance from which so many proposals make a draw
MANY = 8


class Independence(Sampler):
    """Propose from the reference, whatever the state, and accept by Metropolis and Hastings.

    All proposals of all chains are made, and their likelihoods computed, by one matrix product;
    what is left of a step is a comparison. Nothing is adapted and next to nothing compiled. A
    share of the proposals comes from the prior: since likelihoods are bounded, so is then the
    density of the posterior over the proposals', and the chain is uniformly ergodic (Tierney
    1994, corollary 4; the mixture is Hesterberg's, 1995), however far off the reference is. Where
    that is far, acceptance is low and says so.

    Parameters
    ----------
    share : float, default 0.05
        Of proposals from the prior, in (0, 1).
    reference : Approximation, optional
        Propose from its Gaussian; without one, from the prior alone, which suits a handful of
        labels.
    """

    share: float = 0.05
    reference: Approximation | None = None
    requires_gradient: ClassVar[bool] = False
    usual_warmup: ClassVar[int] = BLOCK

    def __check_init__(self) -> None:
        require(0 < self.share < 1, "share", f"{self.share!r}", "use a share in (0, 1)")

    def expected_acceptance(self, target: WhiteTarget, gaussian: Gaussian | None, n: int) -> float:
        """Acceptance probability once the chain has converged, from n proposals."""
        log_weight = self._proposed(target, gaussian, np.random.default_rng(0), n).log_weight
        if log_weight.max() == -np.inf:
            return 0.0  # none of them fits the labels
        weights = np.sort(np.exp(log_weight - log_weight.max()))
        # The mean of min(w, w') / w over pairs, w' a proposal's and w the posterior's.
        return float(weights @ np.arange(2 * n - 1, 0, -2) / (n * weights.sum()))

    def run(
        self,
        target: WhiteTarget,
        gaussian: Gaussian | None,
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

        Where ``thin`` is None, every proposal is kept, or one in 4 or 8, if fewer than nine or five
        in ten are accepted in warm-up: proposals are cheap, and draws that repeat each other
        are not.
        """
        check_lengths(n_samples, n_chains, n_warmup, 1 if thin is None else thin, precision)
        check_memory(n_chains, n_samples, target.dimension, np.dtype(np.float64))
        began, seed, stopped_by = time.perf_counter(), seed_number(seed), "fixed length"
        n_warmup = -(-n_warmup // BLOCK) * BLOCK
        about = None if gaussian is None else (gaussian.seen_mean, gaussian.seen_covariance)
        file = Checkpoint(
            checkpoint, (target, about), self, n_chains, n_warmup, thin, seed, precision
        )

        def advance(run: _Run, n_blocks: int) -> tuple[_Run, _State, Float[np.ndarray, "S C"]]:
            """So many blocks of steps on: where the run is then, all states, and acceptances."""
            blocks, acceptances = [], []
            n_steps, state = run.n_steps, run.state
            for _ in range(n_blocks):
                rng = np.random.default_rng([seed % 2**63, n_steps])  # seeds may be negative
                proposed = self._proposed(target, gaussian, rng, BLOCK * n_chains, precision)
                states, acceptance = _metropolis(rng, state, proposed.shaped(BLOCK, n_chains))
                n_steps, state = n_steps + BLOCK, states.at(-1)
                blocks.append(states)
                acceptances.append(acceptance)
            if progress is not None:
                phase = "warm-up" if n_steps <= n_warmup else "sampling"
                total = n_warmup + n_samples * (run.thin or MANY)
                progress(phase, min(n_steps, total), total, float(np.mean(acceptances)))
            moved = run._replace(n_steps=n_steps, state=state)
            return moved, _joined(blocks, axis=0), np.concatenate(acceptances)

        def collected() -> Draws:
            found = _joined(run.kept, axis=1)
            return Draws(
                white=found.white[:, :n_samples],
                log_likelihood=found.log_likelihood[:, :n_samples],
                acceptance=found.acceptance[:, :n_samples],
                step_size=1.0,
                n_warmup=n_warmup,
                thin=int(run.thin or MANY),
                stopped_by=stopped_by,
                seconds=time.perf_counter() - began,
                reference=gaussian,
                log_ratio=None if gaussian is None else found.log_ratio[:, :n_samples],
            )

        # One name for all that changes, so that an interruption finds it in step with itself.
        run = _Run.of(file.load()) or _Run(0, thin, None, ())
        try:
            while run.n_steps < n_warmup:
                run, _, acceptance = advance(run, 1)
                if thin is None:
                    accepted = acceptance.mean()
                    run = run._replace(thin=next(n for least, n in THINS if accepted >= least))
            apart = run.thin or MANY
            while (done := sum(block.white.shape[1] for block in run.kept)) < n_samples:
                reason = stop(collected()) if stop is not None and is_check(done) else None
                if reason is not None:
                    stopped_by = reason
                    break
                moved, states, acceptance = advance(run, apart)
                leaves = (leaf[apart - 1 :: apart] for leaf in states[:3])
                means = acceptance.reshape(BLOCK, apart, n_chains).mean(axis=1)
                block = _Kept(*(np.swapaxes(leaf, 0, 1) for leaf in (*leaves, means)))
                run = moved._replace(kept=(*run.kept, block))
                if file.due:
                    file.save(run.arrays())
        finally:
            file.save(run.arrays())
        return collected()

    def _proposed(
        self,
        target: WhiteTarget,
        gaussian: Gaussian | None,
        rng: np.random.Generator,
        n: int,
        precision: str = "float64",
    ) -> "_State":
        """Independent proposals, with all that is asked of them."""
        white = rng.normal(size=(n, target.dimension))
        log_ratio = np.zeros(n)
        log_prior_over_proposal = np.zeros(n)
        if gaussian is not None:
            root = np.linalg.cholesky(gaussian.seen_covariance)
            log_gaussian = _log_normal(white) - np.log(np.diag(root)).sum()
            of_prior = rng.uniform(size=n) < self.share
            white = np.where(of_prior[:, None], white, gaussian.seen_mean + white @ root.T)
            back = solve_triangular(root, (white[of_prior] - gaussian.seen_mean).T, lower=True)
            log_gaussian[of_prior] = _log_normal(back.T) - np.log(np.diag(root)).sum()
            log_prior = _log_normal(white)
            log_ratio = log_prior - log_gaussian
            log_prior_over_proposal = log_prior - np.logaddexp(
                np.log1p(-self.share) + log_gaussian, np.log(self.share) + log_prior
            )
        with jax.enable_x64(precision == "float64"):
            values = log_likelihoods(with_dtype(target, precision), white.astype(precision))
            log_likelihood = np.nan_to_num(
                np.asarray(values, np.float64), nan=-np.inf, neginf=-np.inf
            )
        return _State(
            white,
            log_likelihood,
            log_likelihood + log_ratio,
            log_likelihood + log_prior_over_proposal,
        )


class _State(NamedTuple):
    """Points, each with what the chain asks of it."""

    white: Any  # (…, n)
    log_likelihood: Any  # (…)
    log_ratio: Any  # log density of the posterior over the reference
    log_weight: Any  # and over the proposals

    def at(self, step: int) -> "_State":
        """One step of each chain."""
        return _State(*(leaf[step] for leaf in self))

    def shaped(self, n_steps: int, n_chains: int) -> "_State":
        """A flat list of points as steps of chains."""
        return _State(*(leaf.reshape(n_steps, n_chains, *leaf.shape[1:]) for leaf in self))


class _Kept(NamedTuple):
    """What is kept of the steps, shape (C, S, …)."""

    white: Any
    log_likelihood: Any
    log_ratio: Any
    acceptance: Any


class _Run(NamedTuple):
    """Where the run stands: enough to go on from."""

    n_steps: int
    thin: int | None
    state: _State | None
    kept: tuple[_Kept, ...]

    def arrays(self) -> dict[str, Any]:
        """Named, for a file."""
        kept = _joined(self.kept, axis=1)._asdict() if self.kept else {}
        state = {f"state{i}": leaf for i, leaf in enumerate(self.state or ())}
        return {"n_steps": self.n_steps, "thin": self.thin or 0, **state, **kept}

    @classmethod
    def of(cls, arrays: dict[str, np.ndarray]) -> "_Run | None":
        """The run of a file."""
        if not arrays:
            return None
        state = _State(*(arrays[f"state{i}"] for i in range(4))) if "state0" in arrays else None
        kept = (_Kept(*(arrays[name] for name in _Kept._fields)),) if "white" in arrays else ()
        return cls(int(arrays["n_steps"]), int(arrays["thin"]) or None, state, kept)


def _joined(parts: Any, axis: int) -> Any:
    """Tuples of arrays as one such tuple."""
    return type(parts[0])(*(np.concatenate(leaf, axis) for leaf in zip(*parts, strict=True)))


def _log_normal(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """Standard normal log density, up to a constant."""
    return -0.5 * (x**2).sum(axis=1)


def _metropolis(
    rng: np.random.Generator, state: _State | None, proposed: _State
) -> tuple[_State, Float[np.ndarray, "S C"]]:
    """States after each step, and the probability that its proposal was accepted with."""
    n_steps, n_chains = proposed.log_weight.shape
    before = _State(*(leaf[:1] for leaf in proposed)) if state is None else state
    points = _State(
        *(
            np.concatenate([old.reshape(1, *new.shape[1:]), new])
            for old, new in zip(before, proposed, strict=True)
        )
    )
    at: Int[np.ndarray, "S C"] = np.zeros((n_steps + 1, n_chains), dtype=np.int64)
    acceptance, chains = np.empty((n_steps, n_chains)), np.arange(n_chains)
    log_uniform = np.log(rng.uniform(size=(n_steps, n_chains)))
    for step in range(n_steps):
        new, old = points.log_weight[step + 1], points.log_weight[at[step], chains]
        lost = old == -np.inf  # whatever is proposed is no worse
        log_ratio = np.where(lost, 0.0, new - np.where(lost, 0.0, old))
        at[step + 1] = np.where(log_uniform[step] < log_ratio, step + 1, at[step])
        acceptance[step] = np.exp(np.minimum(log_ratio, 0.0))
    return _State(*(leaf[at[1:], chains] for leaf in points)), acceptance
