"""Likelihood of ordered classes, such as grades: thresholds cut one noisy field into classes."""

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from graphuq.errors import IncompatibleParts, require
from graphuq.likelihoods.base import Likelihood, PerLabel, Tilted
from graphuq.likelihoods.multiclass import codes
from graphuq.utils.arrays import Array, array_namespace, is_of_jax
from graphuq.utils.checks import describe, require_scale
from graphuq.utils.part import part_field
from graphuq.utils.special_functions import log_normal_cdf, uniform_quadrature

REMEDY = "give K − 1 finite numbers, each larger than the one before"
NOISE_REMEDY = "give a number γ > 0; how much of a label is noise, the scale of the prior tells"
FARTHEST = 1e5  # deviations from a threshold, beyond which the probability no longer changes
SIDE_NODES, SIDE_WIDTH = 64, 9.0  # quadrature on each half-line; half its range, in deviations


def _numbers(argument: str, remedy: str) -> Any:
    """Return what turns values into an array in double; arrays of JAX, or shapes, stay."""

    def converted(values: Any) -> Any:
        if is_of_jax(values):
            return values
        try:
            array = np.asarray(values)
        except ValueError:  # rows of different lengths
            array = np.asarray(None)
        require(array.dtype.kind in "iuf", argument, describe(values), remedy)
        return float(array) if array.ndim == 0 else array.astype(np.float64)

    return converted


