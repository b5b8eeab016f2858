r"""Regression on a graph: the posterior and the evidence of numbers as labels, in closed form.

    y_j = c + a u_j + γ w_j^{-1/2} ε_j,    u ~ prior,    c ~ N(0, b²),    ε_j ~ N(0, 1)

With the series ``u = scale (Q (s ξ) + s̄ r)`` of the prior, the numbers have the covariance
``K = Φ diag(d) Φᵀ + diag(f)``. The columns of Φ are those of Q, times the node scale, and a column
of ones; ``d = (a² (s² − s̄²), b²)`` and ``f_j = γ²/w_j + a² s̄² scale_j²``. Everything is solved in
as many dimensions as there are columns. See docs/theory/numbers.md, "Numbers as labels".
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_factor, cho_solve

from graphuq.errors import InvalidInput
from graphuq.evidence.hyperpriors import Hyperprior, hyperpriors_of
from graphuq.evidence.quasi_newton import FAILED, log_derivative, minimize_loss
from graphuq.graphs.features import row_blocks
from graphuq.posterior.field.conditioning import FloorConditioning, condition_with_floor
from graphuq.priors import Prior, SpectralStd
from graphuq.spectrum import Spectrum
from graphuq.utils.arrays import single_threaded_blas
from graphuq.utils.concurrency import cached_property

CONSTANT_STD = 10.0  # b, in standard deviations of the given numbers: nearly flat
MAX_ITERATIONS = 60
# In standard deviations of the given numbers; wide, since the evidence knows both well.
SCALES = {
    "field_std": Hyperprior(1.0, 1.0, 0.01, 100.0),
    "noise_std": Hyperprior(0.3, 1.0, 0.003, 10.0),
}
SHAPES_LOG_STD = 0.5  # of τ and α around their medians
NOISE_STARTS = (0.1, 0.7)  # the evidence may have a maximum for each


class InverseCovariance(NamedTuple):
    """What evidence and posterior need of the inverse covariance of the numbers.

    Attributes
    ----------
    pull : numpy.ndarray, shape (J,)
        ``K⁻¹ y``.
    diagonal : numpy.ndarray, shape (J,)
        Diagonal of ``K⁻¹``.
    by_columns : numpy.ndarray, shape (n,)
        Diagonal of ``Φᵀ K⁻¹ Φ``.
    log_determinant : float
        ``log|K|``.
    """

    pull: Float[np.ndarray, " J"]
    diagonal: Float[np.ndarray, " J"]
    by_columns: Float[np.ndarray, " n"]
    log_determinant: float


class WithEvidence(ABC):
    """Numbers or counts at nodes, under one choice of hyperparameters."""

    spectrum: Spectrum
    prior: Prior

    @property
    @abstractmethod
    def std(self) -> SpectralStd:
        """Spectral deviations ``a s`` and ``a s̄``."""

    @property
    @abstractmethod
    def log_evidence(self) -> float:
        """Log probability of what is given."""

    @abstractmethod
    def slopes(self) -> tuple[Float[np.ndarray, " L"], float, float]:
        """Return derivatives of the log evidence in ``a s``, in ``a s̄`` and in ``log γ``."""

    def replaced(self, **changes: Any) -> Any:
        """Return the same with other hyperparameters."""
        own: Any = self
        return dataclasses.replace(own, **changes)


@dataclasses.dataclass(frozen=True, eq=False)
class GraphRegression(WithEvidence):
    """Numbers at labelled nodes of a graph, under one choice of hyperparameters.

    Parameters
    ----------
    spectrum : Spectrum
    prior : Prior
        A prior without learnt hyperparameters.
    labelled : numpy.ndarray of int, shape (J,)
    values : numpy.ndarray, shape (J,)
        Numbers, standardised: their mean is about 0 and their deviation about 1.
    field_std, noise_std : float
        a and γ, in units of the values.
    weights : numpy.ndarray, shape (J,), optional
        w: a weight divides the variance of the noise; 1 by default.

    Attributes
    ----------
    log_evidence : float
        ``log p(values)``.
    """

    spectrum: Spectrum
    prior: Prior
    labelled: Int[np.ndarray, " J"]
    values: Float[np.ndarray, " J"]
    field_std: float = 1.0
    noise_std: float = 0.3
    weights: Float[np.ndarray, " J"] | None = None

    @cached_property
    def std(self) -> SpectralStd:
        """Spectral deviations ``a s`` and ``a s̄``."""
        std = self.prior.spectral_std(self.spectrum)
        return SpectralStd(self.field_std * std.modes, self.field_std * std.tail)

    @cached_property
    def mode_variance(self) -> Float[np.ndarray, " n"]:
        """``d``, of the modes and of the constant."""
        return np.append(self.std.modes**2 - self.std.tail**2, CONSTANT_STD**2)

    @cached_property
    def noise_variance(self) -> Float[np.ndarray, " J"]:
        """Variance ``γ²/w`` of the noise."""
        weights = np.ones(len(self.values)) if self.weights is None else self.weights
        return self.noise_std**2 / weights

    @cached_property
    def rows(self) -> Float[np.ndarray, "J n"]:
        """Matrix ``Φ``."""
        rows = np.asarray(self.spectrum.basis[self.labelled])
        return columns(rows, self.spectrum.node_scale[self.labelled])

    @cached_property
    def floor(self) -> Float[np.ndarray, " J"]:
        """Diagonal ``f``, noise and tail."""
        tail = self.std.tail * self.spectrum.node_scale[self.labelled]
        return self.noise_variance + tail**2

    @cached_property
    def _steps(self) -> FloorConditioning:
        precision = 1 / self.floor
        return condition_with_floor(
            self.rows, self.mode_variance, 0.0, precision, precision * self.values
        )

    @cached_property
    def inverse(self) -> "InverseCovariance":
        """What is needed of ``K⁻¹``, in as many dimensions as there are numbers or columns."""
        if len(self.values) > self.rows.shape[1]:
            return self._inverse_by_columns()
        k = (self.rows * self.mode_variance) @ self.rows.T + np.diag(self.floor)
        factor = cho_factor(k, lower=True)
        inverse = cho_solve(factor, np.eye(len(k)))
        return InverseCovariance(
            pull=inverse @ self.values,
            diagonal=np.diagonal(inverse),
            by_columns=((inverse @ self.rows) * self.rows).sum(axis=0),
            log_determinant=2 * float(np.log(np.diagonal(factor[0])).sum()),
        )

    def _inverse_by_columns(self) -> "InverseCovariance":
        steps, floor = self._steps, self.floor
        return InverseCovariance(
            pull=(self.values - steps.field.mean) / floor,
            diagonal=(1 - steps.field.variance / floor) / floor,
            by_columns=np.diagonal(np.linalg.solve(steps.system, steps.information)),
            log_determinant=float(np.linalg.slogdet(steps.system)[1] + np.log(floor).sum()),
        )

    @property
    def log_evidence(self) -> float:
        """``log N(y; 0, K)`` (Rasmussen & Williams 2006, (2.30))."""
        quadratic = self.values @ self.inverse.pull + self.inverse.log_determinant
        return -0.5 * float(quadratic + len(self.values) * np.log(2 * np.pi))

    @cached_property
    def coefficients(self) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n n"]]:
        """Mean and covariance of the coefficients of the modes and of the constant."""
        covariance = (self._steps.inner + self._steps.inner.T) / 2
        return covariance @ (self.rows.T @ (self.values / self.floor)), covariance

    def field_at(
        self, rows: Float[np.ndarray, "M L"], scale: Float[np.ndarray, " M"]
    ) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " M"]]:
        """Return mean and standard deviation of ``c + a u`` at unlabelled nodes or new rows.

        Parameters
        ----------
        rows : numpy.ndarray, shape (M, L)
            Rows of Q, or what `NodeBasis.extend` returns.
        scale : numpy.ndarray, shape (M,)
            Their node scale.
        """
        mean, covariance = self.coefficients
        phi = columns(rows, scale)
        variance = ((phi @ covariance) * phi).sum(axis=1) + (self.std.tail * scale) ** 2
        return phi @ mean, np.sqrt(np.maximum(variance, 0.0))

    def field(self) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
        """Return mean and standard deviation of ``c + a u`` at every node.

        At labelled nodes ``E = y − v K⁻¹ y`` and ``Var = v − v² (K⁻¹)_jj`` with ``v = γ²/w``.
        """
        spectrum = self.spectrum
        mean, std = np.empty((2, spectrum.n_nodes))
        for part in row_blocks(spectrum.n_nodes, spectrum.n_columns):
            rows = np.asarray(spectrum.basis[part])
            mean[part], std[part] = self.field_at(rows, spectrum.node_scale[part])
        noise = self.noise_variance
        mean[self.labelled] = self.values - noise * self.inverse.pull
        left = noise - noise**2 * self.inverse.diagonal
        std[self.labelled] = np.sqrt(np.maximum(left, 0.0))
        return mean, std

    def leave_one_out(self) -> tuple[Float[np.ndarray, " J"], Float[np.ndarray, " J"]]:
        """Return mean and standard deviation of each number given all others, noise included.

        ``μ_j = y_j − (K⁻¹y)_j / (K⁻¹)_jj`` and ``σ_j² = 1 / (K⁻¹)_jj`` (Rasmussen & Williams
        2006, (5.12)). Hyperparameters stay as they are.
        """
        inverse = self.inverse
        return self.values - inverse.pull / inverse.diagonal, inverse.diagonal**-0.5

    def most_uncertain(
        self,
        nodes: Int[np.ndarray, " M"],
        n: int,
        noise_variance: Float[np.ndarray, " M"] | None = None,
    ) -> Int[np.ndarray, " B"]:
        """Return unlabelled nodes of largest variance, each as if those before it had a number.

        A number at node i lowers the variance at node j by ``C_ij² / (C_ii + v_i)``, with the
        posterior covariance C and the variance v_i of its noise (MacKay 1992, Neural Computation
        4).

        Parameters
        ----------
        nodes : numpy.ndarray of int, shape (M,)
            Candidates.
        n : int
            Number of nodes; at most M are returned.
        noise_variance : numpy.ndarray, shape (M,), optional
            Of a number at each candidate, by default γ².
        """
        spectrum, covariance = self.spectrum, self.coefficients[1].copy()
        parts = [nodes[block] for block in row_blocks(len(nodes), spectrum.n_columns)]
        noise = np.full(len(nodes), self.noise_std**2) if noise_variance is None else noise_variance

        def rows(part: Any) -> tuple[Float[np.ndarray, "m L"], Float[np.ndarray, " m"]]:
            return np.asarray(spectrum.basis[part]), spectrum.node_scale[part]

        variance = np.concatenate([np.zeros(0), *(self.field_at(*rows(p))[1] ** 2 for p in parts)])
        chosen = []
        for _ in range(min(n, len(nodes))):
            best = int(variance.argmax())
            shared = covariance @ columns(*rows(nodes[[best]]))[0]
            shared /= np.sqrt(variance[best] + noise[best])
            covariance -= np.outer(shared, shared)
            variance -= np.concatenate([(columns(*rows(p)) @ shared) ** 2 for p in parts])
            variance[best] = -np.inf
            chosen.append(nodes[best])
        return np.array(chosen, dtype=nodes.dtype)

    @property
    def by_floor(self) -> Float[np.ndarray, " J"]:
        """Derivatives of the log evidence in the variance of each number."""
        return (self.inverse.pull**2 - self.inverse.diagonal) / 2

    def slopes(self) -> tuple[Float[np.ndarray, " L"], float, float]:
        """Return derivatives of the log evidence in ``a s``, in ``a s̄`` and in ``log γ``."""
        inverse, by_floor = self.inverse, self.by_floor
        by_variance = ((self.rows.T @ inverse.pull) ** 2 - inverse.by_columns)[:-1] / 2
        scale = self.spectrum.node_scale[self.labelled]
        by_tail = 2 * self.std.tail * float(by_floor @ scale**2 - by_variance.sum())
        return (
            2 * self.std.modes * by_variance,
            by_tail,
            float(2 * by_floor @ self.noise_variance),
        )


def columns(
    rows: Float[np.ndarray, "M L"], scale: Float[np.ndarray, " M"]
) -> Float[np.ndarray, "M n"]:
    """Return rows of ``Φ``: those of Q times the node scale, and 1 for the constant."""
    return np.column_stack([scale[:, None] * rows, np.ones(len(rows))])


Model = TypeVar("Model", bound=WithEvidence)


def maximize_regression(start: Model, names: Sequence[str]) -> Model:
    """Return the regression whose hyperparameters have the largest evidence.

    The log evidence is added to log-normal hyperpriors and maximised over logarithms by a
    quasi-Newton method, from small and from large noise.

    Parameters
    ----------
    start : GraphRegression or GraphCounts
    names : sequence of str
        Some of "tau", "alpha", "field_std" and "noise_std". The others keep their values.

    Raises
    ------
    InvalidInput
        If the evidence is not finite at any start.
    """
    if not names:
        return start
    hyperpriors = {
        name: one._replace(log_std=SHAPES_LOG_STD)
        for name, one in hyperpriors_of(start.spectrum).items()
    } | SCALES
    chosen = [hyperpriors[name] for name in names]
    medians, widths = np.log([one.median for one in chosen]), np.array([h.log_std for h in chosen])
    bounds = np.log([(one.lower, one.upper) for one in chosen])

    latest = start  # counts begin where the last ones ended

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal latest
        offset = (at - medians) / widths
        try:
            model = _with_values(latest, dict(zip(names, np.exp(at), strict=True)))
            value, slope = model.log_evidence, _slopes(model, names)
        except np.linalg.LinAlgError:
            return FAILED, np.zeros_like(at)
        if not np.isfinite(value):
            return FAILED, np.zeros_like(at)
        latest = model
        return 0.5 * float(offset @ offset) - value, offset / widths - slope

    best, best_loss = None, FAILED
    for noise in NOISE_STARTS if "noise_std" in names else NOISE_STARTS[:1]:
        at = medians.copy()
        if "noise_std" in names:
            at[list(names).index("noise_std")] = np.log(noise)
        with single_threaded_blas():
            found = minimize_loss(
                loss,
                at,
                bounds,
                max_iterations=MAX_ITERATIONS,
                loss_tolerance=1e-9,
                gradient_tolerance=1e-5,
            )
        if found.loss < best_loss:
            best, best_loss = found.at, found.loss
    if best is None:
        raise InvalidInput("y", "no finite evidence", "give numbers of similar size")
    return _with_values(latest, dict(zip(names, np.exp(best), strict=True)))


def _with_values(model: Model, values: dict[str, Any]) -> Model:
    """Return the regression with other hyperparameters."""
    own: dict[str, Any] = {name: float(v) for name, v in values.items() if name in SCALES}
    shape = {name: float(v) for name, v in values.items() if name not in SCALES}
    prior = dataclasses.replace(model.prior, **shape) if shape else model.prior
    changed: Model = model.replaced(prior=prior, **own)
    return changed


def _slopes(model: WithEvidence, names: Sequence[str]) -> Float[np.ndarray, " n"]:
    """Return the derivatives of the log evidence in the logarithms of hyperparameters."""
    by_modes, by_tail, by_noise = model.slopes()
    found = []
    for name in names:
        if name == "noise_std":
            found.append(by_noise)
        elif name == "field_std":
            found.append(by_modes @ model.std.modes + by_tail * model.std.tail)
        else:
            at = np.log([getattr(model.prior, name)])
            shape = log_derivative(partial(_deviations, model, name), at)
            found.append(by_modes @ shape[:-1] + by_tail * shape[-1])
    return np.array(found)


def _deviations(
    model: WithEvidence, name: str, log_value: Float[np.ndarray, " 1"]
) -> Float[np.ndarray, " n"]:
    """Return ``a s`` and ``a s̄`` for another value of a hyperparameter of the prior."""
    std = _with_values(model, {name: np.exp(log_value[0])}).std
    return np.append(std.modes, std.tail)
