"""What a sampler and an approximation are."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from graphuq.errors import TruncationWarning, require
from graphuq.inference.answers import GaussianApproximation, Point
from graphuq.inference.draws import Draws
from graphuq.inference.settings import RunSettings
from graphuq.posterior.posterior import Posterior
from graphuq.utils.arrays import Array
from graphuq.utils.checks import check_fields
from graphuq.utils.part import Part
from graphuq.utils.user_warnings import warn_user

FACTOR_NUMBERS = 2**26  # largest size of F, u = F x at the labels, that samplers form: 537 MB
MAX_CHAINS = 32  # more chains cost time and improve R-hat little
CHAINS_TIMES_LABELS = 32_000  # chains × labels whose states fit in the CPU cache
LIMIT_SHARE = 0.05  # share of draws with nearly all eigenpairs, from which there is a warning
NEAR_LIMIT = 0.95  # share of the computed eigenpairs that counts as nearly all


@runtime_checkable
class WhiteTarget(Protocol):
    """A standard normal prior times a likelihood, as samplers see it."""

    @property
    def dimension(self) -> int:
        """Number of white coordinates."""
        ...

    def log_likelihood(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Return the log likelihood, up to a constant."""
        ...


@runtime_checkable
class SiteTarget(Protocol):
    """A target whose field can be conditioned on Gaussian sites at its labels."""

    @property
    def field(self) -> Any:
        """The field at the labelled nodes."""
        ...

    @property
    def likelihood(self) -> Any:
        """Likelihood of the labels."""
        ...

    @property
    def labels(self) -> Any:
        """Labels, shape (J,)."""
        ...

    def log_density(self, white: Float[Array, " n"]) -> Float[Array, ""]:
        """Return the log posterior density in white coordinates, up to a constant."""
        ...


class Approximation(Part):
    """A method that answers with a Gaussian or a point instead of draws.

    A subclass defines `fit`.

    Attributes
    ----------
    criterion : str, default "expectation-propagation"
        Estimate of the evidence that agrees with it, by which `EvidenceSearch` compares models.
    """

    criterion: ClassVar[str] = "expectation-propagation"

    requires_gradient: ClassVar[bool] = False
    always_float64: ClassVar[bool] = True
    averages: ClassVar[bool] = False

    @abstractmethod
    def fit(self, target: SiteTarget) -> GaussianApproximation | Point:
        """Return the Gaussian or the point that stands for the posterior."""

    def refusal(self, posterior: Posterior) -> str | None:
        """Return why the method cannot approximate this posterior and what to do, or None."""
        if posterior.learnt:
            return (
                f"{self} learns no hyperparameter, and {', '.join(posterior.learnt)} is a "
                "distribution; leave the method out, so that it is sampled, or use a number that "
                "maximize_evidence chooses"
            )
        return gradient_refusal(self, posterior)

    def unused_arguments(self, given: Sequence[str]) -> list[str]:
        """Return the arguments of `graphuq.infer` that have no effect: all that concern draws."""
        return list(given)

    def check(self, posterior: Posterior, answer: GaussianApproximation | Point) -> None:
        """Accept the answer, which `fit` has checked."""

    def run(
        self,
        posterior: Posterior,
        settings: RunSettings,
        reference: GaussianApproximation | None = None,
    ) -> GaussianApproximation | Point:
        """Return the approximation of a posterior; settings and reference are not used.

        `ExpectationPropagation` starts from the sites of the reference.
        """
        return self.fit(posterior.plain_target)


