"""Base classes of likelihoods: the log probability of a label given the field."""

import dataclasses
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, TypeAlias

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
from graphuq.utils.arrays import (
    Array,
    array_namespace,
    double_precision,
    mapped,
    special_functions,
)
from graphuq.utils.checks import check_fields
from graphuq.utils.part import Part
from graphuq.utils.special_functions import log_normal_cdf, normal_hazard, normal_quadrature

QUADRATURE_NODES = 64  # nodes of each one-dimensional quadrature rule

PerLabel: TypeAlias = Float[np.ndarray, " J"]


class Tilted(NamedTuple):
    """Log normaliser of likelihood × Gaussian and its derivatives, shape (J,) each.

    Attributes
    ----------
    log_partition : numpy.ndarray
        Log probability of the label under the Gaussian.
    first, second : numpy.ndarray
        Derivatives of `log_partition` in the mean of the Gaussian. The moments of likelihood ×
        Gaussian follow from them.
    """

    log_partition: PerLabel
    first: PerLabel
    second: PerLabel


class Likelihood(Part):
    """Distribution of the observed labels given the field at the labelled nodes.

    A subclass declares its hyperparameters as fields and defines `log_prob`; nothing else is
    required. Samplers and approximations read the attributes below and never ask for the type:

    ==========================  ===========================  ====================================
    attribute                   default                      read by
    ==========================  ===========================  ====================================
    `has_gradient`              True                         samplers that follow gradients
    `is_step`                   False                        exact Hamiltonian samplers
    `has_levels`                `is_step`                    leave-one-out
    `uses_all_nodes`            False                        posterior: labelled nodes, or all
    `has_gaussian_tails`        False                        automatic choice of the sampler
    `takes_weights`             False                        posterior with weights of labels
    `has_soft_labels`           False                        posterior, evidence, leave-one-out
    `is_multiclass`             K > 2 or K learnt            posterior: one field, or K fields
    `has_codes`                 `is_multiclass`              everything that names classes
    `is_ordered`                False                        models, and changes of labels
    `latent_noise_std`          None                         samplers that sample the noise too
    `probit_noise_std`          None                         expectation propagation, evidence
    `link`                      None                         probabilities of random labels
    ==========================  ===========================  ====================================

    Attributes
    ----------
    has_gradient : bool, default True
        Whether `log_prob` has a useful gradient in ``u``.
    is_step : bool, default False
        Whether `log_prob` takes two values for each label, one on either side of a threshold of
        ``u``; see `StepLikelihood`.
    has_levels : bool, default False
        Whether the probability of a label takes finitely many values. `log_levels` then gives the
        largest and the smallest. True for a `StepLikelihood`.
    uses_all_nodes : bool, default False
        Whether `log_prob` is evaluated at every node instead of the labelled nodes only. A node
        without label then has ``y = 0``, or −1 if the likelihood is multiclass.
    has_gaussian_tails : bool, default False
        Whether `log_prob` falls like ``−u²`` far on the wrong side of the label. A Gaussian
        approximation of the posterior then has tails of the right order.
    takes_weights : bool, default False
        Whether the label is S(u + noise), so that u times √w at a label divides the variance of its
        noise by w.
    has_soft_labels : bool, default False
        Whether the likelihood itself holds what is known of each labelled node, as `SoftProbit`
        does; labels are then its ``most_probable``.
    is_ordered : bool, default False
        Whether the classes are grades with an order, as those of `Ordered`.
    n_classes : int or Distribution, optional
        Number of classes K of a multiclass likelihood, a field of the subclass. Without it, and
        with 2, labels are −1 and +1 and there is one field u. With more, and where K is learnt,
        labels are codes from 0 to K − 1 and u has one column per class.

    Raises
    ------
    InvalidInput
        If the subclass does not define `log_prob`, or a hyperparameter is no number.

    Examples
    --------
    A likelihood with heavier tails than the logistic one. A field made with ``parameter`` accepts
    a number, or a distribution if it is to be learnt. ``log_prob`` is written with `jax.numpy`.

    >>> import jax.numpy as jnp, numpy as np, graphuq as gq
    >>> from graphuq.distributions import Hyperparameter, parameter
    >>> class Cauchit(gq.likelihoods.Likelihood):
    ...     scale: Hyperparameter = parameter(1.0)
    ...
    ...     def log_prob(self, u, y):
    ...         return jnp.log(0.5 + jnp.arctan(y * u / self.scale) / jnp.pi)
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> posterior = gq.Posterior(gq.laplacian_spectrum(graph), gq.priors.InverseLaplacian(),
    ...                          Cauchit(0.2), labelled=[0, 8], labels=[-1, 1])
    >>> result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    >>> np.sign(gq.results.label_mean(result)[[1, 7]]).tolist()
    [-1.0, 1.0]
    """

    has_gradient: ClassVar[bool] = True
    is_step: ClassVar[bool] = False
    has_levels: ClassVar[bool] = False
    uses_all_nodes: ClassVar[bool] = False
    has_gaussian_tails: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = False
    has_soft_labels: ClassVar[bool] = False
    is_ordered: ClassVar[bool] = False
    prior_mean: ClassVar[Any] = 0.0  # of u, which `ShiftedLikelihood` adds to its argument

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        """Refuse a subclass that lacks a required method."""
        check_defined(cls)
        return super().__new__(cls)

    def __check_init__(self) -> None:
        check_hyperparameters(self)
        check_fields(self, (Distribution,))

    @property
    def learnt(self) -> dict[str, Distribution]:
        """Hyperparameters that are distributions, by name."""
        return learnt_of(self)

    @property
    def unshifted(self) -> "Likelihood":
        """The likelihood as a function of u; itself unless the prior of u has a mean."""
        return self

    @property
    def link(self) -> tuple[np.ndarray, ...] | None:
        """Weights w and scales s of a random label's mean ``Σ_k w_k erf(u / (s_k √2))``.

        For several classes Gaussian noise of deviation s_k is added to each field before the
        largest is taken. It is None if the label is S(u) and therefore not random given u. Classes
        in an order have a third array, the thresholds of u between them, shape (K − 1,), or one
        row for each component of a mixture of priors.
        """
        return None

    @property
    def is_multiclass(self) -> bool:
        """Whether there is one field per class."""
        n_classes = getattr(self, "n_classes", 2)
        return not isinstance(n_classes, int) or n_classes > 2

    @property
    def has_codes(self) -> bool:
        """Whether labels are codes from 0 on, and not −1 and +1."""
        return self.is_multiclass

    @property
    def n_fields(self) -> int:
        """Number of fields at a node: the largest number of classes if multiclass, else 1."""
        return self.max_classes if self.is_multiclass else 1

    @property
    def max_classes(self) -> int:
        """Largest possible number of classes."""
        return max_classes(getattr(self, "n_classes", 2))

    @property
    def min_classes(self) -> int:
        """Smallest possible number of classes; it is below `max_classes` only if K is learnt."""
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
        the rest under ``Probit(γ)``. The default, None, means that no probit is close.
        """
        return None

    @property
    def is_step_given_noise(self) -> bool:
        """Whether the likelihood is a step, or becomes one once its noise is sampled with u."""
        return self.is_step or self.latent_noise_std is not None

    def of_component(self, number: int) -> "Likelihood":
        """Return the likelihood of one component of a mixture of priors; itself, unless each has
        its own.
        """
        return self

    def rescaled(self, factor: float) -> "Likelihood":
        """Return the likelihood of ``factor × u``, with the same probabilities.

        Raises
        ------
        IncompatibleParts
            If the label is not S(u + noise), and the class does not define this method.
        """
        if self.latent_noise_std is None:
            raise IncompatibleParts(f"{self} has no scale of u; define rescaled(factor)")
        changed: Any = {"noise_std": factor * self.latent_noise_std}
        return dataclasses.replace(self, **changed)

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
            If `has_levels` is false.
        """
        raise IncompatibleParts(f"{self} has no two levels; use a StepLikelihood")

    @abstractmethod
    def log_prob(self, u: Float[Array, "J *K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return the log probability of each label, up to a constant.

        Parameters
        ----------
        u : array, shape (J,) or (J, K)
            Field at the labelled nodes; a multiclass likelihood has one column per class.
        y : array, shape (J,)
            Labels −1 or +1, or codes of classes.

        Returns
        -------
        array, shape (J,)
            The constant must depend neither on ``u`` nor on a hyperparameter that may be learnt.
        """

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """Return ``log ∫ p(y | u) N(u; mean, variance) du`` at each label.

        The default is Gauss-Hermite quadrature; a subclass may override it by a closed form.
        Expectation propagation matches the moments that its first two derivatives in the mean give.
        """
        xp, (nodes, logs) = array_namespace(mean), normal_quadrature(QUADRATURE_NODES)
        u = mean[None, :] + xp.sqrt(variance)[None, :] * xp.asarray(nodes, mean.dtype)[:, None]
        values = mapped(lambda u: self.log_prob(u, y), u)
        log_weights = xp.asarray(logs, mean.dtype)
        return special_functions(values).logsumexp(values + log_weights[:, None], axis=0)

    def tilt(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> Tilted:
        """Return `log_partition` and its derivatives as NumPy arrays.

        It is defined for two classes and fixed hyperparameters. The default is automatic
        differentiation by JAX; a subclass may override it by a closed form.

        Raises
        ------
        MissingPackage
            If JAX is needed, and not installed.
        """
        from graphuq.likelihoods import compiled

        return Tilted(*compiled.with_derivatives(self, mean, variance, y))

    def tilted_label_mean(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> PerLabel:
        """Return ``E sign(u)`` under likelihood × Gaussian.

        The default is Gauss-Legendre quadrature on each half-line.
        """
        from graphuq.likelihoods import compiled

        return compiled.mean_sign(self, mean, variance, y)

    def tilted_slopes(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> dict[str, float]:
        """Return the derivative of the sum of `log_partition` in each hyperparameter, by name."""
        from graphuq.likelihoods import compiled

        return compiled.slopes(self, mean, variance, y)


class StepLikelihood(Likelihood):
    """Likelihood with two values, ``a + (b − a) H(y u)`` with the unit step H.

    The value is b on the label's side of zero and a on the other side; sign(0) = +1. A multiclass
    likelihood has the value b where the field of the label is the largest. A subclass defines
    `log_levels` in place of `log_prob`. See `docs/theory/posterior.md`, "The posterior".
    """

    has_gradient: ClassVar[bool] = False
    is_step: ClassVar[bool] = True
    has_levels: ClassVar[bool] = True

    @abstractmethod
    def log_levels(self, y: Float[Array, " J"]) -> tuple[Float[Array, " J"], Float[Array, " J"]]:
        """Return ``log b`` and ``log a`` of each label."""

    def log_prob(self, u: Float[Array, "J *K"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return ``log b`` where the sign or largest column of u is the label, else ``log a``."""
        right, wrong = self.log_levels(y)
        if u.ndim == y.ndim:
            return array_namespace(u).where((u >= 0) == (y > 0), right, wrong)
        n_classes = getattr(self, "n_classes", u.shape[1])
        xp = array_namespace(u)
        values = xp.where(restricted(u, n_classes).argmax(axis=1) == codes(y), right, wrong)
        return xp.where(codes(y) < n_classes, values, -np.inf)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """Return ``log(b Φ(z) + a Φ(−z))`` with ``z = y mean / √variance``."""
        xp = array_namespace(mean)
        z = y * mean / xp.sqrt(variance)
        right, wrong = self.log_levels(y)
        return xp.logaddexp(right + log_normal_cdf(z), wrong + log_normal_cdf(-z))

    def tilt(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> Tilted:
        """Return `log_partition` and its derivatives in closed form.

        ``Z'/Z`` is the sum of the hazards of both sides, weighted by their shares of Z.
        """
        z, right, wrong, total = self._sides(mean, variance, y)
        slope = np.exp(right - total) * normal_hazard(z)
        slope -= np.exp(wrong - total) * normal_hazard(-z)
        return Tilted(total, y * slope / np.sqrt(variance), -slope * (z + slope) / variance)

    def tilted_label_mean(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> PerLabel:
        """Return the label times the difference of the shares of Z on its side and on the other."""
        _, right, wrong, total = self._sides(mean, variance, y)
        label_mean: np.ndarray = y * (np.exp(right - total) - np.exp(wrong - total))
        return label_mean

    def _sides(
        self, mean: PerLabel, variance: PerLabel, y: PerLabel
    ) -> tuple[PerLabel, PerLabel, PerLabel, PerLabel]:
        """Return z, and the logs of ``b Φ(z)``, of ``a Φ(−z)`` and of their sum."""
        z = y * mean / np.sqrt(variance)
        with double_precision():  # the levels may be computed with JAX
            right, wrong = map(np.asarray, self.log_levels(y))
        right, wrong = right + log_ndtr(z), wrong + log_ndtr(-z)
        return z, right, wrong, np.logaddexp(right, wrong)
