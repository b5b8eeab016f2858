"""What models of numbers and of counts share: given numbers in, distributions out."""

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import softmax

from graphuq.errors import require
from graphuq.evidence.counts import GraphCounts
from graphuq.evidence.regression import GraphRegression, eigenpairs_of
from graphuq.evidence.weighed import Weighed, with_values
from graphuq.models.averaged import Averaged, averaged
from graphuq.models.evidence import prior_of
from graphuq.models.predictive import Predictive
from graphuq.priors import Prior
from graphuq.spectrum.basis import SpectralBasis
from graphuq.utils.checks import require_positive
from graphuq.utils.concurrency import cached_property

QUANTITIES = ("measurement", "field")
DEVIATIONS = ("field_std", "noise_std", "linear_std")


class GivenNumbers(NamedTuple):
    """Rows with a number.

    Attributes
    ----------
    nodes : numpy.ndarray of int, shape (J,)
    numbers, weights, exposure : numpy.ndarray, shape (J,)
    """

    nodes: Int[np.ndarray, " J"]
    numbers: Float[np.ndarray, " J"]
    weights: Float[np.ndarray, " J"]
    exposure: Float[np.ndarray, " J"]


class NumbersModel(ABC):
    """Prior of a field and its size, and what is seen of it."""

    takes_exposure: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True
    posterior_kind: ClassVar[type["NumbersPosterior"]]
    prior: Any
    field_std: Any
    noise_std: Any
    linear_std: Any

    @property
    def needs_features(self) -> bool:
        """Whether linear functions of the features are part of the model."""
        return is_auto(self.linear_std) or self.linear_std > 0

    @abstractmethod
    def check(self, numbers: Float[np.ndarray, " N"], argument: str = "y") -> None:
        """Raise `InvalidInput` for numbers that the model cannot be of; NaN is unknown."""

    @abstractmethod
    def check_given(self, numbers: Float[np.ndarray, " N"], known: Bool[np.ndarray, " N"]) -> None:
        """Raise `InvalidInput` for given numbers that say too little for a fit."""

    @abstractmethod
    def posterior(self, basis: Any, given: GivenNumbers) -> "NumbersPosterior":
        """Return the posterior of the field; see `graphuq.GraphRegressor`.

        Parameters
        ----------
        basis : Spectrum
        given : GivenNumbers
        """

    def _check_linear(self) -> None:
        """Raise `InvalidInput` for a deviation of the linear part that is none; 0 is one."""
        given: Any = self.linear_std
        is_zero = isinstance(given, int | float) and not isinstance(given, bool) and given == 0
        if not is_auto(given) and not is_zero:
            require_positive("linear_std", given, "use a number, 0 for no linear part, or 'auto'")

    def _check_prior(self) -> None:
        """Raise `InvalidInput` for a prior that is unknown or learns something."""
        prior: Prior = prior_of(self.prior)
        require(
            not prior.learnt,
            "prior",
            f"{', '.join(prior.learnt)} of {prior} is a distribution",
            "give a number, or prior='auto'",
        )

    def _fixed(self, unit: float, basis: SpectralBasis) -> dict[str, Any]:
        """Return the deviations that are given, in a unit."""
        given = {name: getattr(self, name) for name in DEVIATIONS}
        if not has_linear(basis):
            given["linear_std"] = 0.0
        return {name: value / unit for name, value in given.items() if not is_auto(value)}

    def _learnt(self, basis: SpectralBasis) -> list[str]:
        """Names of what is learnt with a basis, which may have no linear functions."""
        shape = ("tau", "alpha") if is_auto(self.prior) else ()
        usable = DEVIATIONS if has_linear(basis) else DEVIATIONS[:-1]
        return [*shape, *(name for name in usable if is_auto(getattr(self, name)))]


def has_linear(basis: SpectralBasis) -> bool:
    """Return whether a basis has linear functions beside its eigenpairs."""
    return basis.n_columns > eigenpairs_of(basis).n_columns


def is_auto(value: Any) -> bool:
    """Return whether a parameter is the word "auto"."""
    return isinstance(value, str) and value == "auto"


