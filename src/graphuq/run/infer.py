"""Posterior × method → `Result`: the one place that checks that the parts fit."""

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from graphuq.errors import IncompatibleParts, TruncationWarning, require
from graphuq.inference import (
    Approximation,
    ExpectationPropagation,
    GaussianApproximation,
    IndependenceSampler,
    Kernel,
    MetropolisWithinGibbs,
    Point,
    ReversibleJump,
    Sampler,
    SequentialIndependence,
    TemperedHamiltonian,
)
from graphuq.inference.chains import run_chains
from graphuq.inference.draws import Draws
from graphuq.likelihoods import Probit, StepLikelihood
from graphuq.posterior.hierarchical import HierarchicalTarget
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import (
    ReferredTarget,
    Target,
    demand_reference,
    log_likelihoods,
    refer,
    with_noise_sampled,
)
from graphuq.results.diagnostics import diagnose, has_uncovered_mass, node_rows
from graphuq.results.result import Result, run_settings, warn_unless_converged
from graphuq.results.summaries import summarize
from graphuq.run.choose_sampler import automatic_sampler, default_chains, first_answer
from graphuq.utils.arrays import with_dtype
from graphuq.utils.deprecation import renamed_arguments
from graphuq.utils.progress import Progress, reporting

LIMIT_SHARE = 0.05  # of draws at the end of the spectrum, from which on it is said


@runtime_checkable
class Stop(Protocol):
    """A stop rule, such as `Converged` or `CumulativeMean`."""

    def __call__(self, posterior: Posterior, draws: Draws) -> str | None:
        """Reason to stop, in words, or None."""
        ...


@renamed_arguments(preview="on_first_result")
def infer(
    posterior: Posterior,
    method: Sampler | Approximation | None = None,
    *,
    n_samples: int = 1000,
    n_chains: int | None = None,
    n_warmup: int | None = None,
    thin: int | None = None,
    seed: int | np.random.Generator = 0,
    precision: str = "float64",
    stop: Stop | None = None,
    on_first_result: Callable[[Result], None] | None = None,
    progress: bool | Progress = False,
    checkpoint: str | Path | None = None,
) -> Result:
    """Explore a posterior and report on every node.

    Parameters
    ----------
    posterior : Posterior
    method : Sampler or Approximation, optional
        A sampler, such as ``gq.inference.PCN()``, by default the one that `automatic_sampler`
        chooses; or an approximation, such as ``gq.inference.ExpectationPropagation()``, which
        answers in milliseconds and needs none of the arguments below.
    n_samples : int, default 1000
        Kept draws a chain; the most there may be where ``stop`` is given.
    n_chains : int, optional
        By default 32, fewer from 1,000 labels on (4 at least): chains side by side cost little
        while they fit the processor's cache. Tempered Hamiltonian takes 4, reversible jump 8.
    n_warmup : int, optional
        Steps a chain before anything is kept, in which the step size is adapted; rounded up to
        whole blocks of ``50 thin``. With 0 the kernel's own step size is used. By default what
        the kernel usually needs: 2,000 for pCN, 300 for Hamiltonian, 50 for exact Hamiltonian.
    thin : int, optional
        Steps a kept draw; by default 20 for pCN, 1 for Hamiltonian. Memory grows with kept
        draws × labelled nodes or eigenpairs.
    seed : int or numpy.random.Generator, default 0
        Same seed, same machine, same result.
    precision : {"float64", "float32"}, default "float64"
        Of the chain; summaries are always computed in float64. On the posteriors of
        ``benchmarks/bench_pcn.py`` the two agree within Monte-Carlo error.
    stop : Converged, CumulativeMean or callable, optional
        Ends the run early.
    on_first_result : callable, optional
        Called with the result of expectation propagation, before sampling starts, where
        ``method`` is left out.
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
    gaussian = None
    if method is None:
        gaussian = first_answer(posterior)
        if gaussian is not None and on_first_result is not None:
            on_first_result(_report(posterior, ExpectationPropagation(), gaussian, seed))
        method = automatic_sampler(posterior, gaussian)
    if method.requires_gradient and not posterior.likelihood.has_gradient:
        raise IncompatibleParts(
            f"{method} needs a gradient and {posterior.likelihood} has none; use PCN()"
        )
    needs_step = isinstance(method, Sampler) and method.requires_step
    likelihood = posterior.likelihood
    if needs_step and not isinstance(likelihood, StepLikelihood | Probit):
        raise IncompatibleParts(
            f"{method} needs a likelihood of two levels, such as LevelSet, or Probit, "
            f"and {posterior.likelihood} is not; use Hamiltonian()"
        )
    if posterior.learnt:
        _check_learns(posterior, method)
    if isinstance(method, Approximation):
        return _report(posterior, method, method.fit(posterior.plain_target), seed)
    with reporting(progress) as report:
        draws = _draws(
            posterior,
            method,
            gaussian,
            n_samples=n_samples,
            n_chains=default_chains(posterior, method) if n_chains is None else n_chains,
            n_warmup=method.default_warmup if n_warmup is None else n_warmup,
            thin=thin,
            seed=seed,
            precision=precision,
            stop=stop,
            progress=report,
            checkpoint=checkpoint,
        )
    _demand_a_fit(posterior, draws)
    _warn_of_limit(posterior, draws)
    result = _report(
        posterior, method, draws, seed, "float64" if method.always_float64 else precision
    )
    warn_unless_converged(result.diagnostics)
    return result


def _draws(
    posterior: Posterior,
    method: Sampler,
    gaussian: GaussianApproximation | None,
    *,
    thin: int | None,
    stop: Stop | None,
    checkpoint: str | Path | None,
    **lengths: Any,
) -> Draws:
    """Draws in the posterior's coordinates."""
    run = {"thin": thin, "checkpoint": checkpoint, **lengths}
    if isinstance(method, ReversibleJump | TemperedHamiltonian):
        rule = None if stop is None else lambda draws: stop(posterior, draws)
        seen = posterior.series if isinstance(method, ReversibleJump) else posterior.target
        return method.run(seen, None, stop=rule, **run)
    if isinstance(method, IndependenceSampler):
        target, gaussian = posterior.target, _referred_to(posterior, method, gaussian)
        back = _with_fair_reference(posterior, _coefficients_of(target))
        rule = None if stop is None else lambda draws: stop(posterior, back(draws))
        return back(method.run(target, gaussian, stop=rule, **run))
    assert isinstance(method, Kernel)
    moved, back = _whitened(posterior, method, gaussian)
    back = _with_fair_reference(posterior, back)
    rule = None if stop is None else lambda draws: stop(posterior, back(draws))
    draws = run_chains(
        moved,
        dataclasses.replace(method, reference=None),
        thin=method.default_thin if thin is None else thin,
        stop=rule,
        checkpoint=checkpoint,
        **lengths,
    )
    return back(draws)


