"""Draws from a finite mixture of priors: the evidence weighs the components.

Expectation propagation gives each component m a Gaussian q_m and the evidence Z_m. A proposal is a
component, with probability ``π_m Z_m / Σ π Z``, and a field from its q_m. Metropolis's rule for
independent proposals accepts or rejects it, so that the chains have the exact posterior of
component and field. The ratio of densities involves the labelled nodes only.

Where most proposals would be rejected, components are drawn with these probabilities, and the
field of each by collapsed Gibbs chains (`component_chains`). Then only the probabilities of the
components are approximate.
"""

from typing import Any, ClassVar

import numpy as np

from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Approximation, Sampler
from graphuq.inference.draws import BLOCK, Draws
from graphuq.inference.driver import Block, drive
from graphuq.inference.model_average.proposals import Proposals
from graphuq.inference.model_average.walk import Kept, walk
from graphuq.inference.settings import RunSettings, check_lengths, check_memory, seed_number
from graphuq.posterior.posterior import Posterior
from graphuq.utils.arrays import parallel_map

MIN_ACCEPTANCE = 0.5  # share of accepted proposals, from which exact draws are as quick


class ModelAverage(Sampler):
    """Sample the component of a `MaternMixture` and the field, by independent proposals.

    It needs a `Probit` of fixed noise and a fixed number of classes. Each component costs one
    expectation propagation, of O(K J³) operations, and is quick for up to some hundred labels.

    Parameters
    ----------
    exact : bool, optional
        Whether proposals are accepted or rejected, so that the draws are exact. False: fields are
        drawn by collapsed Gibbs chains of each component, whose probabilities are those of
        expectation propagation. By default proposals are made if at least half of them would be
        accepted.
    """

    exact: bool | None = None
    reference: Approximation | None = None
    default_warmup: ClassVar[int] = 0
    default_chains: ClassVar[int | None] = 4
    always_float64: ClassVar[bool] = True

    def refusal(self, posterior: Posterior) -> str | None:
        """Return why the posterior is no mixture that it can sample, or None."""
        likelihood = posterior.likelihood
        if not posterior.prior.is_mixture:
            return f"{self} averages over the components of MaternMixture, not {posterior.prior}"
        if likelihood.learnt or likelihood.latent_noise_std is None:
            return f"{self} needs a Probit of fixed noise and classes, and not {likelihood}"
        if posterior.spectrum.tail_eigenvalue is not None:
            return f"{self} needs a spectrum without a tail; leave tail_eigenvalue out"
        return None

    def unused_arguments(self, given: Any) -> list[str]:
        """Return arguments without effect: there is no warm-up, and nothing to thin."""
        unused = ("n_warmup", "thin")
        return [name for name in given if name in unused]

    def run(
        self,
        posterior: Posterior,
        settings: RunSettings,
        reference: GaussianApproximation | None = None,
    ) -> Draws:
        """Return draws in the coefficients of the eigenvectors, and the component of each."""
        n_chains = self.n_chains(posterior) if settings.n_chains is None else settings.n_chains
        check_lengths(settings.n_samples, n_chains, 0, 1, settings.precision)
        check_memory(n_chains, settings.n_samples, posterior.field.dimension, np.dtype(np.float64))
        proposals, seed = Proposals(posterior), seed_number(settings.seed)
        exact = proposals.acceptance() >= MIN_ACCEPTANCE if self.exact is None else self.exact

        chains = None if exact else proposals.chains()

        def start() -> Any:
            if chains is None:
                return proposals.draw(np.random.default_rng([seed, 0]), n_chains)
            rngs = [np.random.default_rng([seed, 0, c]) for c in range(n_chains)]
            return np.stack(parallel_map(chains.start, rngs))

        def advance(n_steps: int, state: Any) -> Block:
            if chains is not None:
                rngs = [np.random.default_rng([seed, 1 + n_steps, c]) for c in range(n_chains)]
                moved = parallel_map(
                    lambda c: chains.advance(rngs[c], state[c], BLOCK), range(n_chains)
                )
                white, place, value = map(
                    np.stack, zip(*(draws for _, draws in moved), strict=True)
                )
                model = proposals.numbers[place].astype(float)
                kept = Kept(white, model, value, np.ones_like(value))
                return Block(np.stack([after for after, _ in moved]), kept, BLOCK, 1)
            rng = np.random.default_rng([seed, 1 + n_steps])
            made = proposals.draw(rng, n_chains * BLOCK).in_chains(n_chains)
            state, kept = walk(state, made, rng.uniform(size=(n_chains, BLOCK)))
            return Block(state, kept, BLOCK, 1)

        def collect(state: Any, kept: Kept) -> Draws:
            return Draws(
                white=kept.coefficients,
                log_likelihood=kept.log_likelihood,
                acceptance=kept.acceptance,
                step_size=1.0,
                n_warmup=0,
                thin=1,
                hyperparameters={"model": kept.model},
                log_evidence=proposals.log_evidence,
                is_approximate=not exact,
            )

        return drive(
            start,
            advance,
            collect,
            Kept,
            n_samples=settings.n_samples,
            n_warmup=0,
            stop=settings.stop,
            progress=settings.progress,
            checkpoint=settings.checkpoint,
            fingerprint=(posterior.target, self, n_chains, seed, BLOCK),
        )
