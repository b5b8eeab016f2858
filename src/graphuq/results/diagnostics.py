"""Convergence of chains and accuracy of approximations, with a verdict in words."""

import dataclasses
from collections.abc import Callable
from functools import partial, singledispatch
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from graphuq.errors import IncompatibleParts, NotConvergedWarning
from graphuq.inference import GaussianApproximation, GaussianMixture, Point
from graphuq.inference.draws import Draws
from graphuq.posterior.posterior import Posterior
from graphuq.results.approximation_error import (
    CLOSE,
    ApproximationError,
    approximation_error,
    mixture_error,
)
from graphuq.results.convergence import convergence_of
from graphuq.results.summaries import Rows, conditional_moments
from graphuq.utils.concurrency import cached_property
from graphuq.utils.user_warnings import warn_user

RHAT_BOUND = 1.01  # Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021
ESS_BOUND = (
    400  # Vehtari et al. 2021: with fewer, estimates of R-hat and of the error are unreliable
)
SKETCH_NODES = 50
ERROR_NODES = 200  # nodes at which errors of an approximation are estimated
SAMPLE = "Sample to be sure: inference=MCMC(n_chains=8)."


@dataclasses.dataclass(frozen=True)
class Diagnostics:
    """Convergence diagnostics of a sampled result.

    Attributes
    ----------
    rhat : float
        Largest rank-normalised split R-hat over the functionals.
    ess_bulk, ess_tail : float
        Smallest effective sample sizes over the functionals.
    label_mcse : float
        Largest Monte-Carlo standard error of a label mean over all nodes.
    acceptance, step_size : float
        Mean acceptance probability after warm-up, and the step size.
    n_chains, n_samples, n_warmup, thin : int
        Length of the run: chains, kept draws per chain, warm-up steps, steps per kept draw.
    seconds : float
        Wall time of sampling in seconds, compilation included.
    stopped_by : str
        Why sampling ended.
    is_approximate : bool
        Whether the draws are those of an approximation, whose distance from the posterior is not
        measured. ``acceptance`` does not tell it.
    """

    rhat: float
    ess_bulk: float
    ess_tail: float
    label_mcse: float
    acceptance: float
    step_size: float
    n_chains: int
    n_samples: int
    n_warmup: int
    thin: int
    seconds: float
    stopped_by: str
    is_approximate: bool = False

    @property
    def converged(self) -> bool:
        """Whether R-hat is below 1.01 and both effective sample sizes are at least 400."""
        return bool(
            self.rhat < RHAT_BOUND and self.ess_bulk >= ESS_BOUND and self.ess_tail >= ESS_BOUND
        )

    def to_plain(self) -> dict[str, Any]:
        """Return the numbers by name, from which `diagnostics_from` makes an equal one."""
        return dataclasses.asdict(self)

    @property
    def state(self) -> str:
        """The verdict in a word or two."""
        good = "approximation" if self.is_approximate else "converged"
        return good if self.converged else "NOT converged"

    @property
    def verdict(self) -> str:
        """The convergence verdict, in a sentence or two."""
        numbers = (
            f"largest R-hat {self.rhat:.3f}, smallest effective sample size "
            f"{self.ess_bulk:.0f} (bulk) and {self.ess_tail:.0f} (tail), largest Monte-Carlo "
            f"error of a label mean {self.label_mcse:.3f}"
        )
        if self.converged and self.is_approximate:
            return (
                f"Enough draws of an approximation: {numbers}. Label means may be wrong by some "
                "hundredths."
            )
        if self.converged:
            return f"The chains have converged: {numbers}."
        failures = []
        if not self.rhat < RHAT_BOUND:
            failures.append(f"R-hat is not below {RHAT_BOUND}")
        if not min(self.ess_bulk, self.ess_tail) >= ESS_BOUND:
            failures.append(f"an effective sample size is below {ESS_BOUND}")
        factor = max(2.0, ESS_BOUND / max(1.0, min(self.ess_bulk, self.ess_tail)))
        return (
            f"The chains have NOT converged ({' and '.join(failures)}): {numbers}. Do not rely "
            f"on these numbers yet; run about {np.ceil(factor):.0f} times longer (raise thin or "
            "n_samples, and n_warmup)."
        )


def _known(error: ApproximationError) -> ApproximationError:
    """Return what was computed before."""
    return error