def _with_fair_reference(
    posterior: Posterior, back: Callable[[Draws], Draws]
) -> Callable[[Draws], Draws]:
    """Draws without their reference where it has mass that chains do not see.

    As a control variate it would then move every average.
    """
    unfair: list[bool] = []  # judged once

    def judged(draws: Draws) -> Draws:
        draws = back(draws)
        if draws.reference is None or posterior.likelihood.is_multiclass:
            return draws
        if not unfair:
            unfair.append(has_uncovered_mass(posterior, draws.reference))
        return dataclasses.replace(draws, reference=None, log_ratio=None) if unfair[0] else draws

    return judged


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


def _warn_of_limit(posterior: Posterior, draws: Draws) -> None:
    """Say so where a random length came to the end of the computed eigenpairs."""
    n_pairs, n_nodes = posterior.spectrum.n_columns, posterior.spectrum.n_nodes
    learnt = posterior.learnt and posterior.has_series
    if not learnt or "truncation" not in draws.hyperparameters or n_pairs == n_nodes:
        return
    if posterior.prior.learnt["truncation"].support[1] < n_pairs:
        return
    share = float((draws.hyperparameters["truncation"] > 0.95 * n_pairs).mean())
    if share > LIMIT_SHARE:
        warnings.warn(
            f"in {share:.0%} of the draws the series has nearly all of the {n_pairs} eigenvectors "
            "that were computed, so that this is the posterior given no more than that; compute "
            "more with n_eigenpairs, or set truncation",
            TruncationWarning,
            stacklevel=3,
        )


def _report(
    posterior: Posterior,
    method: Sampler | Approximation,
    answer: Draws | GaussianApproximation | Point,
    seed: int | np.random.Generator,
    precision: str = "float64",
) -> Result:
    link = posterior.likelihood.link
    summaries = summarize(answer, posterior.field, node_rows(posterior), link)
    return Result(
        **{f.name: getattr(summaries, f.name) for f in dataclasses.fields(summaries)},
        has_evidence=posterior.has_evidence,
        posterior=posterior,
        answer=answer,
        diagnostics=diagnose(answer, posterior, summaries.label_mcse),
        settings=run_settings(posterior, method, seed, precision),
    )


