"""Gibbs sampler of a probit's noisy values, with the field integrated out."""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from graphuq.errors import require
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Approximation, Sampler
from graphuq.inference.collapsed_gibbs.noisy_values import NoisyValues
from graphuq.inference.collapsed_gibbs.runs import run_gibbs
from graphuq.inference.draws import BLOCK, Draws
from graphuq.inference.settings import RunSettings
from graphuq.posterior.posterior import Posterior
from graphuq.utils.checks import check_fields

MAX_LABELS = 4_000  # a matrix J × J is kept, and a sweep takes K J² operations


class CollapsedGibbs(Sampler):
    r"""Draw the noisy values behind the labels one at a time, with the field integrated out.

    A label of a probit is the sign of ``v = u + γ ε``, or the largest of K such values (Albert &
    Chib 1993). Without the field, each class has ``v ~ N(0, F Fᵀ + γ² I)`` at the labelled nodes,
    and the labels are linear inequalities in v. A sweep draws every value given all others, a
    normal number on one side of a limit (Holmes & Held 2006, §2.1). It also draws the coordinate
    of v along each smooth eigenvector of the covariance, so that neighbouring values move together
    (Liu & Sabatti 2000); with many labels, of the ten of largest variance several times. Of the
    mean over classes the labels say nothing, so it is drawn from its prior. Given v, the field is
    Gaussian, and each kept draw of v gives one of it.

    Nothing is rejected, and nothing is tuned. A sweep takes O(K J²) operations for J labels.

    It needs a `Probit` whose noise and number of classes are fixed, of 2 or more classes, or a
    `SoftProbit`: there a value may change the class of its label, with the odds of the soft label.
    """

    reference: Approximation | None = None
    default_warmup: ClassVar[int] = 200
    default_thin: ClassVar[int] = 2
    default_chains: ClassVar[int | None] = 4
    always_float64: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_fields(self)
        require(self.reference is None, "reference", f"{self.reference}", "leave it out")

    def first_draws_are_quick(self, posterior: Posterior) -> bool:
        """Return True: there is nothing to fit before the first sweep."""
        return True

    def refusal(self, posterior: Posterior) -> str | None:
        """Return why the posterior is no probit that it can sample, or None."""
        likelihood = posterior.likelihood
        is_probit = likelihood.latent_noise_std is not None or likelihood.has_soft_labels
        if not is_probit or likelihood.learnt or posterior.learnt:
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
        model = NoisyValues.of(posterior)

        def advance(rng: np.random.Generator, state: np.ndarray, thin: int) -> Any:
            made = model.run(rng, state, BLOCK, thin)
            white = model.white_given(rng, made)
            value = model.log_likelihood(model.fields(white))
            return made[-1], Kept(white.reshape(BLOCK, -1), value, np.ones_like(value))

        parts = self.default_thin, model.start, advance, Kept
        return run_gibbs(self, posterior, settings, *parts)


class Kept(NamedTuple):
    """What is kept, for each chain and draw."""

    white: Float[np.ndarray, "C S n"]
    log_likelihood: Float[np.ndarray, "C S"]
    acceptance: Float[np.ndarray, "C S"]
