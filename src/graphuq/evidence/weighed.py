"""Hyperparameters of a regression: those of largest evidence, and others weighed by evidence.

A few numbers leave much of the size of the field and of the noise open. An answer that took the
best ones for known would be too certain. So it is a mean over points, weighed by the posterior of
the hyperparameters. See docs/theory/numbers.md, "Hyperparameters".
"""

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, logsumexp, softmax
from scipy.stats import chi2, norm, qmc

from graphuq.errors import InvalidInput
from graphuq.evidence.hyperpriors import Hyperprior, hyperpriors_of
from graphuq.evidence.quasi_newton import FAILED, Optimum, log_derivative, minimize_loss
from graphuq.evidence.regression import WithEvidence
from graphuq.utils.arrays import single_threaded_blas

MAX_ITERATIONS = 60
# In standard deviations of the given numbers; wide, since the evidence knows them well.
SCALES = {
    "field_std": Hyperprior(1.0, 1.0, 0.01, 100.0),
    "noise_std": Hyperprior(0.5, 1.0, 0.003, 10.0),
    "linear_std": Hyperprior(0.5, 1.0, 0.005, 50.0),
}
SHAPES_LOG_STD = 0.5  # of τ and α around their medians
NOISE_STARTS = (0.1, 0.7)  # the evidence may have a maximum for each
APART, LOWER = 0.1, 8.0  # deviations of the hyperprior; log evidence that a second maximum lacks
N_NEAR, N_WIDE = 36, 12  # points about the maxima, and of the hyperprior
DEGREES = 5.0  # of freedom of Student's t about a maximum
STEP = 0.01  # of the logarithms, for second derivatives
SMALL = 1e-3  # points of less than this part of the largest weight are left out


class Weighed(NamedTuple):
    """Points of hyperparameters with their weights.

    Attributes
    ----------
    names : tuple of str
    values : numpy.ndarray, shape (K, p)
    weights : numpy.ndarray, shape (K,)
        Posterior probabilities, which sum to 1.
    """

    names: tuple[str, ...]
    values: Float[np.ndarray, "K p"]
    weights: Float[np.ndarray, " K"]


Model = TypeVar("Model", bound=WithEvidence)


