"""Gibbs sampler of a probit's noisy values, with the field integrated out."""

from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr

from graphuq.errors import require
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Approximation, Sampler
from graphuq.inference.draws import BLOCK, Draws
from graphuq.inference.driver import Block, drive
from graphuq.inference.settings import RunSettings, check_lengths, check_memory, seed_number
from graphuq.posterior.posterior import Posterior
from graphuq.utils.arrays import parallel_map

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
        from graphuq.inference.collapsed_gibbs import sweeps  # Numba takes a while to import

        settings = settings.with_defaults(
            self.n_chains(posterior), self.default_warmup, self.default_thin
        )
        lengths: Any = settings.n_chains, settings.n_warmup, settings.thin  # no None is left
        n_chains, n_warmup, thin = lengths
        check_lengths(settings.n_samples, n_chains, n_warmup, thin, settings.precision)
        check_memory(n_chains, settings.n_samples, posterior.field.dimension, np.dtype(np.float64))
        model, seed = NoisyValues(posterior), seed_number(settings.seed)
        n_warmup = -(-n_warmup // (BLOCK * thin)) * BLOCK * thin
        steps = BLOCK * thin

        def start() -> np.ndarray:
            rngs = [np.random.default_rng([seed % 2**63, 0, c]) for c in range(n_chains)]
            return np.stack([sweeps.start(rng, *model.start) for rng in rngs])

        def one_chain(n_steps: int, state: np.ndarray, c: int) -> Any:
            rng = np.random.default_rng([seed % 2**63, 1 + n_steps, c])
            made = sweeps.run(rng, state[c], model.values, BLOCK, thin)
            white = model.white_given(rng, made)
            return made[-1], white, model.log_likelihood(white)

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
            n_samples=settings.n_samples,
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


class NoisyValues:
    """Distribution of the noisy values at the labels, and of the field given them."""

    def __init__(self, posterior: Posterior) -> None:
        from graphuq.inference.collapsed_gibbs.sweeps import Values

        self.target = posterior.plain_target
        self.noise_std = float(posterior.likelihood.latent_noise_std)
        field = self.target.field
        labels = np.asarray(posterior.labels)
        several = posterior.likelihood.is_multiclass
        own = (labels if several else np.where(labels > 0, 0, -1)).astype(np.int64)
        with jax.enable_x64(True):
            self.factor = np.asarray(field.one_class.matrix(), dtype=np.float64)
        covariance = self.factor @ self.factor.T
        covariance[np.diag_indices_from(covariance)] += self.noise_std**2
        self.values = Values.of(covariance, self.noise_std, own)
        self.start = np.sqrt(covariance.diagonal()), own, field.n_fields
        self.gain = self.values.precision @ self.factor  # E[x | v] = gainᵀ v

    def white_given(
        self, rng: np.random.Generator, noisy: Float[np.ndarray, "S R J"]
    ) -> Float[np.ndarray, "S n"]:
        """Draw the white coordinates of all classes given their noisy values (Matheron's rule)."""
        white = rng.normal(size=(*noisy.shape[:2], self.factor.shape[1]))
        prior = white @ self.factor.T + self.noise_std * rng.normal(size=noisy.shape)
        white += (noisy - prior) @ self.gain
        return white.reshape(len(white), -1)

    def log_likelihood(self, white: Float[np.ndarray, "S n"]) -> Float[np.ndarray, " S"]:
        """Return the log probability of all labels in each draw."""
        from graphuq.inference.collapsed_gibbs.sweeps import log_probabilities

        fields = white.reshape(len(white), self.target.n_fields, -1) @ self.factor.T
        if self.target.likelihood.is_multiclass:
            own = self.values.own
            return log_probabilities(np.swapaxes(fields, 1, 2), own, self.noise_std)
        margins = np.where(self.values.own == 0, 1.0, -1.0) * fields[:, 0]
        return np.asarray(log_ndtr(margins / self.noise_std).sum(axis=1))
