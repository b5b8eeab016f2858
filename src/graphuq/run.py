"""Posterior × method → `Result`: the one place that checks that the parts fit."""

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from graphuq.diagnostics import diagnose, node_positions
from graphuq.errors import IncompatibleParts, require
from graphuq.inference import Approximation, Gaussian, Kernel
from graphuq.inference.chains import Draws, run_chains
from graphuq.posterior import Posterior, ReferredTarget, Target, refer
from graphuq.progress import Progress, progress_bar
from graphuq.result import Result, run_settings, warn_unless_converged
from graphuq.summaries import Rows, summarize


@runtime_checkable
class Stop(Protocol):
    """A stop rule, such as `Converged` or `CumulativeMean`."""

    def __call__(self, posterior: Posterior, draws: Draws) -> str | None:
        """Reason to stop, in words, or None."""
        ...


def infer(
    posterior: Posterior,
    method: Kernel | Approximation,
    *,
    n_samples: int = 1000,
    n_chains: int = 8,
    n_warmup: int = 2000,
    thin: int = 20,
    seed: int | np.random.Generator = 0,
    precision: str = "float64",
    stop: Stop | None = None,
    progress: bool | Progress = False,
    checkpoint: str | Path | None = None,
) -> Result:
    """Explore a posterior and report on every node.

    Parameters
    ----------
    posterior : Posterior
    method : Kernel or Approximation
        A sampler, such as ``gq.inference.PCN()``; or an approximation, such as
        ``gq.inference.ExpectationPropagation()``, which answers in milliseconds and needs none
        of the arguments below.
    n_samples : int, default 1000
        Kept draws a chain; the most there may be where ``stop`` is given.
    n_chains : int, default 8
    n_warmup : int, default 2000
        Steps a chain before anything is kept, in which the step size is adapted; rounded up to
        whole blocks of ``50 thin``. With 0 the kernel's own step size is used.
    thin : int, default 20
        Steps a kept draw. Memory grows with kept draws × labelled nodes or eigenpairs.
    seed : int or numpy.random.Generator, default 0
        Same seed, same machine, same result.
    precision : {"float64", "float32"}, default "float64"
        Of the chain; summaries are always computed in float64. On the posteriors of
        ``benchmarks/bench_pcn.py`` the two agree within Monte-Carlo error.
    stop : Converged, CumulativeMean or callable, optional
        Ends the run early.
    progress : bool or callable, default False
        True: a bar on standard error. A callable is called with phase, steps done, steps in
        all and acceptance.
    checkpoint : path, optional
        An interrupted run with the same arguments goes on from there to the same result.

    Returns
    -------
    Result

    Warns
    -----
    NotConvergedWarning
        If the chains have not converged.

    Raises
    ------
    IncompatibleParts
        If the method needs something that the likelihood lacks.
    InvalidInput, StorageError
        See `graphuq.inference.chains.run_chains`.
    """
    if method.requires_gradient and not posterior.likelihood.smooth:
        raise IncompatibleParts(
            f"{method} needs a gradient and {posterior.likelihood} has none; use PCN()"
        )
    if isinstance(method, Kernel) and method.requires_step and not posterior.likelihood.step:
        raise IncompatibleParts(
            f"{method} needs a likelihood of two levels, such as LevelSet, and "
            f"{posterior.likelihood} is not; use Hamiltonian()"
        )
    if isinstance(method, Approximation):
        return _report(posterior, method, method.fit(posterior.target), seed, "float64")
    target, back = _whitened(posterior, method.reference)
    with _reporting(progress) as report:
        draws = run_chains(
            target,
            dataclasses.replace(method, reference=None),
            n_samples=n_samples,
            n_chains=n_chains,
            n_warmup=n_warmup,
            thin=thin,
            seed=seed,
            precision=precision,
            stop=None if stop is None else lambda draws: stop(posterior, back(draws)),
            progress=report,
            checkpoint=checkpoint,
        )
    _demand_a_fit(posterior, draws)
    result = _report(posterior, method, back(draws), seed, precision)
    warn_unless_converged(result.diagnostics)
    return result


def _demand_a_fit(posterior: Posterior, draws: Draws) -> None:
    """Refuse draws of probability zero: no sampler found a field that fits all labels."""
    lost = int((draws.log_likelihood == -np.inf).sum())
    require(
        lost == 0,
        "likelihood",
        f"{posterior.likelihood} gives the labels probability zero at {lost} of "
        f"{draws.log_likelihood.size} draws",
        "use one that allows wrong labels, more eigenpairs, or longer warm-up with "
        "ExactHamiltonian()",
    )


def _report(
    posterior: Posterior,
    method: Kernel | Approximation,
    answer: Draws | Gaussian,
    seed: int | np.random.Generator,
    precision: str,
) -> Result:
    spectrum = posterior.spectrum
    rows = Rows(spectrum.eigenvectors, spectrum.node_scale, node_positions(posterior))
    summaries = summarize(answer, posterior.field, rows)
    return Result(
        **{f.name: getattr(summaries, f.name) for f in dataclasses.fields(summaries)},
        has_evidence=posterior.has_evidence,
        posterior=posterior,
        answer=answer,
        diagnostics=diagnose(answer, posterior, summaries.label_mcse),
        settings=run_settings(posterior, method, seed, precision),
    )


def _whitened(
    posterior: Posterior, reference: Approximation | None
) -> tuple[Target | ReferredTarget, Callable[[Draws], Draws]]:
    """What the chains run on, and the map of their draws back to the posterior's coordinates."""
    if reference is None:
        return posterior.target, lambda draws: draws
    gaussian = reference.fit(posterior.target)
    referred, rotation = refer(posterior.target, gaussian.seen_mean, gaussian.seen_covariance)

    def back(draws: Draws) -> Draws:
        z = draws.white.astype(np.float64)
        white = np.asarray(referred.to_target(z)) @ rotation.T
        correction = 0.5 * ((white**2).sum(axis=-1) - (z**2).sum(axis=-1))
        return dataclasses.replace(
            draws, white=white, log_likelihood=draws.log_likelihood + correction
        )

    return referred, back


def _reporting(progress: bool | Progress) -> AbstractContextManager[Progress | None]:
    if isinstance(progress, bool):
        return progress_bar() if progress else nullcontext(None)
    return nullcontext(progress)