class LogPosterior(Generic[Model]):
    """Posterior of the logarithms of hyperparameters: evidence times log-normal hyperpriors.

    Parameters
    ----------
    start : GraphRegression or GraphCounts
    names : sequence of str
        Some of "tau", "alpha", "field_std", "noise_std" and "linear_std". The others keep their
        values.
    """

    def __init__(self, start: Model, names: Sequence[str]) -> None:
        shapes = hyperpriors_of(start.spectrum).items()
        hyperpriors = {n: one._replace(log_std=SHAPES_LOG_STD) for n, one in shapes} | SCALES
        chosen = [hyperpriors[name] for name in names]
        self.names, self.latest = tuple(names), start  # counts begin where the last ones ended
        self.medians = np.log([one.median for one in chosen])
        self.widths = np.array([one.log_std for one in chosen])
        self.bounds = np.log([(one.lower, one.upper) for one in chosen])

    def at(self, log_values: Float[np.ndarray, " p"]) -> Model:
        """Return the regression with hyperparameters of given logarithms."""
        values = dict(zip(self.names, np.exp(log_values), strict=True))
        return with_values(self.latest, values)

    def loss(self, log_values: Float[np.ndarray, " p"]) -> tuple[float, Float[np.ndarray, " p"]]:
        """Return minus the log posterior up to a constant, and its gradient."""
        model, value = self._evidence(log_values)
        if model is None:
            return FAILED, np.zeros_like(log_values)
        offset = (log_values - self.medians) / self.widths
        try:
            slope = slopes_of(model, self.names)
        except np.linalg.LinAlgError:
            return FAILED, np.zeros_like(log_values)
        return 0.5 * float(offset @ offset) - value, offset / self.widths - slope

    def log_density(self, log_values: Float[np.ndarray, " p"], best: Model) -> float:
        """Return the log of evidence times hyperpriors, −∞ out of bounds or without evidence.

        Counts begin where those of the largest evidence ended, as those of a file do.
        """
        low, high = self.bounds.T
        if ((log_values < low) | (log_values > high)).any():
            return -np.inf
        self.latest = best
        value = self._evidence(log_values)[1]
        return value + float(norm.logpdf(log_values, self.medians, self.widths).sum())

    def _evidence(self, log_values: Float[np.ndarray, " p"]) -> tuple[Model | None, float]:
        try:
            model = self.at(log_values)
            value = model.log_evidence
        except np.linalg.LinAlgError:
            return None, -np.inf
        if not np.isfinite(value):
            return None, -np.inf
        self.latest = model
        return model, value

    def maxima(self) -> list[Optimum]:
        """Return the largest maximum and, if there is another one that matters, that too.

        They are sought by a quasi-Newton method, from small and from large noise.

        Raises
        ------
        InvalidInput
            If the evidence is not finite at any start.
        """
        found = []
        for noise in NOISE_STARTS if "noise_std" in self.names else NOISE_STARTS[:1]:
            start = self.medians.copy()
            if "noise_std" in self.names:
                start[self.names.index("noise_std")] = np.log(noise)
            with single_threaded_blas():
                end = minimize_loss(
                    self.loss,
                    start,
                    self.bounds,
                    max_iterations=MAX_ITERATIONS,
                    loss_tolerance=1e-9,
                    gradient_tolerance=1e-5,
                )
            if end.loss < FAILED:
                found.append(end)
        if not found:
            raise InvalidInput("y", "no finite evidence", "give numbers of similar size")
        best, *others = sorted(found, key=lambda end: end.loss)
        apart = [np.abs((end.at - best.at) / self.widths).max() > APART for end in others]
        return [best] + [
            end
            for end, is_apart in zip(others, apart, strict=True)
            if is_apart and end.loss < best.loss + LOWER
        ]

    def root_about(self, top: Float[np.ndarray, " p"]) -> Float[np.ndarray, "p p"]:
        """Return ``R`` with the covariance ``R Rᵀ`` of a normal posterior about a maximum."""
        rows = [
            (self.loss(top + step)[1] - self.loss(top - step)[1]) / (2 * STEP)
            for step in STEP * np.eye(len(top))
        ]
        curvature, vectors = np.linalg.eigh((np.array(rows) + np.array(rows).T) / 2)
        flat = 0.25 / self.widths.max() ** 2  # twice as wide as the widest hyperprior
        root: Float[np.ndarray, "p p"] = vectors / np.sqrt(np.maximum(curvature, flat))
        return root

    def weighed(self, maxima: Sequence[Optimum]) -> Weighed:
        """Return points with weights whose mean is that over the posterior.

        Points are quasi-random ones of Student's t about each maximum, and of the hyperprior. A
        weight is the posterior over the density of these (multiple importance sampling: Veach &
        Guibas 1995).
        """
        size, best = len(self.names), self.at(maxima[0].at)
        uniform = qmc.Sobol(size + 1, scramble=False).fast_forward(1).random(N_NEAR + N_WIDE)
        normal = norm.ppf(uniform[:, :size])
        wide = np.sqrt(DEGREES / chi2.ppf(uniform[:, size], DEGREES))[:, None]
        tops = [(end.at, self.root_about(end.at)) for end in maxima]
        kind = np.minimum(np.arange(len(uniform)) * len(tops) // N_NEAR, len(tops))
        points = self.medians + self.widths * normal
        for k, (top, root) in enumerate(tops):
            own = kind == k
            points[own] = top + (wide * normal)[own] @ root.T
        shares = [norm.logpdf(points, self.medians, self.widths).sum(axis=1)]
        shares = [*(_log_student(points, *one) for one in tops), *shares]
        counts = np.bincount(kind, minlength=len(shares))
        proposal = logsumexp(shares, axis=0, b=counts[:, None] / len(points))
        weights = softmax([self.log_density(p, best) for p in points] - proposal)
        kept = weights > SMALL * weights.max()
        return Weighed(self.names, np.exp(points[kept]), weights[kept] / weights[kept].sum())


def learn(start: Model, names: Sequence[str]) -> tuple[Model, Weighed]:
    """Return the regression of largest evidence, and hyperparameters weighed by evidence.

    Parameters
    ----------
    start : GraphRegression or GraphCounts
    names : sequence of str
        What is learnt, as in `LogPosterior`; nothing if empty.

    Raises
    ------
    InvalidInput
        If the evidence is not finite at any start.
    """
    if not names:
        return start, Weighed((), np.zeros((1, 0)), np.ones(1))
    posterior = LogPosterior(start, names)
    maxima = posterior.maxima()
    best = posterior.at(maxima[0].at)
    return best, posterior.weighed(maxima)


def maximize_regression(start: Model, names: Sequence[str]) -> Model:
    """Return the regression of largest evidence alone; see `learn`."""
    if not names:
        return start
    posterior = LogPosterior(start, names)
    return posterior.at(posterior.maxima()[0].at)


def _log_student(
    points: Float[np.ndarray, "K p"], top: Float[np.ndarray, " p"], root: Float[np.ndarray, "p p"]
) -> Float[np.ndarray, " K"]:
    """Return the log density of Student's t."""
    size = len(top)
    square = (np.linalg.solve(root, (points - top).T) ** 2).sum(axis=0)
    constant = gammaln((DEGREES + size) / 2) - gammaln(DEGREES / 2)
    constant -= size / 2 * np.log(DEGREES * np.pi) + np.linalg.slogdet(root)[1]
    found: Float[np.ndarray, " K"] = constant - (DEGREES + size) / 2 * np.log1p(square / DEGREES)
    return found


def with_values(model: Model, values: dict[str, Any]) -> Model:
    """Return the regression with other hyperparameters."""
    own: dict[str, Any] = {name: float(v) for name, v in values.items() if name in SCALES}
    shape = {name: float(v) for name, v in values.items() if name not in SCALES}
    prior = dataclasses.replace(model.prior, **shape) if shape else model.prior
    changed: Model = model.replaced(prior=prior, **own)
    return changed


def slopes_of(model: WithEvidence, names: Sequence[str]) -> Float[np.ndarray, " n"]:
    """Return the derivatives of the log evidence in the logarithms of hyperparameters."""
    slopes, found = model.slopes(), []
    for name in names:
        if name in ("noise_std", "linear_std"):
            found.append(getattr(slopes, name))
        elif name == "field_std":
            found.append(slopes.modes @ model.std.modes + slopes.tail * model.std.tail)
        else:
            at = np.log([getattr(model.prior, name)])
            shape = log_derivative(partial(_deviations, model, name), at)
            found.append(slopes.modes @ shape[:-1] + slopes.tail * shape[-1])
    return np.array(found)


def _deviations(
    model: WithEvidence, name: str, log_value: Float[np.ndarray, " 1"]
) -> Float[np.ndarray, " n"]:
    """Return ``a s`` and ``a s̄`` for another value of a hyperparameter of the prior."""
    std = with_values(model, {name: np.exp(log_value[0])}).std
    return np.append(std.modes, std.tail)
