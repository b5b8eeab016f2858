"""Model of counts: a Gaussian field of log rates, and Poisson counts at the rows with one."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import xlogy

from graphuq.errors import InvalidInput, NotConvergedWarning, require
from graphuq.evidence.counts import GraphCounts
from graphuq.evidence.weighed import learn
from graphuq.models.averaged import Averaged
from graphuq.models.evidence import prior_of
from graphuq.models.numbers import GivenNumbers, NumbersModel, NumbersPosterior, is_auto
from graphuq.models.predictive import LogNormal, PoissonLogNormal, Predictive
from graphuq.utils.checks import require_positive
from graphuq.utils.shown import shown_call
from graphuq.utils.user_warnings import warn_user

MAX_COUNT = 1e9  # moments of larger ones lose digits
WHOLE = "give whole numbers 0, 1, 2, …, or model='auto' for other numbers"


@dataclasses.dataclass(frozen=True, repr=False)
class Counts(NumbersModel):
    """Prior of a field of log rates and its size, and the noise of the log rates.

    A count is Poisson with the rate ``E exp(c + a u + g l + γ ε)``, where E is the exposure. The
    noise γ makes counts vary more than those of Poisson, by rows of like features, as real ones
    do. Answers are averages over what is "auto", weighed by the evidence, with weak hyperpriors;
    see docs/theory/numbers.md.

    Parameters
    ----------
    prior : str or Prior, default "auto"
        Prior of the field, as in `Regression`.
    field_std : float or "auto", default "auto"
        Standard deviation of the field of log rates, averaged over nodes: a > 0. With 1, rates
        commonly differ by a factor of e.
    noise_std : float or "auto", default "auto"
        Standard deviation of the noise of a log rate: γ ≥ 0. With 0, counts given the field are
        Poisson.
    linear_std : float or "auto", default "auto"
        Standard deviation of a linear function of the features in the log rates, averaged over
        nodes: g ≥ 0. With 0, or if the graph was made without features, there is none.

    Raises
    ------
    InvalidInput
        If the prior is unknown or learns something, ``field_std`` is not positive, or
        ``noise_std`` is negative.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> x = np.linspace(0, 6, 120)[:, None]
    >>> y = np.full(120, np.nan)
    >>> y[::3] = np.random.default_rng(0).poisson(5 * np.exp(np.sin(x[::3, 0])))
    >>> regressor = gq.GraphRegressor(model="counts").fit(x, y)
    >>> bool(abs(np.log(regressor.transduction_ / 5) - np.sin(x[:, 0])).mean() < 0.3)
    True
    """

    prior: Any = "auto"
    field_std: Any = "auto"
    noise_std: Any = "auto"
    linear_std: Any = "auto"

    takes_exposure: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = False

    def __post_init__(self) -> None:
        remedy = "use a number of log rates, or 'auto'"
        if not is_auto(self.field_std):
            require_positive("field_std", self.field_std, remedy)
        if not is_auto(self.noise_std) and not self._is_poisson:
            require_positive("noise_std", self.noise_std, remedy)
        self._check_linear()
        self._check_prior()

    @property
    def _is_poisson(self) -> bool:
        """Whether the log rates have no noise, given as the number 0."""
        noise: Any = self.noise_std
        return isinstance(noise, int | float) and not isinstance(noise, bool) and noise == 0

    def check(self, numbers: Float[np.ndarray, " N"], argument: str = "y") -> None:
        """Require whole numbers from 0 on."""
        known = ~np.isnan(numbers)
        wrong = np.flatnonzero(known & ~((numbers >= 0) & (numbers == np.floor(numbers))))
        words = [f"{numbers[i]:g} in row {i} is no count" for i in wrong[:1]]
        require(len(wrong) == 0, argument, "".join(words), WHOLE)
        large = np.flatnonzero(known & (numbers > MAX_COUNT))
        words = [f"{numbers[i]:g} in row {i} is above {MAX_COUNT:g}" for i in large[:1]]
        require(len(large) == 0, argument, "".join(words), "take logarithms, and model='auto'")

    def check_given(self, numbers: Float[np.ndarray, " N"], known: Bool[np.ndarray, " N"]) -> None:
        """Require two counts at least, and one above 0."""
        require(
            known.sum() > 1,
            "y",
            f"{int(known.sum())} counts among {len(numbers)} rows",
            "give the count of at least two rows",
        )
        require(
            (numbers[known] > 0).any(),
            "y",
            f"all {int(known.sum())} counts are 0, which bound no rate from below",
            "give a count above 0",
        )

    def posterior(self, basis: Any, given: GivenNumbers) -> "PoissonNumbers":
        """Return the posterior of the field of log rates, by expectation propagation.

        Parameters
        ----------
        basis : Spectrum or Basis
        given : GivenNumbers
            Counts with their exposures.

        Raises
        ------
        InvalidInput
            If given hyperparameters leave no digits of the variances.

        Warns
        -----
        NotConvergedWarning
            If passes over the counts do not come to an end.
        """
        location = float(np.log(given.numbers.sum()) - np.log(given.exposure.sum()))
        start = GraphCounts(
            basis,
            prior_of(self.prior),
            given.nodes,
            given.numbers,
            np.log(given.exposure) + location,
            **self._fixed(1.0, basis),
        )
        found, weighed = learn(start, self._learnt(basis))
        try:
            converged = found.fixed_point.converged
        except np.linalg.LinAlgError as error:
            raise InvalidInput(
                "model",
                f"field_std {found.field_std:g} beside noise_std {found.noise_std:g}: {error}",
                "give a smaller field_std, a larger noise_std, or 'auto'",
            ) from None
        if not converged:
            warn_user(
                "expectation propagation of the counts did not converge; do not rely on the "
                "answer, or give a larger noise_std",
                NotConvergedWarning,
            )
        return PoissonNumbers(found.replaced(), weighed, location, 1.0)  # begins where it ended

    def __repr__(self) -> str:
        return shown_call(self)


class PoissonNumbers(NumbersPosterior):
    """Posterior given counts; the latent number of a row is its log rate."""

    engine_kind: ClassVar = GraphCounts
    model_kind: ClassVar = Counts
    noise: ClassVar = "noise of log rates"
    measure: ClassVar = "deviance"
    arrays: ClassVar = ("labelled", "counts", "log_exposure", "start_mean", "start_variance")

    @property
    def given(self) -> Float[np.ndarray, " J"]:
        """The given counts."""
        return np.asarray(self.engine.counts)

    @property
    def unit(self) -> float:
        """Standard deviation of the given counts, or 1 if all are equal."""
        return float(self.given.std()) or 1.0

    @property
    def log_evidence(self) -> float:
        """Log probability of the given counts."""
        return float(self.engine.log_evidence)

    def predictive(self, latent: Averaged, quantity: str, exposure: Any = 1.0) -> Predictive:
        """Return the distribution of new counts, or of mean counts for an exposure of 1."""
        if quantity == "field":
            return LogNormal(latent.mean + self.noise_std**2 / 2, latent.std)
        return PoissonLogNormal(latent.mean + np.log(exposure), latent.std)

    @property
    def _exposure_of_given(self) -> Float[np.ndarray, " J"]:
        return np.exp(self.engine.log_exposure - self.location)

    @property
    def explained(self) -> float:
        """Share of the deviance of Poisson that the others explain, beyond their mean rate."""
        known, exposure = self.given, np.exp(self.engine.log_exposure)
        # Half a count more (Jeffreys' prior of a rate): all others may be 0.
        by_mean = exposure * (known.sum() - known + 0.5) / (exposure.sum() - exposure)
        return 1 - deviance(known, self.left_out.mean) / deviance(known, by_mean)

    def score(
        self,
        predictive: PoissonLogNormal,
        known: Float[np.ndarray, " M"],
        weights: Float[np.ndarray, " M"],
    ) -> float:
        """Return the mean log probability of the counts."""
        return float(np.average(predictive.log_mass(known), weights=weights))

    def most_uncertain(
        self, nodes: Int[np.ndarray, " M"], n: int, exposure: Float[np.ndarray, " M"]
    ) -> Int[np.ndarray, " B"]:
        """Return nodes to count next: those of the most uncertain log rates.

        The log of a count at rate r has the variance 1/r, beside that of the noise.
        """
        mean, std, _ = self.latent("field").at(nodes)
        noise = self.noise_std**2 + 1 / (exposure * np.exp(mean + std**2 / 2))
        found: Int[np.ndarray, " B"] = self.engine.regression.most_uncertain(nodes, n, noise)
        return found


def deviance(counts: Float[np.ndarray, " J"], mean: Float[np.ndarray, " J"]) -> float:
    """Return the mean deviance of counts from Poisson distributions of given means."""
    return float(2 * np.mean(xlogy(counts, counts / mean) - counts + mean))


Counts.posterior_kind = PoissonNumbers