@dataclasses.dataclass(frozen=True)
class ApproximationDiagnostics:
    """Convergence of an approximation, and how close it is to the posterior.

    Attributes
    ----------
    description : str
        The method, and how it converged.
    n_iterations : int
    seconds : float
        Wall time in seconds, compilation included.
    is_point : bool
        Whether it is a single field, without any uncertainty.
    estimate_error : callable
        Returns `acceptance` and `probability_error`, which are computed when first asked for.
    """

    description: str
    n_iterations: int
    seconds: float
    is_point: bool = False
    can_be_sampled: bool = True
    estimate_error: Callable[[], ApproximationError] = dataclasses.field(
        default=partial(_known, ApproximationError(None, None)), repr=False, compare=False
    )
    label_mcse: ClassVar[float] = 0.0
    converged: ClassVar[bool] = True
    state: ClassVar[str] = "approximation"

    @cached_property
    def _error(self) -> ApproximationError:
        return self.estimate_error()

    @property
    def acceptance(self) -> float | None:
        """Share of its draws that would be accepted as draws of the posterior.

        It is estimated from up to 1,600 draws. In many dimensions a small share need not mean wrong
        probabilities. It is None for a point, for a tail with more labels than eigenpairs, and for
        an average of several classes.
        """
        return self._error.acceptance

    @property
    def probability_error(self) -> float | None:
        """Largest error of a class probability, estimated from above.

        Draws of the approximation are weighted as draws of the posterior, at up to 200 unlabelled
        nodes, or at labelled ones if all are; two standard errors are added. None if it is unknown:
        where `acceptance` is, and if too few draws have weight. An average of several classes has
        the root mean square error, beside 400 draws of `ModelAverage`.
        """
        return self._error.probability_error

    def to_plain(self) -> dict[str, Any]:
        """Return the numbers by name, from which `diagnostics_from` makes an equal one."""
        own = ("description", "n_iterations", "seconds", "is_point", "can_be_sampled")
        return {name: getattr(self, name) for name in (*own, *ApproximationError._fields)}

    @property
    def _remedy(self) -> str:
        if self.can_be_sampled:
            return SAMPLE
        return "No sampler serves this average; more labels bring both together."

    @property
    def verdict(self) -> str:
        """The accuracy of the approximation, in a sentence or two."""
        if self.is_point:
            return (
                f"A point ({self.description}): it classifies, without any uncertainty. "
                "Sample, or use ExpectationPropagation(), to get probabilities."
            )
        name = f"An approximation ({self.description}), which has converged"
        if self.acceptance is None and self.probability_error is not None:
            error = f"{self.probability_error:.2g}"
            if self.probability_error <= CLOSE:
                return f"{name}; its probabilities differ from those of draws by about {error}."
            return (
                f"{name}; its probabilities differ from those of draws by about {error}, most "
                f"where labels contradict their neighbours. {self._remedy}"
            )
        if self.acceptance is None:
            return f"{name}; its distance from the posterior is unknown. {self._remedy}"
        share = f"{self.acceptance:.0%} of its draws would be accepted as draws of the posterior"
        if self.probability_error is None:
            return (
                f"{name}, but is too far from the posterior to tell how wrong its probabilities "
                f"are: {share}. {self._remedy}"
            )
        error = f"{self.probability_error:.2g}"
        if self.probability_error <= CLOSE:
            return f"{name}, close to the posterior: probabilities are off by up to about {error}."
        return (
            f"{name}, and differs from the posterior: probabilities may be wrong by up to {error}, "
            f"most where labels contradict their neighbours; {share}. {self._remedy}"
        )


@singledispatch
def diagnose(
    answer: Draws | GaussianApproximation | GaussianMixture | Point,
    posterior: Posterior,
    label_mcse: Float[np.ndarray, "N *K"],
) -> Diagnostics | ApproximationDiagnostics:
    """Return the diagnostics of what a sampler or an approximation found."""
    raise TypeError(f"no diagnostics of {type(answer).__name__}")


@diagnose.register
def _(
    answer: GaussianApproximation | GaussianMixture,
    posterior: Posterior,
    label_mcse: Float[np.ndarray, "N *K"],
) -> ApproximationDiagnostics:
    return ApproximationDiagnostics(
        answer.description,
        answer.n_iterations,
        answer.seconds,
        can_be_sampled=not posterior.is_weighted
        or posterior.likelihood.latent_noise_std is not None,
        estimate_error=partial(_error_of, posterior, answer),
    )


@diagnose.register
def _(
    answer: Point, posterior: Posterior, label_mcse: Float[np.ndarray, "N *K"]
) -> ApproximationDiagnostics:
    return ApproximationDiagnostics(
        answer.description, answer.n_iterations, answer.seconds, is_point=True
    )


def _error_of(
    posterior: Posterior, answer: GaussianApproximation | GaussianMixture
) -> ApproximationError:
    n_unlabelled = posterior.spectrum.n_nodes - len(posterior.observed_nodes)
    nodes = monitored_nodes(posterior, min(ERROR_NODES, n_unlabelled or ERROR_NODES))
    rows = node_rows(posterior)
    if isinstance(answer, GaussianMixture):
        return mixture_error(posterior, answer, rows[nodes])
    # A mode is no mean, above all where the labels are.
    labelled = np.random.default_rng(0).permutation(posterior.observed_nodes)[:ERROR_NODES]
    return approximation_error(posterior, answer, rows[np.union1d(nodes, labelled)])


def diagnostics_from(values: dict[str, Any]) -> Diagnostics | ApproximationDiagnostics:
    """Return the diagnostics whose fields these are, as read from a file."""
    if "rhat" in values:
        return Diagnostics(**values)
    error = ApproximationError(*(values.pop(name) for name in ApproximationError._fields))
    return ApproximationDiagnostics(**values, estimate_error=partial(_known, error))


