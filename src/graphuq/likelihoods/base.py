"""What every likelihood offers: the log probability of a label given the field."""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr

from graphuq.distributions import (
    Distribution,
    Hyperparameter,
    check_defined,
    check_hyperparameters,
    learnt_of,
)
from graphuq.errors import IncompatibleParts
from graphuq.likelihoods.multiclass import codes, max_classes, min_classes, restricted
from graphuq.utils.arrays import Array, array_namespace, with_dtype
from graphuq.utils.special_functions import log_normal_cdf, normal_hazard

QUADRATURE_NODES = 64
WIDTH = 9.0  # half the range of the quadrature over a Gaussian belief, in deviations

PerLabel: TypeAlias = Float[np.ndarray, " J"]


class Tilted(NamedTuple):
    """What a Gaussian belief about u becomes when a label is seen, shape (J,) each.

    Attributes
    ----------
    log_partition : numpy.ndarray
        Log of the probability that the belief gave the label.
    first, second : numpy.ndarray
        Its derivatives in the belief's mean, of which those of the tilted moments are made.
    """

    log_partition: Any
    first: Any
    second: Any


class Likelihood(eqx.Module):
    """Distribution of the observed labels given the field at the labelled nodes.

    A subclass declares its hyperparameters as fields and defines `log_prob`. Samplers and
    approximations ask the class attributes and properties below, and never the type.

    Attributes
    ----------
    has_gradient : bool, default True
        Whether `log_prob` has a useful gradient in ``u``.
    is_step : bool, default False
        Whether `log_prob` takes two values for each label, one on either side of a threshold of
        ``u``; see `StepLikelihood`.
    uses_all_nodes : bool, default False
        Whether `log_prob` is evaluated at every node instead of the labelled nodes only. A node
        without label then has ``y = 0``.
    has_gaussian_tails : bool, default False
        Whether `log_prob` falls like ``−u²`` far on the wrong side of the label, so that a Gaussian
        approximation of the posterior has tails of the right order.
    n_classes : int or Distribution, optional
        Number of classes K of a multiclass likelihood, a field of the subclass. Without it, and
        with 2, labels are −1 and +1 and there is one field u. With more, and where K is learnt,
        labels are codes from 0 to K − 1 and u has one column per class.
    """

    has_gradient: ClassVar[bool] = True
    is_step: ClassVar[bool] = False
    uses_all_nodes: ClassVar[bool] = False
    has_gaussian_tails: ClassVar[bool] = False

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        """Refuse a subclass that lacks a required method."""
        check_defined(cls)
        return super().__new__(cls)

    def __check_init__(self) -> None:
        check_hyperparameters(self)

    @property
    def learnt(self) -> dict[str, Distribution]:
        """Hyperparameters that are distributions, by name."""
        return learnt_of(self)

    @property
    def link(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Weights w and scales s of a random label's mean ``Σ_k w_k erf(u / (s_k √2))``.

        None if the label is the sign of u and therefore not random given u.
        """
        return None

    @property
    def is_multiclass(self) -> bool:
        """Whether there is one field per class, and labels are codes from 0 on."""
        n_classes = getattr(self, "n_classes", 2)
        return not isinstance(n_classes, int) or n_classes > 2

    @property
    def n_fields(self) -> int:
        """Number of fields at a node: 1 for two classes, else the largest number of classes."""
        return max_classes(getattr(self, "n_classes", 2)) if self.is_multiclass else 1

    @property
    def min_classes(self) -> int:
        """Smallest possible number of classes; it is below `n_fields` only if K is learnt."""
        return min_classes(getattr(self, "n_classes", 2))

    @property
    def latent_noise_std(self) -> Hyperparameter:
        """Standard deviation γ of Gaussian noise that is added to u before a threshold, or None.

        If it is a number, the label is ``S(u + γ ε)`` with ε ~ N(0, 1) in every field. A sampler
        can then sample ε with u; the likelihood of ``u + γ ε`` is `NoiseFree`. It is a
        `Distribution` if γ is learnt.
        """
        return None

    @property
    def probit_noise_std(self) -> Hyperparameter:
        """Noise γ of the `Probit` that is equal to this likelihood or approximates it, or None.

        Expectation propagation replaces a label of K classes by K − 1 binary labels +1 of the
        differences ``u_y − u_k`` under ``Probit(√2 γ)``. Model selection scores each class against
        the rest under ``Probit(γ)``. None, the default, means that no probit is close.
        """
        return None

    @property
    def is_step_given_noise(self) -> bool:
        """Whether the likelihood is a step, or becomes one once its noise is sampled with u."""
        return self.is_step or self.latent_noise_std is not None

    def one_vs_rest_likelihood(self) -> "Likelihood":
        """Return the binary likelihood of one class against the rest; itself for two classes.

        Model selection scores each class of a multiclass likelihood without `probit_noise_std` by
        it.

        Raises
        ------
        IncompatibleParts
            If the likelihood is multiclass and its class does not define this method.
        """
        if self.is_multiclass:
            raise IncompatibleParts(
                f"{self} has no binary likelihood of one class against the rest; define "
                "one_vs_rest_likelihood(), or give numbers for all hyperparameters"
            )
        return self

    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """Return the two values of `log_prob` of each label; see `StepLikelihood`.

        Raises
        ------
        IncompatibleParts
            If `is_step` is false.
        """
        raise IncompatibleParts(f"{self} has no two levels; use a StepLikelihood")

    @abstractmethod
    def log_prob(self, u: Float[Array, "J *K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Log probability of each label y, −1 or +1 or the code of its class, up to a constant.

        The constant is free of ``u`` and of every hyperparameter that may be learnt.
        """

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """``log ∫ p(y | u) N(u; mean, variance) du`` at each label: what a Gaussian belief expects.

        By Gauss-Hermite quadrature; a closed form overrides it. Its first two derivatives in the
        mean are the moments that expectation propagation matches.
        """
        nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)
        u = mean[:, None] + jnp.sqrt(variance)[:, None] * jnp.asarray(nodes, mean.dtype)[None, :]
        values = jax.vmap(lambda column: self.log_prob(column, y), in_axes=1, out_axes=1)(u)
        log_weights = jnp.asarray(np.log(weights / weights.sum()), mean.dtype)
        return jax.nn.logsumexp(values + log_weights[None, :], axis=1)

    def tilt(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> Tilted:
        """`log_partition` and its derivatives, in NumPy: of two classes, of fixed numbers.

        By automatic differentiation; a closed form, for which nothing is compiled, overrides it.
        """
        with jax.enable_x64(True):
            return Tilted(
                *map(np.asarray, _differentiated(with_dtype(self, jnp.float64), mean, variance, y))
            )

    def tilted_label_mean(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> PerLabel:
        """``E sign(u)`` under likelihood × belief: Gauss-Legendre quadrature of each half-line."""
        with jax.enable_x64(True):
            return np.asarray(_mean_sign(with_dtype(self, jnp.float64), mean, variance, y))

    def tilted_slopes(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> dict[str, float]:
        """Derivative of the sum of `log_partition` in each hyperparameter, by name."""
        with jax.enable_x64(True):
            slopes = _slopes(with_dtype(self, jnp.float64), mean, variance, y)
        numbers = [
            name for name, value in vars(self).items() if isinstance(value, float | np.floating)
        ]
        return {name: float(getattr(slopes, name)) for name in numbers}


class StepLikelihood(Likelihood):
    """``a + (b − a) H(y u)`` with the unit step H: the case g = 0 of the family of MATH §2.

    Samplers may know the two levels, b on the label's side of zero and a on the other, and then
    need no evaluation between them. sign(0) = +1. Of several classes, b is where the label's own
    field is the largest.
    """

    has_gradient: ClassVar[bool] = False
    is_step: ClassVar[bool] = True

    @abstractmethod
    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """``log b`` and ``log a`` of each label."""

    def log_prob(self, u: Float[Array, "J *K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """``log b`` where u has the sign, or the largest column, of the label; else ``log a``."""
        right, wrong = self.log_levels(y)
        if u.ndim == y.ndim:
            return array_namespace(u).where((u >= 0) == (y > 0), right, wrong)
        n_classes = getattr(self, "n_classes", u.shape[1])
        values = jnp.where(restricted(u, n_classes).argmax(axis=1) == codes(y), right, wrong)
        return jnp.where(codes(y) < n_classes, values, -jnp.inf)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """``log(b Φ(z) + a Φ(−z))`` with ``z = y mean / √variance``."""
        z = y * mean / jnp.sqrt(variance)
        right, wrong = self.log_levels(y)
        return jnp.logaddexp(right + log_normal_cdf(z), wrong + log_normal_cdf(-z))

    def tilt(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> Tilted:
        """In closed form: ``Z'/Z`` weighs the hazards of both sides by their shares of Z."""
        z, right, wrong, total = self._sides(mean, variance, y)
        slope = np.exp(right - total) * normal_hazard(z)
        slope -= np.exp(wrong - total) * normal_hazard(-z)
        return Tilted(total, y * slope / np.sqrt(variance), -slope * (z + slope) / variance)

    def tilted_label_mean(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> PerLabel:
        """The label's side's share of Z less the other's, times the label."""
        _, right, wrong, total = self._sides(mean, variance, y)
        label_mean: np.ndarray = y * (np.exp(right - total) - np.exp(wrong - total))
        return label_mean

    def _sides(self, mean: Any, variance: Any, y: Any) -> tuple[Any, Any, Any, Any]:
        """z; the logs of ``b Φ(z)`` and ``a Φ(−z)``, and of their sum."""
        z = y * mean / np.sqrt(variance)
        with jax.enable_x64(True):  # of levels that are JAX's
            right, wrong = map(np.asarray, self.log_levels(y))
        right, wrong = right + log_ndtr(z), wrong + log_ndtr(-z)
        return z, right, wrong, np.logaddexp(right, wrong)


@eqx.filter_jit
def _differentiated(likelihood: Any, mean: Array, variance: Array, y: Array) -> Any:
    def total(mean: Array) -> Array:
        return likelihood.log_partition(mean, variance, y).sum()

    derivatives = jax.jvp(jax.grad(total), (mean,), (jnp.ones_like(mean),))
    return likelihood.log_partition(mean, variance, y), *derivatives


@eqx.filter_jit
def _mean_sign(likelihood: Any, mean: Array, variance: Array, y: Array) -> Array:
    nodes, weights = np.polynomial.legendre.leggauss(QUADRATURE_NODES)
    deviation = jnp.sqrt(variance)

    def log_mass(sign: float) -> Array:
        near = jnp.maximum(sign * mean - WIDTH * deviation, 0.0)
        far = jnp.maximum(sign * mean + WIDTH * deviation, near + deviation)
        half = (far - near)[:, None] / 2
        u = sign * (near[:, None] + half * (nodes + 1)[None, :])
        log_belief = -((u - mean[:, None]) ** 2) / (2 * variance[:, None])
        log_prob = jax.vmap(lambda column: likelihood.log_prob(column, y), in_axes=1, out_axes=1)(u)
        return jax.nn.logsumexp(log_prob + log_belief + jnp.log(weights[None, :] * half), axis=1)

    return jnp.tanh((log_mass(1.0) - log_mass(-1.0)) / 2)


@eqx.filter_jit
def _slopes(likelihood: Any, mean: Array, variance: Array, y: Array) -> Any:
    def total(own: Any) -> Array:
        return own.log_partition(mean, variance, y).sum()

    return eqx.filter_grad(total)(likelihood)  # type: ignore[no-untyped-call]