class Ordered(Likelihood):
    r"""Grade k where ``b_k < u + γ ε ≤ b_{k+1}``, ε ~ N(0, 1), with ``b_0 = −∞`` and ``b_K = ∞``.

    The probability of a grade is ``Φ((b_{k+1} − u)/γ) − Φ((b_k − u)/γ)``: the cumulative probit.
    There is one field u for all grades. With two grades and the threshold 0 it is the `Probit`
    with ``random_labels``. Source: Chu & Ghahramani 2005, (7), for Gaussian processes; see
    docs/theory/labels.md, "Ordered classes", for what fixes the scale of u.

    Labels are codes from 0, the lowest grade, to K − 1. What is reported of a node is the
    probability of a label with noise of its own, like those that were given.

    Parameters
    ----------
    thresholds : array_like, shape (K − 1,)
        ``b_1 < … < b_{K−1}``, in units of u. `graphuq.models.OrderedAverage` learns them.
    noise_std : float or array_like of shape (M,), default 1.0
        γ > 0, in units of u; one for each component, if the prior is a `graphuq.models.Mixture`.

    Raises
    ------
    InvalidInput
        If thresholds are no increasing numbers, or γ is no positive number.

    Examples
    --------
    >>> import numpy as np, graphuq as gq
    >>> graph = gq.graphs.knn_graph(np.arange(9.0)[:, None], n_neighbors=2)
    >>> likelihood = gq.likelihoods.Ordered([-0.5, 0.5], noise_std=0.3)
    >>> posterior = gq.Posterior(gq.laplacian_spectrum(graph), gq.priors.InverseLaplacian(),
    ...                          likelihood, labelled=[0, 4, 8], labels=[0, 1, 2])
    >>> result = gq.infer(posterior, gq.inference.ExpectationPropagation())
    >>> result.probabilities.argmax(axis=1)[[1, 4, 7]].tolist()
    [0, 1, 2]
    """

    thresholds: Any = part_field(converter=_numbers("thresholds", REMEDY))
    noise_std: Any = part_field(default=1.0, converter=_numbers("noise_std", NOISE_REMEDY))
    has_gaussian_tails: ClassVar[bool] = True
    is_ordered: ClassVar[bool] = True
    is_multiclass: ClassVar[bool] = False  # one field
    has_codes: ClassVar[bool] = True

    def __check_init__(self) -> None:
        b, noise = self.thresholds, self.noise_std
        if isinstance(b, float | np.ndarray):
            require(np.ndim(b) == 1 and np.size(b) > 0, "thresholds", describe(b), REMEDY)
            rises = np.isfinite(b).all() and (np.diff(b) > 0).all()
            require(rises, "thresholds", f"{np.asarray(b).tolist()}", REMEDY)
        if isinstance(noise, float | np.ndarray):
            require(np.ndim(noise) <= 1, "noise_std", describe(noise), NOISE_REMEDY)
            positive = bool((np.isfinite(noise) & (np.asarray(noise) > 0)).all())
            require(positive, "noise_std", f"{np.asarray(noise).tolist()}", NOISE_REMEDY)
            for value in np.ravel(noise).tolist():
                require_scale("noise_std", value)

    @property
    def n_classes(self) -> int:
        """Number of grades K."""
        return int(self.thresholds.shape[-1]) + 1

    @property
    def link(self) -> tuple[np.ndarray, ...]:
        """Weight 1, scale γ, or that of each component, and the thresholds."""
        return np.ones(1), np.atleast_1d(self.noise_std), np.asarray(self.thresholds)

    def of_component(self, number: int) -> "Ordered":
        """Return the likelihood with the noise of one component of a mixture."""
        if np.ndim(self.noise_std) == 0:
            return self
        return Ordered(self.thresholds, float(self.noise_std[number]))

    def rescaled(self, factor: float) -> "Ordered":
        """Return the likelihood of ``factor × u``, with the same probabilities."""
        return Ordered(factor * self.thresholds, factor * self.noise_std)

    def log_prob(self, u: Float[Array, " J"], y: Float[Array, " J"]) -> Float[Array, " J"]:
        """Return ``log(Φ((b_{y+1} − u)/γ) − Φ((b_y − u)/γ))``, stable in both tails."""
        return self._log_mass(u, self._noise, y)

    def log_partition(
        self, mean: Float[Array, " J"], variance: Float[Array, " J"], y: Float[Array, " J"]
    ) -> Float[Array, " J"]:
        """Return `log_prob` of the mean with the noise ``√(γ² + variance)``."""
        total = array_namespace(mean).sqrt(self._noise**2 + variance)
        return self._log_mass(mean, total, y)

    def tilt(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> Tilted:
        """Return `log_partition` and its derivatives in closed form.

        With ``s = √(γ² + variance)``, ends a and c of the label's interval in units of s around
        the mean, and ``r(z) = φ(z)/Z``, they are ``(r(a) − r(c))/s`` and
        ``(a r(a) − c r(c))/s² − first²``. An interval above the mean is turned over, so that no
        difference of numbers near 1 is taken.
        """
        scale = np.sqrt(self._noise**2 + variance)
        sign, lower, upper, log_z = self._turned(mean, scale, y)
        at_lower, at_upper = _density_over(lower, log_z), _density_over(upper, log_z)
        slope = at_lower - at_upper
        width = np.where(np.isfinite(lower), upper - lower, 0.0)  # the density at −∞ is 0
        curvature = slope * (upper - slope) - width * at_lower
        return Tilted(log_z, sign * slope / scale, curvature / scale**2)

    def threshold_slopes(
        self, mean: PerLabel, variance: PerLabel, y: PerLabel
    ) -> Float[np.ndarray, " k"]:
        """Return the derivative of the sum of `log_partition` in each threshold, shape (K − 1,)."""
        scale, grade = np.sqrt(self._noise**2 + variance), codes(np.asarray(y))
        lower, upper = self._ends(mean, scale, grade)
        log_z = _log_difference(*_turn(lower, upper)[1:])
        slopes = np.zeros(self.n_classes + 1)
        np.add.at(slopes, grade, -_density_over(lower, log_z) / scale)
        np.add.at(slopes, grade + 1, _density_over(upper, log_z) / scale)
        return slopes[1:-1]

    def tilted_slopes(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> dict[str, float]:
        """Return the derivative in γ; Z solves the heat equation ``∂Z/∂γ² = Z''/2``."""
        _, first, second = self.tilt(mean, variance, y)
        return {"noise_std": float(self._noise * (second + first**2).sum())}

    def tilted_label_mean(self, mean: PerLabel, variance: PerLabel, y: PerLabel) -> PerLabel:
        """Return ``E sign(u)`` under likelihood × Gaussian, by quadrature on each half-line."""
        nodes, weights = uniform_quadrature(SIDE_NODES)
        std, sides = np.sqrt(variance), []
        for sign in (1.0, -1.0):
            near = np.maximum(sign * mean - SIDE_WIDTH * std, 0.0)
            half = np.maximum(sign * mean + SIDE_WIDTH * std - near, std)[:, None] / 2
            u = sign * (near[:, None] + half * (nodes + 1))
            labels = np.broadcast_to(y[:, None], u.shape)
            logs = self._log_mass(u.ravel(), self._noise, labels.ravel()).reshape(u.shape)
            logs = logs - (u - mean[:, None]) ** 2 / (2 * variance[:, None])
            sides.append(np.logaddexp.reduce(logs + np.log(weights * half), axis=1))
        label_mean: np.ndarray = np.tanh((sides[0] - sides[1]) / 2)
        return label_mean

    @property
    def _noise(self) -> Any:
        """γ, if it is one number."""
        if np.ndim(self.noise_std) > 0:
            raise IncompatibleParts(
                f"{self} has the noise of {len(self.noise_std)} components, and needs a mixture "
                "of as many priors; give one number"
            )
        return self.noise_std

    def _log_mass(self, u: Array, scale: Any, y: Array) -> Array:
        xp = array_namespace(u)
        lower, upper = (xp.clip(z, -FARTHEST, FARTHEST) for z in self._ends(u, scale, codes(y)))
        return _log_difference(*_turn(lower, upper)[1:])

    def _turned(self, mean: PerLabel, scale: PerLabel, y: PerLabel) -> tuple[Any, ...]:
        """Return the sign of the field, and ends of the intervals below its mean, and log Z."""
        sign, lower, upper = _turn(*self._ends(mean, scale, codes(np.asarray(y))))
        return sign, lower, upper, _log_difference(lower, upper)

    def _ends(self, u: Array, scale: Any, grade: Array) -> tuple[Array, Array]:
        """Return both ends of the interval of each label, in units of the noise around u."""
        xp = array_namespace(u)
        infinite = xp.full(1, np.inf, dtype=u.dtype)
        ends = xp.concatenate([-infinite, xp.asarray(self.thresholds, u.dtype), infinite])
        return (ends[grade] - u) / scale, (ends[grade + 1] - u) / scale


def _turn(lower: Array, upper: Array) -> tuple[Array, Array, Array]:
    """Return the sign, and ends of intervals that are turned over if they lie above zero."""
    xp = array_namespace(lower)
    above = lower + upper > 0
    sign = xp.where(above, -1.0, 1.0)
    return sign, xp.where(above, -upper, lower), xp.where(above, -lower, upper)


def _log_difference(lower: Array, upper: Array) -> Array:
    """Return ``log(Φ(upper) − Φ(lower))`` of intervals most of which lies below zero."""
    xp = array_namespace(lower)
    log_upper = log_normal_cdf(upper)
    behind = xp.minimum(log_normal_cdf(lower) - log_upper, -float(np.finfo(np.float32).tiny))
    return log_upper + xp.log(-xp.expm1(behind))


def _density_over(z: np.ndarray, log_z: np.ndarray) -> np.ndarray:
    """Return ``φ(z)/Z``."""
    found: np.ndarray = np.exp(-(z**2) / 2 - np.log(2 * np.pi) / 2 - log_z)
    return found