class Sampler(Part):
    """A method that answers with draws, by Markov chains that leave the posterior invariant.

    A subclass is a small immutable value that defines `run`. It has a field ``reference``: an
    approximation whose Gaussian takes the place of the prior, or None.

    Attributes
    ----------
    requires_gradient : bool, default False
        Whether the log likelihood must have a gradient.
    requires_step : bool, default False
        Whether the likelihood must be a step, given its noise if it has any.
    default_warmup : int, default 2000
        Steps of warm-up.
    default_chains : int or None, default None
        Number of chains. The default depends on the number of labels: 4 to 32 chains.
    always_float64 : bool, default False
        Whether the sampler computes in float64 in spite of another ``precision``.
    reference_is_matrix : bool, default True
        Whether a reference must have a covariance matrix of all coordinates.
    averages : bool, default False
        Whether the method takes a weighted set of posteriors whole. Otherwise `graphuq.infer`
        serves each component by itself; see `EachComponent`.
    """

    requires_gradient: ClassVar[bool] = False
    requires_step: ClassVar[bool] = False
    default_warmup: ClassVar[int] = 2000
    default_chains: ClassVar[int | None] = None
    always_float64: ClassVar[bool] = False
    reference_is_matrix: ClassVar[bool] = True
    averages: ClassVar[bool] = False

    if TYPE_CHECKING:  # a field of each subclass

        @property
        def reference(self) -> Approximation | None:
            """Approximation whose Gaussian takes the place of the prior, or None."""

    def __check_init__(self) -> None:
        check_fields(self)

    def refusal(self, posterior: Posterior) -> str | None:
        """Return why the method cannot sample this posterior and what to do instead, or None."""
        likelihood = posterior.likelihood
        if self.requires_step and not likelihood.is_step_given_noise:
            return (
                f"{self} needs a likelihood of two levels, such as LevelSet, or Probit, and "
                f"{likelihood} is not; use Hamiltonian()"
            )
        if posterior.learnt and (reason := self.learning_refusal(posterior)) is not None:
            return reason
        return gradient_refusal(self, posterior)

    def learning_refusal(self, posterior: Posterior) -> str | None:
        """Return why the method cannot learn the posterior's hyperparameters, or None."""
        names = ", ".join(posterior.learnt)
        if self.reference is not None:
            return (
                f"{self} cannot keep its reference while {names} is learnt, because the Gaussian "
                "would change; leave reference out"
            )
        if self.requires_step:
            return (
                f"{self} does not learn {names} of {posterior.likelihood}; use "
                "MetropolisWithinGibbs(Hamiltonian(), joint=True), or for a step likelihood "
                "MetropolisWithinGibbs(ExactHamiltonian())"
            )
        return None

    def first_draws_are_quick(self, posterior: Posterior) -> bool:
        """Return whether the first draws are nearly as quick as an approximation."""
        return False

    def unused_arguments(self, given: Sequence[str]) -> list[str]:
        """Return the arguments of `graphuq.infer` that have no effect: where to start."""
        return [name for name in given if name == "start"]

    def check(self, posterior: Posterior, answer: Draws) -> None:
        """Raise if a draw is impossible, and warn if the eigenpairs may be too few.

        Raises
        ------
        InvalidInput
            If the labels have probability zero at a draw: no field was found that fits them all.
        """
        impossible = int((answer.log_likelihood == -np.inf).sum())
        require(
            impossible == 0,
            "likelihood",
            f"{posterior.likelihood} gives the labels probability zero at {impossible} of "
            f"{answer.log_likelihood.size} draws",
            "use one that allows wrong labels, more eigenpairs, or longer warm-up with "
            "ExactHamiltonian()",
        )
        _warn_of_limit(posterior, answer)

    def n_chains(self, posterior: Posterior) -> int:
        """Return the number of chains that are run if the user gives none."""
        if self.default_chains is not None:
            return self.default_chains
        size = len(posterior.observed_labels) * posterior.n_fields
        return min(MAX_CHAINS, max(4, CHAINS_TIMES_LABELS // size))

    @abstractmethod
    def run(
        self,
        posterior: Posterior,
        settings: RunSettings,
        reference: GaussianApproximation | None = None,
    ) -> Draws:
        """Return draws from the posterior.

        Parameters
        ----------
        posterior : Posterior
            One that `refusal` accepts.
        settings : RunSettings
        reference : GaussianApproximation, optional
            The Gaussian of ``self.reference``, if it was computed before. Samplers without a
            reference ignore it.

        Returns
        -------
        Draws
            In the posterior's coordinates: the white coordinates of ``posterior.field``, or the
            coefficients of the eigenvectors if hyperparameters are learnt.
        """


def _warn_of_limit(posterior: Posterior, draws: Draws) -> None:
    """Warn if a random truncation reaches the end of the computed eigenpairs."""
    n_pairs, n_nodes = posterior.spectrum.n_columns, posterior.spectrum.n_nodes
    lengths = draws.hyperparameters.get("truncation")
    if lengths is None or not posterior.has_series or n_pairs == n_nodes:
        return
    if posterior.prior.learnt["truncation"].support[1] < n_pairs:
        return
    share = float((lengths > NEAR_LIMIT * n_pairs).mean())
    if share > LIMIT_SHARE:
        warn_user(
            f"in {share:.0%} of the draws the series has nearly all of the {n_pairs} computed "
            "eigenvectors, so the posterior is that of a series cut at this number; compute "
            "more with n_eigenpairs, or set truncation",
            TruncationWarning,
        )


def gradient_refusal(method: Sampler | Approximation, posterior: Posterior) -> str | None:
    """Return why a method that needs a gradient cannot have one, or None."""
    if method.requires_gradient and not posterior.likelihood.has_gradient:
        return f"{method} needs a gradient and {posterior.likelihood} has none; use PCN()"
    return None
