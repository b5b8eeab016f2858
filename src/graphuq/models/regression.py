"""Model of numbers: a Gaussian field, and Gaussian noise at the rows with a number."""

import dataclasses
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from graphuq.errors import require
from graphuq.evidence.regression import GraphRegression
from graphuq.evidence.weighed import learn
from graphuq.models.averaged import Averaged
from graphuq.models.evidence import prior_of
from graphuq.models.numbers import GivenNumbers, NumbersModel, NumbersPosterior, is_auto
from graphuq.models.predictive import StudentT
from graphuq.utils.checks import require_positive
from graphuq.utils.shown import shown_call


@dataclasses.dataclass(frozen=True, repr=False)
class Regression(NumbersModel):
    """Prior of the field and its size, a linear part, and the noise of the numbers.

    Answers are averages over what is "auto", weighed by the evidence, with weak hyperpriors; see
    docs/theory/numbers.md.

    Parameters
    ----------
    prior : str or Prior, default "auto"
        Prior of the field. "auto": `Matern`, with τ and α learnt. The names "matern",
        "inverse-laplacian", "regularized-laplacian", "diffusion", "random-walk" and
        "inverse-cosine" stand for a prior with its defaults. Also text such as
        ``"Matern(tau=0.2, alpha=3)"``. No hyperparameter may be a distribution.
    field_std : float or "auto", default "auto"
        Standard deviation of the field, averaged over nodes, in units of the target: a > 0.
    noise_std : float or "auto", default "auto"
        Standard deviation of the noise, in units of the target: γ > 0.
    linear_std : float or "auto", default "auto"
        Standard deviation of a linear function of the features, averaged over nodes, in units of
        the target: g ≥ 0. With 0, or if the graph was made without features, there is none.

    Raises
    ------
    InvalidInput
        If the prior is unknown or learns something, or a number is not positive.

    Examples
    --------
    >>> import graphuq as gq
    >>> gq.models.Regression(noise_std=0.5)
    Regression(noise_std=0.5)
    """

    prior: Any = "auto"
    field_std: Any = "auto"
    noise_std: Any = "auto"
    linear_std: Any = "auto"

    def __post_init__(self) -> None:
        for name in ("field_std", "noise_std"):
            if not is_auto(getattr(self, name)):
                remedy = "use a number > 0 in units of y, or 'auto'"
                require_positive(name, getattr(self, name), remedy)
        self._check_linear()
        self._check_prior()

    def check(self, numbers: Float[np.ndarray, " N"], argument: str = "y") -> None:
        """Take all numbers."""

    def check_given(self, numbers: Float[np.ndarray, " N"], known: Bool[np.ndarray, " N"]) -> None:
        """Require two different numbers at least, which have a mean and a deviation."""
        require(
            known.any(),
            "y",
            f"no number with a weight above zero among {len(numbers)} rows",
            "give the number of at least two rows",
        )
        require(
            len(np.unique(numbers[known])) > 1,
            "y",
            f"{numbers[known][0]:g} is the only number at {int(known.sum())} row(s)",
            "give two different numbers at least",
        )

    def posterior(self, basis: Any, given: GivenNumbers) -> "GaussianNumbers":
        """Return the posterior of the field: Gaussian and exact for given hyperparameters.

        Parameters
        ----------
        basis : Spectrum or Basis
        given : GivenNumbers
            The variance of the noise of a number is γ²/w.
        """
        location, spread = float(given.numbers.mean()), float(given.numbers.std())
        values = (given.numbers - location) / spread
        start = GraphRegression(
            basis,
            prior_of(self.prior),
            given.nodes,
            values,
            weights=given.weights,
            **self._fixed(spread, basis),
        )
        return GaussianNumbers(*learn(start, self._learnt(basis)), location, spread)

    def __repr__(self) -> str:
        return shown_call(self)


class GaussianNumbers(NumbersPosterior):
    """Posterior given numbers with Gaussian noise."""

    engine_kind: ClassVar = GraphRegression
    model_kind: ClassVar = Regression
    noise: ClassVar = "noise"
    measure: ClassVar = "variance"
    arrays: ClassVar = ("labelled", "values", "weights")

    @property
    def given(self) -> Float[np.ndarray, " J"]:
        """The given numbers."""
        return np.asarray(self.location + self.spread * self.engine.values)

    @property
    def unit(self) -> float:
        """Standard deviation of the given numbers."""
        return self.spread

    @property
    def log_evidence(self) -> float:
        """Log density of the given numbers, in their own units."""
        n_given = len(self.engine.values)
        return float(self.engine.log_evidence - n_given * float(np.log(self.spread)))

    def predictive(self, latent: Averaged, quantity: str, exposure: Any = 1.0) -> StudentT:
        """Return the distribution of a new measurement, or of the field, at rows."""
        return StudentT(*latent)

    @property
    def explained(self) -> float:
        """Share of the variance that the others explain, beyond their mean."""
        known = self.given
        n = len(known)
        by_mean = (known - known.mean()) * n / (n - 1)  # leave-one-out, too
        left = np.mean((known - self.left_out.mean) ** 2)
        return 1 - float(left) / float(np.mean(by_mean**2))

    def score(
        self,
        predictive: Any,
        known: Float[np.ndarray, " M"],
        weights: Float[np.ndarray, " M"],
    ) -> float:
        """Return R², the share of the variance that predictions explain."""
        from sklearn.metrics import r2_score

        return float(r2_score(known, predictive.mean, sample_weight=weights))

    def most_uncertain(
        self, nodes: Int[np.ndarray, " M"], n: int, exposure: Any
    ) -> Int[np.ndarray, " B"]:
        """Return nodes to measure next; see `GraphRegression.most_uncertain`."""
        found: Int[np.ndarray, " B"] = self.engine.most_uncertain(nodes, n)
        return found


Regression.posterior_kind = GaussianNumbers
