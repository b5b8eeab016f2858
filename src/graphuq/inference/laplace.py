"""Laplace's method: the Gaussian with the mode and the curvature of the posterior."""

import time
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import solve_triangular
from scipy.special import ndtr

from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Approximation, SiteTarget
from graphuq.posterior.field import (
    covariances_at,
    precision_of,
)
from graphuq.utils.checks import check_fields
from graphuq.utils.newton import minimize_by_newton
from graphuq.utils.with_jax import Array, eqx, jax, jnp, with_dtype


class Mode(NamedTuple):
    """Mode of the posterior, and the curvature there.

    Attributes
    ----------
    white : array, shape (n,)
        White coordinates of the mode.
    lower : array, shape (n, n)
        Cholesky factor of minus the Hessian.
    log_evidence : array, shape ()
    n_iterations : array, shape ()
    gradient : array, shape ()
        Largest component of the gradient at the mode.
    """

    white: np.ndarray
    lower: np.ndarray
    log_evidence: np.ndarray
    n_iterations: np.ndarray
    gradient: np.ndarray


class Laplace(Approximation):
    r"""The Gaussian with mode and curvature of the posterior (Zhu et al. 2003, appendix A).

    The mode is found by Newton's method on ``|x|²/2 − log p(y | u(x))``, for any number of classes:
    the curvature of each label's term is a K×K matrix. For log-concave likelihoods (`Probit`,
    `Softmax`) the mode is unique. There are min(J, ℓ) white coordinates for each class, and a step
    costs the cube of their number.

    The method is an approximation; `result.diagnostics` reports the share of its draws that would
    be accepted as draws from the posterior. `ExpectationPropagation` is more accurate. The
    difference is large for small noise, where the mode lies at the boundary of the fields that the
    labels allow.

    Parameters
    ----------
    max_iterations : int, default 100
    tolerance : float, default 1e-8
        Converged once no component of the gradient in white coordinates exceeds this.
    """

    max_iterations: int = 100
    tolerance: float = 1e-8
    requires_gradient: ClassVar[bool] = True
    criterion: ClassVar[str] = "laplace"

    def __check_init__(self) -> None:
        check_fields(self)
        require(
            self.max_iterations >= 1, "max_iterations", f"{self.max_iterations}", "use 1 or more"
        )
        require(self.tolerance > 0, "tolerance", f"{self.tolerance!r}", "use a positive bound")

    def fit(self, target: SiteTarget) -> GaussianApproximation:
        """Find the mode.

        Raises
        ------
        IncompatibleParts
            If the field has a tail and more labels than modes.
        InvalidInput
            If the likelihood is not log-concave at a point, or no mode is reached.
        """
        began = time.perf_counter()
        mode = self.mode(target)
        n = len(mode.white)
        inverse = solve_triangular(mode.lower, np.eye(n), lower=True)
        covariance = inverse.T @ inverse
        factor = np.asarray(target.field.one_class.factor)
        mean = factor @ mode.white.reshape(-1, factor.shape[1]).T
        with jax.enable_x64(True):
            spread = covariances_at(jnp.asarray(factor), jnp.asarray(covariance))
        variance = np.diagonal(np.asarray(spread), axis1=1, axis2=2)
        if not target.likelihood.is_multiclass:
            mean, variance = mean[:, 0], variance[:, 0]
            u = mean + target.likelihood.prior_mean
            label_mean = 2 * ndtr(u / np.sqrt(variance)) - 1
        else:
            label_mean = np.full(
                mean.shape, np.nan
            )  # no closed form: `summaries` estimates it from draws
        return GaussianApproximation(
            white_mean=np.asarray(mode.white),
            white_covariance=covariance,
            labelled_mean=mean,
            labelled_variance=variance,
            labelled_label_mean=label_mean,
            log_evidence=float(mode.log_evidence),
            n_iterations=int(mode.n_iterations),
            seconds=time.perf_counter() - began,
            description=f"Laplace's method, {int(mode.n_iterations)} Newton steps",
        )

    def mode(self, target: SiteTarget) -> Mode:
        """Find the mode by Newton's method from 0.

        Raises
        ------
        IncompatibleParts, InvalidInput
            See `fit`.
        """
        if not target.field.one_class.is_low_rank:
            raise IncompatibleParts(
                f"{self} needs a field without a tail, or with fewer labels than eigenpairs; "
                "compute the spectrum with tail_eigenvalue=False"
            )
        with jax.enable_x64(True):
            target = with_dtype(target, jnp.float64)
            start = jnp.zeros(target.field.dimension)
            leaves = _find_mode(target, start, self.max_iterations, jnp.asarray(self.tolerance))
            found = Mode(*(np.asarray(leaf) for leaf in leaves))
        require(
            bool(np.isfinite(found.lower).all()),
            "likelihood",
            f"{target.likelihood} is not log-concave: at a point of Newton's path the Hessian is "
            "not positive definite",
            "sample instead, or use another likelihood",
        )
        if not found.gradient <= self.tolerance:
            raise InvalidInput(
                "inference",
                f"Laplace's method reached no mode in {int(found.n_iterations)} Newton steps "
                f"(gradient {float(found.gradient):.1g})",
                "raise max_iterations or tolerance, or use a larger noise_std",
            )
        return found


@eqx.filter_jit
def _find_mode(
    target: SiteTarget, start: Array, max_iterations: int, tolerance: Float[Array, ""]
) -> tuple[Array, ...]:
    """Return the fields of `Mode`, by Newton steps from ``start``."""
    factor = target.field.one_class.factor
    n_fields = target.field.n_fields

    def log_prob(u: Array) -> Array:
        """Return the log likelihood of fields (J, K), with K = 1 for two classes."""
        fields = u if target.likelihood.is_multiclass else u[:, 0]
        return target.likelihood.log_prob(fields, target.labels)

    def fields(x: Array) -> Array:
        return factor @ x.reshape(n_fields, -1).T

    def objective(x: Array) -> Array:
        return 0.5 * x @ x - log_prob(fields(x)).sum()

    def slopes(u: Array) -> Array:
        return jax.grad(lambda v: log_prob(v).sum())(u)

    def pull(weights: Array) -> Array:
        """Return ``Fᵀ`` times the column of each class."""
        return (weights.T @ factor).ravel()

    def curvature(u: Array) -> Array:
        """Return ``I + Σ_j F_jᵀ F_j ⊗ W_j``.

        Labels are independent given u, so K products give the matrices W of all labels.
        """
        columns = [
            jax.jvp(slopes, (u,), (jnp.zeros_like(u).at[:, k].set(1.0),))[1]
            for k in range(n_fields)
        ]
        return precision_of(factor, -jnp.stack(columns, axis=2))

    def residual(x: Array) -> Array:
        return x - pull(slopes(fields(x)))

    def step(x: Array, gradient: Array) -> Array:
        lower = jnp.linalg.cholesky(curvature(fields(x)))
        return -jax.scipy.linalg.cho_solve((lower, True), gradient)

    found = minimize_by_newton(objective, residual, step, start, max_iterations, tolerance)
    lower = jnp.linalg.cholesky(curvature(fields(found.x)))
    evidence = -found.value - jnp.log(jnp.diagonal(lower)).sum()
    return found.x, lower, evidence, found.n_iterations, jnp.abs(found.residual).max()
