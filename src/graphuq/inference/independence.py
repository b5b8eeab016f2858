"""Independence sampling: proposals from a Gaussian that is close to the posterior."""

from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import solve_triangular

from graphuq.errors import require
from graphuq.inference.base import Approximation, Gaussian, Sampler, WhiteTarget
from graphuq.inference.draws import (
    BLOCK,
    Draws,
    StopRule,
    check_lengths,
    check_memory,
    seed_number,
)
from graphuq.inference.driver import Block, drive, joined
from graphuq.progress import Progress
from graphuq.target import MOST_IN_NUMPY, log_likelihoods

THINS = ((0.9, 1), (0.5, 4), (0.0, 8))  # acceptance from which so many proposals make a draw
MANY = 8
FEW = 2**16  # proposals of a block times labels: NumPy takes 2 ms, time and again


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
        root = None if gaussian is None else np.linalg.cholesky(gaussian.seen_covariance)
        rng = np.random.default_rng(0)
        log_weight = self._proposed(
            target, gaussian, root, rng, n, "float64", MOST_IN_NUMPY
        ).log_weight
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
        seed = seed_number(seed)
        n_warmup = -(-n_warmup // BLOCK) * BLOCK
        about = None if gaussian is None else (gaussian.seen_mean, gaussian.seen_covariance)
        root = None if gaussian is None else np.linalg.cholesky(gaussian.seen_covariance)

        def proposed(rng: np.random.Generator, n_steps: int) -> _State:
            n = n_steps * n_chains
            found = self._proposed(target, gaussian, root, rng, n, precision, FEW)
            return found.shaped(n_steps, n_chains)

        def start() -> _Position:
            rng = np.random.default_rng([seed % 2**63, 0])  # seeds may be negative
            return _Position(proposed(rng, 1).at(0), np.asarray(thin or MANY))

        def advance(n_steps: int, position: _Position) -> Block:
            """A block of steps of warm-up, or as many as make a block of draws."""
            warms = n_steps < n_warmup
            state, apart = position.state, int(position.thin)
            blocks, acceptances = [], []
            for made in range(0, BLOCK if warms else BLOCK * apart, BLOCK):
                rng = np.random.default_rng([seed % 2**63, n_steps + made + 1])
                states, acceptance = _metropolis(rng, state, proposed(rng, BLOCK))
                state = states.at(-1)
                blocks.append(states)
                acceptances.append(acceptance)
            states, acceptance = joined(tuple(blocks), axis=0), np.concatenate(acceptances)
            if warms:
                if thin is None:
                    accepted = acceptance.mean()
                    apart = next(n for least, n in THINS if accepted >= least)
                leaves, means = states[:3], acceptance
            else:
                leaves = tuple(leaf[apart - 1 :: apart] for leaf in states[:3])
                means = acceptance.reshape(BLOCK, apart, n_chains).mean(axis=1)
            kept = _Kept(*(np.swapaxes(leaf, 0, 1) for leaf in (*leaves, means)))
            return Block(_Position(state, np.asarray(apart)), kept, len(acceptance), apart)

        def collect(position: _Position, kept: _Kept) -> Draws:
            return Draws(
                white=kept.white,
                log_likelihood=kept.log_likelihood,
                acceptance=kept.acceptance,
                step_size=1.0,
                n_warmup=n_warmup,
                thin=int(position.thin),
                reference=gaussian,
                log_ratio=None if gaussian is None else kept.log_ratio,
            )

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
            fingerprint=((target, about), self, n_chains, n_warmup, thin, seed, precision),
        )

    def _proposed(
        self,
        target: WhiteTarget,
        gaussian: Gaussian | None,
        root: Float[np.ndarray, "n n"] | None,
        rng: np.random.Generator,
        n: int,
        precision: str,
        few: int,
    ) -> "_State":
        """Independent proposals, with all that is asked of them."""
        white = rng.normal(size=(n, target.dimension))
        log_ratio = np.zeros(n)
        log_prior_over_proposal = np.zeros(n)
        if gaussian is not None and root is not None:
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
        values = log_likelihoods(target, white, precision, few)
        log_likelihood = np.nan_to_num(values, nan=-np.inf, neginf=-np.inf)
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


class _Position(NamedTuple):
    """Where the chains are, and how many proposals make a draw."""

    state: _State
    thin: Any


def _log_normal(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """Standard normal log density, up to a constant."""
    return -0.5 * (x**2).sum(axis=1)


def _metropolis(
    rng: np.random.Generator, state: _State, proposed: _State
) -> tuple[_State, Float[np.ndarray, "S C"]]:
    """States after each step, and the probability that its proposal was accepted with."""
    n_steps, n_chains = proposed.log_weight.shape
    points = joined((_State(*(leaf[None] for leaf in state)), proposed), axis=0)
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