@dataclass(frozen=True, eq=False)
class NumbersPosterior(ABC):
    """Posterior of a field given numbers: the latent number of a row is ``location + spread f``.

    Parameters
    ----------
    engine : GraphRegression or GraphCounts
        The posterior of f, with the hyperparameters of largest evidence.
    weighed : Weighed
        Other hyperparameters, over which all answers are averaged.
    location, spread : float
    """

    engine_kind: ClassVar[type[GraphRegression] | type[GraphCounts]]
    model_kind: ClassVar[type[NumbersModel]]
    noise: ClassVar[str]
    """What `noise_std` is of, in words."""
    measure: ClassVar[str]
    """What `explained` is a share of."""
    arrays: ClassVar[tuple[str, ...]]
    """Fields of the engine with an entry for each given number."""

    engine: Any
    weighed: Weighed
    location: float
    spread: float

    @cached_property
    def engines(self) -> list[Any]:
        """The posterior of f for each choice of hyperparameters."""
        names, values, _ = self.weighed
        return [with_values(self.engine, dict(zip(names, row, strict=True))) for row in values]

    @cached_property
    def noise_std(self) -> float:
        """Deviation of the noise; see `deviation`."""
        return self.deviation("noise_std")

    def deviation(self, name: str) -> float:
        """Return a deviation in units of the latent number: its root mean square.

        Parameters
        ----------
        name : {"field_std", "noise_std", "linear_std"}
        """
        squares = [getattr(engine, name) ** 2 for engine in self.engines]
        return self.spread * float(np.sqrt(self.weighed.weights @ squares))

    @property
    def model(self) -> NumbersModel:
        """The model with the hyperparameters of largest evidence."""
        best, kind = self.engine, self.model_kind
        model: Any = kind()
        changes = {name: self.spread * float(getattr(best, name)) for name in DEVIATIONS}
        found: NumbersModel = dataclasses.replace(model, prior=best.prior, **changes)
        return found

    def stored_arrays(self) -> dict[str, np.ndarray]:
        """Return what a file holds of the given numbers, an entry each."""
        return {name: getattr(self.engine, name) for name in self.arrays}

    @classmethod
    def restored(
        cls,
        spectrum: Any,
        prior: Prior,
        settings: dict[str, float],
        stored: dict[str, np.ndarray],
        weighed: Weighed,
        location: float,
        spread: float,
    ) -> "NumbersPosterior":
        """Return the posterior of what a file holds."""
        values: dict[str, Any] = {name: stored[name] for name in cls.arrays} | settings
        engine = cls.engine_kind(spectrum, prior, **values)
        return cls(engine, weighed, location, spread)

    @property
    @abstractmethod
    def given(self) -> Float[np.ndarray, " J"]:
        """The given numbers."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """Size of differences between numbers, by which they are rounded where they are shown."""

    @property
    @abstractmethod
    def log_evidence(self) -> float:
        """Log density, or log probability, of the given numbers."""

    def latent(self, quantity: str) -> Averaged:
        """Return the latent number of every node, without noise or as measured.

        Parameters
        ----------
        quantity : {"measurement", "field"}

        Raises
        ------
        InvalidInput
            If the quantity is unknown.
        """
        require(
            isinstance(quantity, str) and quantity in QUANTITIES,
            "quantity",
            f"{quantity!r} is unknown",
            f"use one of {', '.join(QUANTITIES)}",
        )
        return self._latents[QUANTITIES.index(quantity)]

    @cached_property
    def _latents(self) -> list[Averaged]:
        found = [engine.field() for engine in self.engines]
        return [self._averaged(found, quantity) for quantity in QUANTITIES]

    def latent_at(
        self, rows: Float[np.ndarray, "M L"], scale: Float[np.ndarray, " M"], quantity: str
    ) -> Averaged:
        """Return the same of other rows; see `GraphRegression.field_at`."""
        return self._averaged([e.field_at(rows, scale) for e in self.engines], quantity)

    def _averaged(
        self,
        fields: list[tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]],
        quantity: str,
    ) -> Averaged:
        """Return the average over all hyperparameters, in units of the latent number."""
        means, stds = (np.stack(part) for part in zip(*fields, strict=True))
        if quantity == "measurement":
            stds = np.hypot(stds, [[engine.noise_std] for engine in self.engines])
        return self._in_units(averaged(means, stds, self.weighed.weights[:, None]))

    def _in_units(self, found: Averaged) -> Averaged:
        return Averaged(
            self.location + self.spread * found.mean, self.spread * found.std, found.degrees
        )

    @abstractmethod
    def predictive(
        self,
        latent: Averaged,
        quantity: str,
        exposure: Float[np.ndarray, " M"] | float = 1.0,
    ) -> Predictive:
        """Return the distribution of a new measurement, or of the field, at rows.

        Parameters
        ----------
        latent : Averaged
            The latent numbers, for the same quantity.
        quantity : {"measurement", "field"}
        exposure : numpy.ndarray, shape (M,), or float
            Of counts, for a measurement.
        """

    @cached_property
    def left_out(self) -> Predictive:
        """Distribution of each given number by all others.

        Without a number, hyperparameters have another posterior: each weight is divided by the
        density that the others give the number.
        """
        parts = [engine.leave_one_out() for engine in self.engines]
        means, stds = (np.stack(part) for part in zip(*parts, strict=True))
        density = np.stack([engine.log_left_out() for engine in self.engines])
        weights = softmax(np.log(self.weighed.weights)[:, None] - density, axis=0)
        latent = self._in_units(averaged(means, stds, weights))
        return self.predictive(latent, "measurement", self._exposure_of_given)

    @property
    def _exposure_of_given(self) -> Float[np.ndarray, " J"] | float:
        return 1.0

    @property
    @abstractmethod
    def explained(self) -> float:
        """Share that the others explain, by the graph, of what their mean leaves; at most 1."""

    @abstractmethod
    def score(
        self,
        predictive: Any,
        known: Float[np.ndarray, " M"],
        weights: Float[np.ndarray, " M"],
    ) -> float:
        """Return the score of predictions, given the true numbers; more is better."""

    @abstractmethod
    def most_uncertain(
        self, nodes: Int[np.ndarray, " M"], n: int, exposure: Float[np.ndarray, " M"]
    ) -> Int[np.ndarray, " B"]:
        """Return nodes to measure next; see `GraphRegression.most_uncertain`."""
