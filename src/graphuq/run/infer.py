"""One posterior and one method make one `Result`: check, choose, run, summarise."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.inference import (
    MCMC,
    Approximation,
    EachComponent,
    ExpectationPropagation,
    GaussianApproximation,
    GaussianMixture,
    ModelAverage,
    Point,
    Sampler,
)
from graphuq.inference.draws import FIRST_CHECK, Draws, StopRule
from graphuq.inference.model_average import screened_for_two
from graphuq.inference.settings import RunSettings, n_draws_that_fit
from graphuq.posterior.posterior import Posterior
from graphuq.results.diagnostics import diagnose, node_rows, warn_unless_converged
from graphuq.results.reported import reported_at_nodes
from graphuq.results.result import Result
from graphuq.results.settings import run_settings
from graphuq.results.summaries import summarize
from graphuq.run.choose_sampler import (
    AVERAGE_TOLERANCE,
    MANY_TOLERANCE,
    choose_sampler,
    first_approximation,
    needs_no_draws,
)
from graphuq.run.stopping import default_rule
from graphuq.run.words import inference_from
from graphuq.utils.checks import check_seed
from graphuq.utils.compilation_cache import use_compilation_cache
from graphuq.utils.concurrency import require_no_fork
from graphuq.utils.progress import Progress, reporting

FIRST_DRAWS = 200  # draws per chain of a first result that is sampled


@runtime_checkable
class Stop(Protocol):
    """A stop rule, such as `Converged` or `CumulativeMean`."""

    def __call__(self, posterior: Posterior, draws: Draws) -> str | None:
        """Return the reason to stop, in words, or None to go on."""
        ...


def infer(
    posterior: Posterior,
    method: str | Sampler | Approximation | MCMC | None = None,
    *,
    n_samples: int | None = None,
    n_chains: int | None = None,
    n_warmup: int | None = None,
    thin: int | None = None,
    rng: int | np.random.Generator = 0,
    precision: str | None = None,
    stop: Stop | str | None = None,
    on_first_result: Callable[[Result], None] | None = None,
    progress: bool | Progress = False,
    checkpoint: str | Path | None = None,
    start: GaussianApproximation | None = None,
) -> Result:
    """Explore a posterior and report on every node.

    Parameters
    ----------
    posterior : Posterior
    method : str, Sampler, Approximation or MCMC, optional
        A sampler such as ``gq.inference.PCN()``, an approximation such as
        ``gq.inference.ExpectationPropagation()``, or its name as in `GraphClassifier`: "pcn",
        "hamiltonian", "exact-hamiltonian", "reflective-hamiltonian", "tempered-hamiltonian",
        "elliptical-slice", "independence", "sequential-independence", "expectation-propagation",
        "laplace", "map", "model-average". By default, or "auto", the sampler that
        `graphuq.run.choose_sampler.RULES` gives. Without settings of sampling it is expectation
        propagation for an average of several classes, and for one posterior of several classes with
        more than 1,000 labels, or more than 50 classes and 12,000 classes × labels. An
        approximation answers in milliseconds and takes ``rng`` alone of the arguments below. `MCMC`
        is a sampler with its settings, in place of the arguments ``n_samples`` to ``checkpoint``.
    n_samples : int, optional
        Kept draws per chain, all of which are drawn; with ``stop``, the largest number of them,
        4,000 by default. Without either, sampling stops as that of `GraphClassifier`: at 4,000
        draws a chain, or once R-hat is below 1.01, effective sample sizes are above 400, and 99 %
        of the nodes have probabilities with a Monte-Carlo error below 0.02, or 0.01 with up to
        two labels a class and 20 in all.
    n_chains : int, optional
        By default 32, and from 1,000 labels on fewer, down to 4: extra chains are cheap while
        all states fit in the CPU cache. Tempered Hamiltonian takes 4, reversible jump 8.
    n_warmup : int, optional
        Steps per chain before draws are kept, in which the step size is adapted. Rounded up to
        whole blocks of ``50 thin``. With 0 the kernel's own step size is used. The default
        depends on the sampler: 2,000 for pCN, 300 for Hamiltonian, 50 for exact Hamiltonian.
    thin : int, optional
        Steps per kept draw; by default 20 for pCN, 1 for Hamiltonian. Memory grows with kept
        draws × (labelled nodes or eigenpairs).
    rng : int or numpy.random.Generator, default 0
        The same seed on the same machine gives the same result.
    precision : {"float64", "float32"}, default "float64"
        Floating-point type of the chains. Summaries are always computed in float64. On the
        posteriors of ``benchmarks/bench_pcn.py`` the two agree within Monte-Carlo error.
    stop : "converged", Converged, CumulativeMean or callable, optional
        Rule that ends the run early; see `graphuq.inference.MCMC`.
    on_first_result : callable, optional
        Called once with a first result: that of expectation propagation, if it converges, before
        sampling starts, or the first 200 draws a chain of `CollapsedGibbs`, and of `ModelAverage`
        with more than 100 labels, unless the run ends with them. Only without ``method``, and
        not if there are no draws.
    progress : bool or callable, default False
        True shows a bar on standard error. A callable is called with phase, steps done, total
        number of steps and acceptance.
    checkpoint : path, optional
        File from which an interrupted run with the same arguments resumes, to the same result; see
        `graphuq.inference.MCMC`.
    start : GaussianApproximation, optional
        ``answer`` of a result with the first of these labels, which saves `ExpectationPropagation`
        some sweeps.

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
        If the method refuses the posterior, for instance because it needs a gradient.
    InvalidInput
        If an argument is out of range, or has no effect on this method.
    StorageError
        If the checkpoint cannot be used; see `graphuq.inference.chains.run_chains`.

    Examples
    --------
    >>> import graphuq as gq
    >>> data = gq.datasets.two_moons(100)
    >>> spectrum = gq.laplacian_spectrum(gq.graphs.knn_graph(data.features), n_eigenpairs=20)
    >>> posterior = gq.Posterior(spectrum, gq.priors.Matern(), gq.likelihoods.Probit(),
    ...                          labelled=[0, 99], labels=[-1, 1])
    >>> gq.infer(posterior, "expectation-propagation").probabilities.shape
    (100, 2)
    """
    require_no_fork()
    if not isinstance(posterior, Posterior):
        raise InvalidInput(
            "posterior",
            f"a {type(posterior).__name__}",
            "give gq.Posterior(spectrum, prior, likelihood, labelled, labels)",
        )
    check_seed("rng", rng)
    use_compilation_cache()
    given = {
        "n_samples": n_samples,
        "n_chains": n_chains,
        "n_warmup": n_warmup,
        "thin": thin,
        "precision": precision,
        "stop": stop,
        "on_first_result": on_first_result,
        "checkpoint": checkpoint,
    }
    given = {name: value for name, value in given.items() if value is not None}
    sampling: Any = inference_from(method, "method", given)
    first, chosen = None, sampling
    if isinstance(sampling, MCMC):
        if n_samples is not None and stop is None:
            sampling = dataclasses.replace(sampling, stop=None)
        chosen, given = sampling.method, {"checkpoint": sampling.checkpoint}
        if start is None and not sampling.asks_for_draws and needs_no_draws(posterior):
            found = _without_draws(posterior, rng, progress)
            if found is not None:
                return found
        if sampling.is_auto:
            chosen, first = _default_method(posterior, sampling.on_first_result, rng)
    if posterior.is_weighted and not chosen.averages:
        chosen = EachComponent(chosen)
    _check_used(chosen, given | {"progress": progress or None, "start": start})
    reason = chosen.refusal(posterior)
    if reason is not None:
        raise IncompatibleParts(reason)
    with reporting(progress) as report:
        settings = _run_settings(posterior, chosen, sampling, rng, report)
        answer: Any = chosen.run(posterior, settings, first if start is None else start)
    if first is not None:
        answer = answer.with_log_evidence(first.log_evidence)
    chosen.check(posterior, answer)
    result = _result(posterior, chosen, answer, rng, settings.precision)
    warn_unless_converged(result.diagnostics)
    return result


def _without_draws(
    posterior: Posterior, rng: int | np.random.Generator, progress: bool | Progress
) -> Result | None:
    """Return the answer of expectation propagation; None if a component of an average has none."""
    method: Any = ExpectationPropagation(tolerance=MANY_TOLERANCE)
    if posterior.is_weighted:
        method = EachComponent(ExpectationPropagation(tolerance=AVERAGE_TOLERANCE))
    with reporting(progress) as report:
        try:
            answer = method.run(posterior, RunSettings(rng=rng, progress=report))
        except (InvalidInput, IncompatibleParts):
            if posterior.is_weighted and ModelAverage().refusal(posterior) is None:
                return None
            raise  # draws are no way out
    return _result(posterior, method, answer, rng)


def _check_used(chosen: Any, given: dict[str, Any]) -> None:
    """Raise `InvalidInput` for arguments that have no effect on a method."""
    unused = chosen.unused_arguments([name for name, value in given.items() if value is not None])
    require(
        not unused,
        ", ".join(unused),
        f"given beside {chosen}, which draws no samples or does not use it",
        "leave it out, or name a method that does",
    )


def _run_settings(
    posterior: Posterior,
    chosen: Any,
    sampling: MCMC | Approximation,
    rng: int | np.random.Generator,
    progress: Progress | None,
) -> RunSettings:
    """Return the settings of a run; an approximation needs few of them."""
    if isinstance(sampling, Approximation):
        return RunSettings(rng=rng, progress=progress)
    stop = default_rule(posterior) if sampling.stop == "converged" else sampling.stop
    n_samples = sampling.n_samples
    if stop is not None and isinstance(chosen, Sampler):  # it ends the run long before, as a rule
        n_chains = sampling.n_chains or chosen.n_chains(posterior)
        n_fit = n_draws_that_fit(n_chains, posterior.field.dimension)
        n_samples = min(n_samples, max(n_fit, FIRST_CHECK))
    return RunSettings(
        n_samples=n_samples,
        n_chains=sampling.n_chains,
        n_warmup=sampling.n_warmup,
        thin=sampling.thin,
        rng=rng,
        precision=sampling.precision,
        stop=_stop_rule(posterior, chosen, stop, sampling.on_first_result, rng),
        progress=progress,
        checkpoint=sampling.checkpoint,
    )


def _default_method(
    posterior: Posterior,
    on_first_result: Callable[[Result], None] | None,
    rng: int | np.random.Generator,
) -> tuple[Sampler, GaussianApproximation | None]:
    """Return the sampler that the rules choose, and the first approximation, which is reported."""
    first = first_approximation(posterior)
    chosen = choose_sampler(posterior, first)
    if on_first_result is not None and not chosen.first_draws_are_quick(posterior):
        if first is not None:
            on_first_result(_result(posterior, ExpectationPropagation(), first, rng))
        elif posterior.is_weighted and chosen.refusal(posterior) is None:
            average = ModelAverage(fields="gibbs")
            with screened_for_two(posterior):
                draws = average.run(posterior, RunSettings(n_samples=FIRST_DRAWS))
            on_first_result(_result(posterior, average, draws, 0))
    return chosen, first


def _stop_rule(
    posterior: Posterior,
    chosen: Sampler | Approximation | EachComponent,
    stop: Stop | None,
    on_first_result: Callable[[Result], None] | None,
    rng: int | np.random.Generator,
) -> StopRule | None:
    """Return the rule for draws, which also reports the first of them if no first result was.

    It does so for methods whose first draws are nearly as quick as an approximation.
    """
    is_quick = isinstance(chosen, Sampler) and chosen.first_draws_are_quick(posterior)
    waiting = [on_first_result] if on_first_result and is_quick else []
    if stop is None and not waiting:
        return None

    def report(draws: Draws) -> None:
        if waiting and draws.n_samples >= FIRST_DRAWS:
            waiting.pop()(_result(posterior, chosen, draws, rng))

    return RuleOf(posterior, stop, report)


class RuleOf:
    """A stop rule for the draws of one posterior; `of` is the same rule for another.

    Parameters
    ----------
    posterior : Posterior
    stop : callable or None
    report : callable, optional
        Called with the draws unless the run ends.
    """

    def __init__(
        self, posterior: Posterior, stop: Stop | None, report: Callable[[Draws], None] | None = None
    ) -> None:
        self.posterior, self.stop, self.report = posterior, stop, report

    def __call__(self, draws: Draws) -> str | None:
        """Return the reason to stop, or None."""
        reason = None if self.stop is None else self.stop(self.posterior, draws)
        if reason is None and self.report is not None:
            self.report(draws)
        return reason

    def of(self, posterior: Posterior) -> "RuleOf":
        """Return the rule for the draws of another posterior."""
        return RuleOf(posterior, self.stop)


def _result(
    posterior: Posterior,
    method: Sampler | Approximation | EachComponent,
    answer: Draws | GaussianApproximation | GaussianMixture | Point,
    rng: int | np.random.Generator,
    precision: str = "float64",
) -> Result:
    """Return the summaries, diagnostics and settings of an answer."""
    link = posterior.likelihood.link
    rows = node_rows(posterior)
    at_nodes = summarize(answer, posterior.field, rows, link)
    summaries = reported_at_nodes(at_nodes, rows, posterior, answer)
    if not np.isfinite(summaries.label_mean).all():
        raise IncompatibleParts(
            f"label means under {posterior.prior} and {posterior.likelihood} are not finite "
            f"numbers with {method}; use parameters of moderate size, or precision='float64'"
        )
    if method.always_float64:
        precision = "float64"
    return Result(
        probabilities=summaries.probabilities,
        mcse=summaries.mcse,
        latent_mean=summaries.latent_mean,
        latent_std=summaries.latent_std,
        has_evidence=posterior.has_evidence,
        posterior=posterior,
        answer=answer,
        diagnostics=diagnose(answer, posterior, at_nodes.label_mcse),
        settings=run_settings(posterior, method, rng, precision),
    )
