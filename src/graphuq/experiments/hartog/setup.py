"""The paper's sampler, and converged ones."""

import warnings
from typing import Any

import numpy as np

from graphuq.distributions import Distribution, Gamma
from graphuq.errors import ImproperPriorWarning, NotConvergedWarning, TruncationWarning
from graphuq.experiments.base import Context
from graphuq.inference import ReversibleJump
from graphuq.likelihoods import Probit
from graphuq.posterior.posterior import Posterior
from graphuq.priors import RandomSeries
from graphuq.results.result import Result
from graphuq.run.infer import infer
from graphuq.run.stopping import Converged
from graphuq.spectrum import Spectrum

PAPERS = ReversibleJump(
    proposal="binomial", form="plain", interweave=False, jump=False, whitened=False
)


def series(
    spectrum: Spectrum,
    labelled: np.ndarray,
    labels: np.ndarray,
    rate: float | None,
    scale: Distribution,
    truncation: int | None = None,
) -> Posterior:
    """The paper's model: q = 1, unit noise."""
    prior = RandomSeries(scale=scale, truncation=truncation, truncation_rate=rate)
    return Posterior(spectrum, prior, Probit(1.0), labelled, labels)


def improper() -> Distribution:
    """``p(c) ∝ 1/c``, which the paper recommends (§5)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImproperPriorWarning)
        return Gamma(0.0, 0.0)


PROPER = Gamma(1.0, 0.001)  # the library's default


def run(posterior: Posterior, method: ReversibleJump, **options: Any) -> Result:
    """Whether it converged, and whether it wanted more eigenvectors, is in the tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        warnings.simplefilter("ignore", TruncationWarning)
        return infer(posterior, method, **options)


def converged(context: Context, posterior: Posterior) -> Result:
    """Default chains until R-hat < 1.01."""
    return run(
        posterior,
        ReversibleJump(),
        n_samples=context.pick(6_000, 20_000),
        n_chains=16,
        seed=context.seed,
        stop=Converged(label_mcse=None),
    )


def protocol(context: Context, posterior: Posterior) -> Result:
    """One chain of Algorithm 1, its ratio corrected; its length is ours, the paper gives none."""
    return run(
        posterior,
        PAPERS,
        n_samples=context.pick(2_000, 10_000),
        n_chains=1,
        n_warmup=context.pick(500, 2_000),
        seed=context.seed,
    )
