"""Base of independence samplers, whose proposals do not depend on the state of the chain."""

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import solve_triangular

from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Sampler, WhiteTarget
from graphuq.inference.coordinates import coefficient_map, with_covered_reference
from graphuq.inference.draws import BLOCK, Draws, StopRule
from graphuq.inference.driver import Block, drive, joined
from graphuq.inference.reference import fit_reference
from graphuq.inference.settings import RunSettings, check_run
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import MAX_IN_NUMPY
from graphuq.utils.progress import Progress

THINS = ((0.9, 1), (0.65, 2), (0.5, 4), (0.0, 8))  # acceptance; proposals per draw from there
MAX_THIN = 8
NUMPY_SIZE = 2**16  # proposals × labels per block, up to which NumPy computes likelihoods in 2 ms


class Proposed(NamedTuple):
    """Proposed points, with the log densities that the chain needs."""

    white: Any  # (…, n)
    log_likelihood: Any  # (…)
    log_ratio: Any  # log density of the posterior over the reference
    log_weight: Any  # log density of the posterior over the proposals

    def at(self, step: int) -> "Proposed":
        """Return one step of each chain."""
        return Proposed(*(leaf[step] for leaf in self))

    def shaped(self, n_steps: int, n_chains: int) -> "Proposed":
        """Return a flat list of points as steps of chains."""
        return Proposed(*(leaf.reshape(n_steps, n_chains, *leaf.shape[1:]) for leaf in self))


Proposals = Callable[[np.random.Generator, int], Proposed]
"""Function that makes a number of points, independent of each other and of the chains."""


class IndependenceSampler(Sampler):
    """A sampler whose proposals do not depend on the state and are made in large batches.

    A step is then a comparison of weights. Nothing is adapted. A subclass defines `proposals`.
    """

    default_warmup: ClassVar[int] = BLOCK

    @abstractmethod
    def proposals(
        self, target: Any, gaussian: GaussianApproximation | None, precision: str, few: int
    ) -> Proposals:
        """Return the function that makes proposals.

        Parameters
        ----------
        target : WhiteTarget
        gaussian : GaussianApproximation or None
            Gaussian of the reference.
        precision : {"float64", "float32"}
        few : int
            Number of likelihoods of single labels up to which NumPy computes them.
        """

    def expected_acceptance(
        self, target: WhiteTarget, gaussian: GaussianApproximation | None, n: int
    ) -> float:
        """Estimate the acceptance probability of the converged chain from n proposals."""
        propose = self.proposals(target, gaussian, "float64", MAX_IN_NUMPY)
        log_weight = propose(np.random.default_rng(0), n).log_weight
        if log_weight.max() == -np.inf:
            return 0.0  # no proposal fits the labels
        weights = np.sort(np.exp(log_weight - log_weight.max()))
        # Mean of min(w, w') / w over pairs: w' from the proposals, w from the posterior.
        return float(weights @ np.arange(2 * n - 1, 0, -2) / (n * weights.sum()))

    def run(
        self,
        posterior: Posterior,
        settings: RunSettings,
        reference: GaussianApproximation | None = None,
    ) -> Draws:
        """Return draws from the posterior; see `Sampler.run` and `sample`."""
        settings = settings.with_defaults(self.n_chains(posterior), self.default_warmup, None)
        gaussian = fit_reference(posterior, self, reference)
        to_posterior = with_covered_reference(posterior, coefficient_map(posterior))
        arguments = settings.in_coordinates(to_posterior).arguments()
        return to_posterior(self.sample(posterior.target, gaussian, **arguments))

    def sample(
        self,
        target: WhiteTarget,
        gaussian: GaussianApproximation | None,
        *,
        n_samples: int,
        n_chains: int,
        n_warmup: int,
        thin: int | None,
        rng: int | np.random.Generator,
        precision: str = "float64",
        stop: StopRule | None = None,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
    ) -> Draws:
        """Run chains on a target; arguments and errors are those of `chains.run_chains`.

        If ``thin`` is None, one in 1, 2, 4 or 8 proposals is kept, depending on the acceptance
        in warm-up (`THINS`): proposals are cheap, while repeated draws cost memory and
        summaries.
        """
        most = MAX_THIN if thin is None else thin
        n_warmup, seed = check_run(
            target.dimension, n_samples, n_chains, n_warmup, most, rng, precision
        )
        about = None if gaussian is None else (gaussian.white_mean, gaussian.white_covariance)
        refers = about is not None and len(about[0]) == target.dimension  # or there is a tail
        propose = self.proposals(target, gaussian, precision, NUMPY_SIZE)

        def proposed(rng: np.random.Generator, n_steps: int) -> Proposed:
            return propose(rng, n_steps * n_chains).shaped(n_steps, n_chains)

        def start() -> _Position:
            rng = np.random.default_rng([seed % 2**63, 0])  # seeds may be negative
            return _Position(proposed(rng, 1).at(0), np.asarray(thin or MAX_THIN))

        def advance(n_steps: int, position: _Position) -> Block:
            """Return a block of steps of warm-up, or the steps of a block of draws."""
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
                reference=gaussian if refers else None,
                log_ratio=kept.log_ratio if refers else None,
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


class _Kept(NamedTuple):
    """Kept part of the steps, shape (C, S, …)."""

    white: Any
    log_likelihood: Any
    log_ratio: Any
    acceptance: Any


class _Position(NamedTuple):
    """State of the chains, and proposals per draw."""

    state: Proposed
    thin: Any


def log_normal(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """Return the standard normal log density, up to a constant."""
    return -0.5 * (x**2).sum(axis=1)


def log_density(
    mean: Float[np.ndarray, " d"], root: Float[np.ndarray, "d d"], x: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, " n"]:
    """Return the log density of a Gaussian given the Cholesky factor of its covariance."""
    back = solve_triangular(root, (x - mean).T, lower=True).T
    return log_normal(back) - np.log(np.diag(root)).sum()


def _metropolis(
    rng: np.random.Generator, state: Proposed, proposed: Proposed
) -> tuple[Proposed, Float[np.ndarray, "S C"]]:
    """Return the states after each step, and the acceptance probability of its proposal."""
    n_steps, n_chains = proposed.log_weight.shape
    points = joined((Proposed(*(leaf[None] for leaf in state)), proposed), axis=0)
    at: Int[np.ndarray, "S C"] = np.zeros((n_steps + 1, n_chains), dtype=np.int64)
    acceptance, chains = np.empty((n_steps, n_chains)), np.arange(n_chains)
    log_uniform = np.log(rng.uniform(size=(n_steps, n_chains)))
    for step in range(n_steps):
        new, old = points.log_weight[step + 1], points.log_weight[at[step], chains]
        lost = old == -np.inf  # every proposal is at least as good
        log_ratio = np.where(lost, 0.0, new - np.where(lost, 0.0, old))
        at[step + 1] = np.where(log_uniform[step] < log_ratio, step + 1, at[step])
        acceptance[step] = np.exp(np.minimum(log_ratio, 0.0))
    return Proposed(*(leaf[at[1:], chains] for leaf in points)), acceptance
