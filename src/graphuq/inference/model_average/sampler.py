"""Draws from a finite mixture of priors: the evidence weighs the components.

Expectation propagation gives each component m a Gaussian q_m and the evidence Z_m. A proposal is a
component, with probability ``π_m Z_m / Σ π Z``, and a field from its q_m. Metropolis's rule for
independent proposals accepts or rejects it, so that the chains have the exact posterior of
component and field. The ratio of densities involves the labelled nodes only.

Where most proposals would be rejected, the field of each component is drawn exactly, by collapsed
Gibbs chains (`component_chains`). For two classes, importance sampling corrects the evidence of the
components. For more, their probabilities remain those of expectation propagation. With more than
100 labels only likely components are fitted, and their draws are nearly exact
(`component_gaussians`).

Labels that someone chose class by class tell nothing about class shares (`class_shares`).
"""

from typing import Any, ClassVar

import numpy as np

from graphuq.errors import require
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Approximation, Sampler
from graphuq.inference.draws import BLOCK, Draws
from graphuq.inference.driver import Block, drive
from graphuq.inference.model_average.class_shares import ClassShares
from graphuq.inference.model_average.component_gaussians import ComponentGaussians
from graphuq.inference.model_average.likely_components import MANY_LABELS
from graphuq.inference.model_average.proposals import Proposals
from graphuq.inference.model_average.walk import KeptMoves, Moves, walk
from graphuq.inference.settings import RunSettings, check_run
from graphuq.posterior.posterior import Posterior
from graphuq.utils.arrays import parallel_map
from graphuq.utils.part import part_field
from graphuq.utils.trees import tree_map

MIN_ACCEPTANCE = 0.8  # share of accepted proposals, from which none stays for long
MAX_ERROR = 0.1  # relative error of the components' evidence, up to which draws count as exact
FIELDS = ("auto", "exact", "gibbs")


class ModelAverage(Sampler):
    """Sample the component of a `Mixture` and the field, by independent proposals.

    It needs a `Probit` of fixed noise and a fixed number of classes. Each component costs one
    expectation propagation, of O(K J³) operations, up to 100 labels. With more, few components
    are fitted to all labels, in O(K r J²) operations for r eigenpairs.

    Parameters
    ----------
    fields : {"auto", "exact", "gibbs"}, default "auto"
        "exact": proposals of expectation propagation are accepted or rejected. "gibbs": fields are
        drawn by collapsed Gibbs chains of each component, and the probabilities of components are
        those of expectation propagation. "auto": the first if at least 80 % of the proposals would
        be accepted, else the second; for two classes importance sampling then corrects the
        evidence. With more than 100 labels fields are drawn by expectation propagation and moved
        by one sweep of collapsed Gibbs.
    """

    fields: str = part_field(default="auto", static=True)
    reference: Approximation | None = None
    default_warmup: ClassVar[int] = 0
    default_chains: ClassVar[int | None] = 4
    always_float64: ClassVar[bool] = True
    averages: ClassVar[bool] = True

    def __check_init__(self) -> None:
        require(
            isinstance(self.fields, str) and self.fields in FIELDS,
            "fields",
            f"{self.fields!r}",
            f"use one of {', '.join(FIELDS)}",
        )

    def refusal(self, posterior: Posterior) -> str | None:
        """Return why the posterior is no mixture that it can sample, or None."""
        likelihood = posterior.likelihood
        if not (posterior.prior.is_mixture and posterior.prior.learnt):
            return (
                f"{self} averages over the components of a Mixture, and {posterior.prior} is none; "
                "use model='average'"
            )
        if likelihood.learnt or likelihood.latent_noise_std is None:
            return f"{self} needs a Probit of fixed noise and classes, and not {likelihood}"
        if posterior.spectrum.tail_eigenvalue is not None:
            return f"{self} needs a spectrum without a tail; leave tail_eigenvalue out"
        return None

    def first_draws_are_quick(self, posterior: Posterior) -> bool:
        """Return whether draws are as quick as an approximation: with many labels, by default."""
        return self.fields == "auto" and len(posterior.labels) > MANY_LABELS

    def unused_arguments(self, given: Any) -> list[str]:
        """Return arguments without effect: where to start."""
        return [name for name in given if name == "start"]

    def run(
        self,
        posterior: Posterior,
        settings: RunSettings,
        reference: GaussianApproximation | None = None,
    ) -> Draws:
        """Return draws in the coefficients of the eigenvectors, and the component of each."""
        n_chains = self.n_chains(posterior) if settings.n_chains is None else settings.n_chains
        thin = 1 if settings.thin is None else settings.thin
        n_warmup, seed = check_run(
            posterior.field.dimension, settings.n_samples, n_chains, settings.n_warmup or 0, thin,
            settings.rng, settings.precision,
        )  # fmt: skip
        source, log_evidence, is_approximate = self._source(posterior, seed)

        def start_chain(rng: np.random.Generator) -> Any:
            state = source.start(rng)
            return source.propose(rng, state, 1)

        def start() -> Any:
            rngs = [np.random.default_rng([seed, 0, c]) for c in range(n_chains)]
            states, first = zip(*parallel_map(start_chain, rngs), strict=True)
            return _stacked(states), Moves(*(array[:, 0] for array in _stacked(first)))

        def advance(n_steps: int, state: Any) -> Block:
            states, current = state
            tries = source.n_tries * thin

            def propose(c: int) -> Any:
                rng = np.random.default_rng([seed, 1 + n_steps, c])
                own = tree_map(lambda array: array[c], states)
                return source.propose(rng, own, BLOCK * tries), rng.uniform(size=BLOCK * tries)

            made, uniform = zip(*parallel_map(propose, range(n_chains)), strict=True)
            states, proposed = (_stacked(parts) for parts in zip(*made, strict=True))
            current, kept = walk(current, proposed, np.stack(uniform))
            return Block((states, current), kept.every(tries), BLOCK, 1)

        def collect(state: Any, kept: KeptMoves) -> Draws:
            return Draws(
                white=kept.coefficients,
                log_likelihood=kept.log_likelihood,
                acceptance=kept.acceptance,
                step_size=1.0,
                n_warmup=n_warmup,
                thin=thin,
                hyperparameters={"component": kept.component},
                log_evidence=log_evidence,
                is_approximate=is_approximate,
            )

        return drive(
            start,
            advance,
            collect,
            KeptMoves,
            n_samples=settings.n_samples,
            n_warmup=n_warmup,
            stop=settings.stop,
            progress=settings.progress,
            checkpoint=settings.checkpoint,
            fingerprint=(posterior.target, self, n_chains, seed, BLOCK, thin, n_warmup),
        )

    def _source(self, posterior: Posterior, seed: int) -> tuple[Any, float, bool]:
        """Return what makes proposals, the log evidence, and whether they are approximate."""
        shares = ClassShares.of(posterior)
        if self.first_draws_are_quick(posterior):
            gaussians = ComponentGaussians(posterior, shares)
            return gaussians, gaussians.log_evidence, True
        proposals = Proposals(posterior, shares)
        log_evidence = proposals.log_evidence
        if self.fields == "exact" or (
            self.fields == "auto" and proposals.acceptance() >= MIN_ACCEPTANCE
        ):
            return proposals, log_evidence, False
        corrected = proposals.binary and self.fields == "auto"
        chains = proposals.chains(seed, corrected)
        return chains, chains.log_evidence, not corrected or chains.error > MAX_ERROR


def _stacked(parts: Any) -> Any:
    """Return trees of arrays as one, with an axis of chains in front."""
    return tree_map(lambda *arrays: np.stack(arrays), *parts)
