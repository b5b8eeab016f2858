r"""Regression on a graph: the posterior and the evidence of numbers as labels, in closed form.

    y_j = c + a u_j + g l_j + γ w_j^{-1/2} ε_j,    u ~ prior,    c ~ N(0, b²),    ε_j ~ N(0, 1)

l is linear in the features: ``l = F β`` with ``β ~ N(0, 1)``, if the basis has such columns F. With
the series ``u = scale (Q (s ξ) + s̄ r)`` of the prior, the numbers have the covariance
``K = Φ diag(d) Φᵀ + diag(f)``. The columns of Φ are those of Q, times the node scale, those of F,
and a column of ones; ``d = (a² (s² − s̄²), g², b²)`` and ``f_j = γ²/w_j + a² s̄² scale_j²``.
Everything is solved in as many dimensions as there are columns. See docs/theory/numbers.md,
"Numbers as labels".
"""

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.stats import norm

from graphuq.graphs.features import row_blocks
from graphuq.posterior.field.conditioning import FloorConditioning, condition_with_floor
from graphuq.priors import Prior, SpectralStd
from graphuq.spectrum.basis import SpectralBasis
from graphuq.spectrum.blocks import EIGENPAIRS, spectrum_of
from graphuq.utils.concurrency import cached_property

CONSTANT_STD = 10.0  # b, in standard deviations of the given numbers: nearly flat


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


class Slopes(NamedTuple):
    """Derivatives of a log evidence.

    Attributes
    ----------
    modes : numpy.ndarray, shape (L,)
        In ``a s``.
    tail, linear_std, noise_std : float
        In ``a s̄``, ``log g`` and ``log γ``.
    """

    modes: Float[np.ndarray, " L"]
    tail: float
    linear_std: float
    noise_std: float


class WithEvidence(ABC):
    """Numbers or counts at nodes, under one choice of hyperparameters."""

    spectrum: SpectralBasis
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
    def slopes(self) -> Slopes:
        """Return derivatives of the log evidence."""

    def replaced(self, **changes: Any) -> Any:
        """Return the same with other hyperparameters."""
        own: Any = self
        return dataclasses.replace(own, **changes)


@dataclasses.dataclass(frozen=True, eq=False)
class GraphRegression(WithEvidence):
    """Numbers at labelled nodes of a graph, under one choice of hyperparameters.

    Parameters
    ----------
    spectrum : Spectrum or Basis
        Eigenpairs, and linear functions if there are any.
    prior : Prior
        A prior without learnt hyperparameters.
    labelled : numpy.ndarray of int, shape (J,)
    values : numpy.ndarray, shape (J,)
        Numbers, standardised: their mean is about 0 and their deviation about 1.
    field_std, noise_std : float
        a and γ, in units of the values.
    weights : numpy.ndarray, shape (J,), optional
        w: a weight divides the variance of the noise; 1 by default.
    linear_std : float
        g, in units of the values; of no use without linear functions in the basis.

    Attributes
    ----------
    log_evidence : float
        ``log p(values)``.
    """

    spectrum: SpectralBasis
    prior: Prior
    labelled: Int[np.ndarray, " J"]
    values: Float[np.ndarray, " J"]
    field_std: float = 1.0
    noise_std: float = 0.3
    weights: Float[np.ndarray, " J"] | None = None
    linear_std: float = 0.5

    @cached_property
    def std(self) -> SpectralStd:
        """Spectral deviations ``a s`` and ``a s̄``."""
        std = self.prior.spectral_std(eigenpairs_of(self.spectrum))
        return SpectralStd(self.field_std * std.modes, self.field_std * std.tail)

    @cached_property
    def mode_variance(self) -> Float[np.ndarray, " n"]:
        """``d``, of the modes, of the linear functions and of the constant."""
        found = np.full(self.spectrum.n_columns + 1, self.linear_std**2)
        found[: len(self.std.modes)] = self.std.modes**2 - self.std.tail**2
        found[-1] = CONSTANT_STD**2
        return found

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
        """Mean and covariance of the coefficients of all columns."""
        covariance = (self._steps.inner + self._steps.inner.T) / 2
        return covariance @ (self.rows.T @ (self.values / self.floor)), covariance

    @cached_property
    def _given(self) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "J n"]]:
        """Mean of the coefficients, and ``V`` of their covariance ``diag(d) − Vᵀ V``."""
        shared = self.rows * self.mode_variance
        lower = np.linalg.cholesky(shared @ self.rows.T + np.diag(self.floor))
        known = solve_triangular(lower, shared, lower=True)
        return known.T @ solve_triangular(lower, self.values, lower=True), known

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
        phi, tail = columns(rows, scale), (self.std.tail * scale) ** 2
        if len(self.values) > phi.shape[1]:
            mean, covariance = self.coefficients
            variance = ((phi @ covariance) * phi).sum(axis=1) + tail
        else:
            mean, known = self._given
            variance = phi**2 @ self.mode_variance - ((phi @ known.T) ** 2).sum(axis=1) + tail
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

    def log_left_out(self) -> Float[np.ndarray, " J"]:
        """Return the log density of each number given all others."""
        mean, std = self.leave_one_out()
        return np.asarray(norm.logpdf(self.values, mean, std))

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

    def slopes(self) -> Slopes:
        """Return derivatives of the log evidence."""
        inverse, by_floor = self.inverse, self.by_floor
        by_variance = ((self.rows.T @ inverse.pull) ** 2 - inverse.by_columns)[:-1] / 2
        by_modes, by_linear = np.split(by_variance, [len(self.std.modes)])
        scale = self.spectrum.node_scale[self.labelled]
        return Slopes(
            2 * self.std.modes * by_modes,
            2 * self.std.tail * float(by_floor @ scale**2 - by_modes.sum()),
            2 * self.linear_std**2 * float(by_linear.sum()),
            float(2 * by_floor @ self.noise_variance),
        )


def eigenpairs_of(spectrum: SpectralBasis) -> SpectralBasis:
    """Return the eigenpairs of a basis, without linear functions."""
    found = spectrum_of(spectrum, EIGENPAIRS)
    assert found is not None
    return found


def columns(
    rows: Float[np.ndarray, "M L"], scale: Float[np.ndarray, " M"]
) -> Float[np.ndarray, "M n"]:
    """Return rows of ``Φ``: those of Q times the node scale, and 1 for the constant."""
    return np.column_stack([scale[:, None] * rows, np.ones(len(rows))])
