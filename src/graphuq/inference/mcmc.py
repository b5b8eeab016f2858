"""Settings of a sampler: how long it runs, with how many chains, and when it stops."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphuq.errors import require
from graphuq.inference.base import Approximation, Sampler
from graphuq.inference.settings import check_lengths
from graphuq.utils.expressions import is_expression
from graphuq.utils.shown import shown_call

MAX_SAMPLES = 4_000  # kept draws a chain, after which sampling stops by default in any case


@dataclasses.dataclass(frozen=True, repr=False)
class MCMC:
    """Sampling, with its settings: a value for ``inference=`` of an estimator, and for `infer`.

    ``inference="pcn"`` is ``inference=MCMC("pcn")``. The value is immutable; ``set_params`` of an
    estimator changes one setting by a nested name, such as ``inference__n_samples``.

    Parameters
    ----------
    method : str or Sampler, default "auto"
        A sampler, its name, or text as in Python; "auto" is the method that `graphuq.infer`
        chooses: a sampler if any other setting of sampling is given.
    n_samples : int, default 4000
        Kept draws of each chain, or the largest number of them where a rule stops the chains.
    n_chains : int, optional
        Number of chains, by default 32, and with 1,000 labels or more fewer, down to 4. See
        `graphuq.infer`.
    n_warmup : int, optional
        Steps of each chain before draws are kept; the default depends on the sampler.
    thin : int, optional
        Steps for each kept draw; the default depends on the sampler.
    stop : "converged", Converged, callable or None, default "converged"
        Rule that ends the run early, or none: all draws are made. Also text such as
        ``"Converged(ess=1000)"``. "converged": R-hat is below 1.01,
        effective sample sizes are above 400, and 99 % of the nodes have probabilities with a
        Monte-Carlo error below 0.02, or 0.01 with up to two labels a class and 20 in all.
        None: all ``n_samples`` are made.
    precision : {"float64", "float32"}, default "float64"
        Precision of the chains; everything else is computed in float64. Label means of the two
        agree within their Monte-Carlo error (``benchmarks/bench_pcn.py``).
    on_first_result : callable, optional
        Called once with the first, approximate `Result` before sampling ends; only with
        ``method="auto"``. See `graphuq.infer`.
    checkpoint : path, optional
        File from which an interrupted run with the same settings resumes, to the same result. A
        sampler that serves each component of an average by itself writes a file for each, such as
        run.3.npz for run.npz.

    Raises
    ------
    InvalidInput
        If a number is out of range, or ``method`` draws no samples.

    Examples
    --------
    >>> import graphuq as gq
    >>> sampling = gq.inference.MCMC("pcn", n_samples=500)
    >>> sampling
    MCMC('pcn', n_samples=500)
    >>> gq.GraphClassifier(inference=sampling).set_params(inference__thin=10).inference
    MCMC('pcn', n_samples=500, thin=10)
    """

    method: Any = "auto"  # any value is accepted here, and checked by __post_init__
    n_samples: Any = MAX_SAMPLES
    n_chains: Any = None
    n_warmup: Any = None
    thin: Any = None
    stop: Any = "converged"
    precision: Any = "float64"
    on_first_result: Callable[[Any], None] | None = None
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        check_lengths(self.n_samples, self.n_chains, self.n_warmup, self.thin, self.precision)
        require(
            not isinstance(self.method, Approximation),
            "method",
            f"{self.method!r} draws no samples",
            "give it as it is, without MCMC, or name a sampler",
        )
        require(
            self.stop is None
            or callable(self.stop)
            or self.stop == "converged"
            or is_expression(self.stop),
            "stop",
            f"{self.stop!r} is unknown",
            "use 'converged', a rule such as 'Converged(ess=1000)', or None",
        )
        require(
            self.on_first_result is None or self.is_auto,
            "on_first_result",
            f"given beside method={self.method!r}",
            "leave one out: only 'auto' has a first result",
        )

    @property
    def is_auto(self) -> bool:
        """Whether the sampler is chosen for the posterior."""
        return self.method is None or (isinstance(self.method, str) and self.method == "auto")

    @property
    def asks_for_draws(self) -> bool:
        """Whether a method is named, or a setting that only draws have."""
        usual = MCMC(on_first_result=self.on_first_result, checkpoint=self.checkpoint)
        return not self.is_auto or dataclasses.replace(self, method="auto") != usual

    def of_sampler(self, sampler: Sampler) -> "MCMC":
        """Return the settings for a sampler, which reports no first result."""
        return dataclasses.replace(self, method=sampler, on_first_result=None)

    def of_a_further_run(self) -> "MCMC":
        """Return the settings without what belongs to one run: the callback and the checkpoint."""
        return dataclasses.replace(self, on_first_result=None, checkpoint=None)

    def stored_fields(self) -> dict[str, Any]:
        """Return what a file holds: the settings of any run, without functions of the user's."""
        names = [field.name for field in dataclasses.fields(self)]
        left_out = ["on_first_result", "checkpoint"]
        if callable(self.stop) and not dataclasses.is_dataclass(self.stop):
            left_out += ["stop"]
        return {name: getattr(self, name) for name in names if name not in left_out}

    def __repr__(self) -> str:
        return shown_call(self, positional=1)