def _whitened(
    posterior: Posterior, method: Kernel, gaussian: GaussianApproximation | None
) -> tuple[Target | ReferredTarget | HierarchicalTarget, Callable[[Draws], Draws]]:
    """What the chains run on, and the map of their draws back to the posterior's coordinates."""
    target = posterior.target
    if isinstance(target, HierarchicalTarget):
        return target, _coefficients_of(target)
    noisy = with_noise_sampled(target) if method.requires_step else None
    if noisy is not None:
        return noisy, _without_noise(target)
    gaussian = _referred_to(posterior, method, gaussian)
    if gaussian is None:
        return target, lambda draws: draws
    referred, rotation = refer(target, gaussian.white_mean, gaussian.white_covariance)

    def back(draws: Draws) -> Draws:
        z = draws.white.astype(np.float64)
        white = np.asarray(referred.to_target(z))
        if rotation is not None:
            white = white @ rotation.T
        correction = 0.5 * ((white**2).sum(axis=-1) - (z**2).sum(axis=-1))
        return dataclasses.replace(
            draws,
            white=white,
            log_likelihood=draws.log_likelihood + correction,
            reference=gaussian,
            log_ratio=draws.log_likelihood.astype(np.float64),
        )

    return referred, back


def _referred_to(
    posterior: Posterior, method: Sampler, gaussian: GaussianApproximation | None
) -> GaussianApproximation | None:
    """The Gaussian of the method's reference, which may be at hand; None without one."""
    if method.reference is None or gaussian is not None:
        return gaussian if method.reference is not None else None
    if not isinstance(method, SequentialIndependence):
        demand_reference(posterior.plain_target)
    fitted = method.reference.fit(posterior.plain_target)
    if isinstance(fitted, Point):
        raise IncompatibleParts(
            f"{method.reference} gives a point, which no sampler can move about; use "
            "ExpectationPropagation() as reference"
        )
    return fitted


def _coefficients_of(target: Target | HierarchicalTarget) -> Callable[[Draws], Draws]:
    """Draws as the posterior has them: in the series' coefficients where something is learnt."""
    if isinstance(target, HierarchicalTarget):
        return lambda draws: _in_coefficients(draws, target)
    return lambda draws: draws


def _check_learns(posterior: Posterior, method: Sampler | Approximation) -> None:
    """Refuse what cannot learn hyperparameters."""
    if isinstance(method, ReversibleJump):
        return  # `Posterior.series` says what it does not learn
    names = ", ".join(posterior.learnt)
    if isinstance(method, Approximation):
        raise IncompatibleParts(
            f"{method} learns no hyperparameter, and {names} is a distribution; use "
            "MetropolisWithinGibbs, or a number that maximize_evidence chooses"
        )
    if method.reference is not None:
        raise IncompatibleParts(
            f"with {names} to learn there is no one Gaussian to move about; leave reference out"
        )
    between_walls = method.requires_step and not posterior.likelihood.is_step
    if between_walls or (method.requires_step and not isinstance(method, MetropolisWithinGibbs)):
        raise IncompatibleParts(
            f"{method} does not learn {names} of {posterior.likelihood}; use "
            "MetropolisWithinGibbs(Hamiltonian(), joint=True), or for a step likelihood "
            "MetropolisWithinGibbs(ExactHamiltonian())"
        )


def _in_coefficients(draws: Draws, target: HierarchicalTarget) -> Draws:
    """Draws of the series' coefficients, and of the hyperparameters."""
    with jax.enable_x64(True):
        white = draws.white.reshape(-1, draws.white.shape[-1]).astype(np.float64)
        coefficients, values, tail = _unwhitened(with_dtype(target, jnp.float64), white)
    shape = draws.white.shape[:2]
    return dataclasses.replace(
        draws,
        white=np.asarray(coefficients).reshape(*shape, -1),
        hyperparameters={
            name: np.asarray(value).reshape(*shape, *value.shape[1:])
            for name, value in values.items()
        },
        tail_std=np.asarray(tail).reshape(*shape, *tail.shape[1:]) if target.has_tail else None,
    )


@eqx.filter_jit
def _unwhitened(target: HierarchicalTarget, white: jax.Array | np.ndarray) -> Any:
    def parts(x: Any) -> Any:
        return target.coefficients(x), target.values(x), target.tail_std(x)

    return jax.vmap(parts)(jnp.asarray(white))


def _without_noise(target: Target) -> Callable[[Draws], Draws]:
    """A run's draws of the field alone, with their likelihood given it: of each draw found once."""
    known: list[np.ndarray] = []

    def back(draws: Draws) -> Draws:
        white = draws.white[..., : target.dimension]
        n_known = sum(values.shape[1] for values in known)
        if n_known < draws.n_samples:
            known.append(log_likelihoods(target, white[:, n_known:]))
        values = np.concatenate(known, axis=1)[:, : draws.n_samples]
        return dataclasses.replace(draws, white=white, log_likelihood=values)

    return back
