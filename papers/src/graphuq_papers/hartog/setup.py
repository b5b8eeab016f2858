"""Model and sampler of Hartog and van Zanten, and the runs of each experiment."""

import warnings
from typing import Any

import numpy as np

from graphuq import Converged, Distribution, Gamma, Posterior, Result, Spectrum, infer
from graphuq.errors import ImproperPriorWarning, NotConvergedWarning, TruncationWarning
from graphuq.inference import ReversibleJump
from graphuq.likelihoods import Probit
from graphuq.priors import RandomSeries
from graphuq_papers.base import Context

PAPERS = ReversibleJump(  # Algorithm 1 of the paper
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
    """Return the posterior of the paper's model: q = 1 and probit noise of unit deviation.

    Parameters
    ----------
    spectrum : Spectrum
    labelled, labels : numpy.ndarray, shape (J,)
        Labelled nodes, and their labels −1 or +1.
    rate : float or None
        ρ of the prior of k; if None, the default of `RandomSeries`.
    scale : Distribution
        Prior of the scale c.
    truncation : int or None, default None
        A fixed k; if None, k is sampled.
    """
    prior = RandomSeries(scale=scale, truncation=truncation, truncation_rate=rate)
    return Posterior(spectrum, prior, Probit(1.0), labelled, labels)


def improper() -> Distribution:
    """Return the improper prior ``p(c) ∝ 1/c``, which the paper recommends (§5)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImproperPriorWarning)
        return Gamma(0.0, 0.0)


PROPER = Gamma(1.0, 0.001)  # prior of c; the default of `RandomSeries`


def run(posterior: Posterior, method: ReversibleJump, **options: Any) -> Result:
    """Sample without warnings: the tables report R-hat and k."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        warnings.simplefilter("ignore", TruncationWarning)
        return infer(posterior, method, **options)


def converged(context: Context, posterior: Posterior) -> Result:
    """Run 16 chains of the default sampler, or 8 if quick, until R-hat < 1.01."""
    return run(
        posterior,
        ReversibleJump(),
        n_samples=context.pick(6_000, 20_000),
        n_chains=context.pick(8, 16),
        rng=context.seed,
        stop=Converged(label_mcse=None),
    )


def protocol(context: Context, posterior: Posterior) -> Result:
    """Run one chain of Algorithm 1 with its acceptance ratio corrected.

    The paper does not give the length of its chain; the length here is our choice.
    """
    return run(
        posterior,
        PAPERS,
        n_samples=context.pick(2_000, 10_000),
        n_chains=1,
        n_warmup=context.pick(500, 2_000),
        rng=context.seed,
    )