def monitored_functionals(
    posterior: Posterior, draws: Draws
) -> dict[str, Float[np.ndarray, "C S"]]:
    """Return functionals whose convergence stands for that of the whole field, by name.

    They are the log likelihood, every learnt hyperparameter, and the mean of u given the draw at
    50 random nodes, unlabelled ones first. With several classes, node i has the field of class
    i modulo K.
    """
    nodes = monitored_nodes(posterior)
    white = draws.white.reshape(-1, draws.white.shape[-1]).astype(np.float64, copy=False)
    mean, _ = conditional_moments(
        posterior.field,
        white,
        node_rows(posterior)[nodes],
    )
    shape = draws.n_chains, draws.n_samples
    names = [f"u[{node}]" for node in nodes]
    if posterior.likelihood.is_multiclass:
        classes = np.arange(len(nodes)) % posterior.n_classes
        mean = mean[np.arange(len(nodes)), :, classes]
        names = [f"u[{node},{k}]" for node, k in zip(nodes, classes, strict=True)]
    latent = {
        name: values.reshape(shape)
        for name, values in zip(names, mean, strict=True)
        # The conditional mean of a node without evidence is constant, so it cannot converge.
        if np.ptp(values) > 1e-9
    }
    learnt = {}
    for name, values in draws.hyperparameters.items():
        if values.ndim == 2:
            learnt[name] = values.astype(np.float64)
        elif posterior.per_class and values.shape[2:] == (posterior.n_classes,):
            for k in range(posterior.n_classes):
                learnt[f"{name}[{k}]"] = values[..., k].astype(np.float64)
    return {"log_likelihood": draws.log_likelihood.astype(np.float64), **learnt, **latent}


def monitored_nodes(posterior: Posterior, n: int = SKETCH_NODES) -> Int[np.ndarray, " m"]:
    """Return up to n nodes at random, in ascending order; unlabelled ones are preferred."""
    position = node_positions(posterior)
    order = np.random.default_rng(0).permutation(posterior.spectrum.n_nodes)
    order = order[np.argsort(position[order] >= 0, kind="stable")]
    return np.sort(order[:n])


def node_positions(posterior: Posterior) -> np.ndarray:
    """Return the position of each node among the observed nodes, or −1, shape (N,)."""
    position = np.full(posterior.spectrum.n_nodes, -1)
    position[posterior.observed_nodes] = np.arange(len(posterior.observed_nodes))
    return position


def node_rows(posterior: Posterior) -> Rows:
    """Return the rows of the eigenvector matrix of all nodes."""
    spectrum = posterior.spectrum
    apart = not (posterior.learnt and posterior.has_series)
    positions = node_positions(posterior) if apart else np.full(spectrum.n_nodes, -1)
    return Rows(spectrum.basis, spectrum.node_scale, positions, posterior.node_mean)


def rows_outside(
    posterior: Posterior, eigenvectors: Float[np.ndarray, "M L"], scale: Float[np.ndarray, " M"]
) -> Rows:
    """Return the rows of nodes outside the graph, from their rows of the eigenvector matrix.

    Raises
    ------
    IncompatibleParts
        If the prior mean of u is not the same number everywhere.
    """
    if isinstance(posterior.prior_mean, np.ndarray):
        raise IncompatibleParts(
            "the prior mean of u is known at the nodes of the graph alone; give a number for nodes "
            "outside it"
        )
    mean = None if posterior.prior_mean is None else np.full(len(scale), posterior.prior_mean)
    return Rows(eigenvectors, scale, np.full(len(scale), -1), mean)


def worst_case(table: dict[str, dict[str, float]]) -> tuple[float, float, float]:
    """Return the largest R-hat and the smallest bulk and tail effective sample size of a table."""
    if not table:
        return np.nan, np.nan, np.nan
    rhat, ess_bulk, ess_tail = zip(*(row.values() for row in table.values()), strict=True)
    return float(np.max(rhat)), float(np.min(ess_bulk)), float(np.min(ess_tail))


@diagnose.register
def _(answer: Draws, posterior: Posterior, label_mcse: Float[np.ndarray, "N *K"]) -> Diagnostics:
    draws = answer
    rhat, ess_bulk, ess_tail = worst_case(convergence_of(monitored_functionals(posterior, draws)))
    return Diagnostics(
        rhat=rhat,
        ess_bulk=ess_bulk,
        ess_tail=ess_tail,
        label_mcse=float(label_mcse.max()),
        acceptance=float(draws.acceptance.mean()),
        step_size=draws.step_size,
        n_chains=draws.n_chains,
        n_samples=draws.n_samples,
        n_warmup=draws.n_warmup,
        thin=draws.thin,
        seconds=draws.seconds,
        stopped_by=draws.stopped_by,
        is_approximate=draws.is_approximate,
    )


def warn_unless_converged(diagnostics: Diagnostics | ApproximationDiagnostics) -> None:
    """Warn with the verdict if the chains have not converged."""
    if not diagnostics.converged:
        warn_user(diagnostics.verdict, NotConvergedWarning)
