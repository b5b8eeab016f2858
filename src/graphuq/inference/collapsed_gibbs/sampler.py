"""Gibbs sampler of a probit's noisy values, with the field integrated out."""

from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from graphuq.errors import require
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Approximation, Sampler
from graphuq.inference.collapsed_gibbs.noisy_values import NoisyValues
from graphuq.inference.draws import BLOCK, Draws
from graphuq.inference.driver import Block, drive
from graphuq.inference.settings import RunSettings, check_run
from graphuq.posterior.posterior import Posterior
from graphuq.utils.arrays import parallel_map
from graphuq.utils.checks import check_fields

MAX_LABELS = 4_000  # a matrix J × J is kept, and a sweep takes K J² operations


class CollapsedGibbs(Sampler):
    r"""Draw the noisy values behind the labels one at a time, with the field integrated out.

    A label of a probit is the sign of ``v = u + γ ε``, or the largest of K such values (Albert &
    Chib 1993). Without the field, each class has ``v ~ N(0, F Fᵀ + γ² I)`` at the labelled nodes,
    and the labels are linear inequalities in v. A sweep draws every value given all others, a
    normal number on one side of a limit (Holmes & Held 2006, §2.1). It also draws the coordinate
    of v along each smooth eigenvector of the covariance, so that neighbouring values move together
    (Liu & Sabatti 2000). Given v, the field is Gaussian, and each kept draw of v gives one of it.

    Nothing is rejected, and nothing is tuned. A sweep takes O(K J²) operations for J labels.

    It needs a `Probit` whose noise and number of classes are fixed, of 2 or more classes.
    """

    reference: Approximation | None = None
    default_warmup: ClassVar[int] = 200
    default_thin: ClassVar[int] = 4
    default_chains: ClassVar[int | None] = 4
    always_float64: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_fields(self)
        require(self.reference is None, "reference", f"{self.reference}", "leave it out")

    def refusal(self, posterior: Posterior) -> str | None:
        """Return why the posterior is no probit that it can sample, or None."""
        likelihood = posterior.likelihood
        if likelihood.latent_noise_std is None or likelihood.learnt or posterior.learnt:
            return (
                f"{self} needs a Probit of fixed noise and classes and a fixed prior, and not "
                f"{likelihood} with {posterior.prior}; leave the method out"
            )
        if len(posterior.labels) > MAX_LABELS:
            return (
                f"{self} is for at most {MAX_LABELS} labels, and there are "
                f"{len(posterior.labels)}; leave the method out"
            )
        return None

    def run(
        self,
        posterior: Posterior,
        settings: RunSettings,
        reference: GaussianApproximation | None = None,
    ) -> Draws:
        """Return draws in the white coordinates of the field."""
        settings = settings.with_defaults(
            self.n_chains(posterior), self.default_warmup, self.default_thin
        )
        lengths: Any = settings.n_chains, settings.n_warmup, settings.thin  # no None is left
        n_chains, n_warmup, thin = lengths
        n_samples, dimension = settings.n_samples, posterior.field.dimension
        n_warmup, seed = check_run(
            dimension, n_samples, n_chains, n_warmup, thin, settings.seed, settings.precision,
            apart=thin,
        )  # fmt: skip
        model = NoisyValues.of(posterior)
        steps = BLOCK * thin

        def start() -> np.ndarray:
            rngs = [np.random.default_rng([seed % 2**63, 0, c]) for c in range(n_chains)]
            return np.stack([model.start(rng) for rng in rngs])

        def one_chain(n_steps: int, state: np.ndarray, c: int) -> Any:
            rng = np.random.default_rng([seed % 2**63, 1 + n_steps, c])
            made = model.run(rng, state[c], BLOCK, thin)
            white = model.white_given(rng, made)
            return made[-1], white.reshape(BLOCK, -1), model.log_likelihood(white)

        def advance(n_steps: int, state: np.ndarray) -> Block:
            chains = parallel_map(partial(one_chain, n_steps, state), range(n_chains))
            ends, white, value = map(np.stack, zip(*chains, strict=True))
            return Block(ends, Kept(white, value, np.ones_like(value)), steps, thin)

        def collect(state: np.ndarray, kept: Kept) -> Draws:
            return Draws(
                white=kept.white,
                log_likelihood=kept.log_likelihood,
                acceptance=kept.acceptance,
                step_size=1.0,
                n_warmup=n_warmup,
                thin=thin,
            )

        return drive(
            start,
            advance,
            collect,
            Kept,
            n_samples=n_samples,
            n_warmup=n_warmup,
            stop=settings.stop,
            progress=settings.progress,
            checkpoint=settings.checkpoint,
            fingerprint=(posterior.plain_target, self, n_chains, n_warmup, thin, seed, BLOCK),
        )


class Kept(NamedTuple):
    """What is kept, for each chain and draw."""

    white: Float[np.ndarray, "C S n"]
    log_likelihood: Float[np.ndarray, "C S"]
    acceptance: Float[np.ndarray, "C S"]
