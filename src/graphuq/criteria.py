"""What labels say of a prior covariance at their nodes: its evidence, or its alignment.

Each with its gradient in the covariance and in the likelihood's own hyperparameters, by automatic
differentiation at the fixed point that was found.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from graphuq.arrays import Array
from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.field import Conditioned, Field
from graphuq.inference.base import with_dtype
from graphuq.inference.expectation_propagation import log_evidence, settle
from graphuq.likelihoods import LevelSet, Likelihood, NoiseFree, Probit
from graphuq.target import Target

CRITERIA = ("laplace", "expectation-propagation", "alignment")
MAX_SWEEPS, DAMPINGS = 300, (1.0, 0.2)
TOLERANCE = 1e-9  # of sites, and of Newton's method: gradients are good to about its root
MAX_NEWTON, HALVINGS = 100, 30


class Judgement(NamedTuple):
    """Value of a criterion, and its gradient.

    Attributes
    ----------
    value : float
        ``log p(labels)``, of several classes half the sum over classes of that of each against the
        rest; or the alignment, in [−1, 1].
    by_covariance : numpy.ndarray, shape (J, J)
        Derivative in the covariance at the labelled nodes.
    by_likelihood : dict
        Derivative in each hyperparameter of the likelihood, by name.
    """

    value: float
    by_covariance: Float[np.ndarray, "J J"]
    by_likelihood: dict[str, float]


def judge(
    covariance: Float[np.ndarray, "J J"],
    likelihood: Likelihood,
    labels: Float[np.ndarray, " J"],
    criterion: str,
) -> Judgement:
    """Judge the prior covariance G of the field at the labelled nodes.

    Parameters
    ----------
    covariance : numpy.ndarray, shape (J, J)
        G.
    likelihood : Likelihood
        Of two or several classes.
    labels : numpy.ndarray, shape (J,)
    criterion : {"laplace", "expectation-propagation", "alignment"}
        The evidence by Laplace's method (Zhu, Lafferty & Ghahramani 2003, (45)) or by expectation
        propagation; or the centred alignment of G with the labels (Cristianini et al. 2001; Cortes,
        Mohri & Rostamizadeh 2012), which knows no likelihood.

    Raises
    ------
    InvalidInput
        If the criterion is unknown, or its fixed point is not reached.
    IncompatibleParts
        If Laplace's method has no gradient to go by.
    """
    require(
        criterion in CRITERIA,
        "criterion",
        f"{criterion!r} is unknown",
        f"use one of {', '.join(CRITERIA)}",
    )
    if criterion == "laplace" and not likelihood.smooth:
        raise IncompatibleParts(
            f"Laplace's method needs a gradient and {likelihood} has none; use "
            "criterion='expectation-propagation'"
        )
    labellings = against_the_rest(labels, likelihood.several)
    two = of_two_classes(likelihood)
    share = 1.0 if len(labellings) == 1 else 0.5
    names = [f for f in getattr(two, "__dataclass_fields__", {}) if _is_number(getattr(two, f))]
    total, by_covariance = 0.0, np.zeros_like(covariance)
    by_likelihood = dict.fromkeys(names, 0.0)
    for own in labellings:
        with jax.enable_x64(True):
            arguments = with_dtype((covariance, two, own), jnp.float64)
            value, (by_g, by_two) = _judged(criterion, *arguments)
        total += share * value
        by_covariance += share * (by_g + by_g.T) / 2
        for name in names:
            by_likelihood[name] += share * float(getattr(by_two, name))
    return Judgement(total, by_covariance, by_likelihood)


def _judged(criterion: str, covariance: Any, likelihood: Any, labels: Any) -> tuple[float, Any]:
    if criterion == "alignment":
        value, gradient = _alignment(covariance, likelihood, labels)
        return float(value), jax.tree.map(np.asarray, gradient)
    if criterion == "laplace":
        value, gradient, left = _laplace(covariance, likelihood, labels)
        settled = float(left) <= 1e-6
    else:
        for damping in DAMPINGS:
            value, gradient, change = _propagated(
                covariance, likelihood, labels, jnp.asarray(damping)
            )
            settled = float(change) <= 1e3 * TOLERANCE
            if settled:
                break
    if not (settled and np.isfinite(float(value))):
        raise InvalidInput(
            "criterion",
            f"{criterion} reaches no fixed point for {likelihood}",
            "use a likelihood that is less steep, or another criterion",
        )
    return float(value), jax.tree.map(np.asarray, gradient)


def _is_number(value: Any) -> bool:
    return isinstance(value, float | np.floating)


def against_the_rest(
    labels: Float[np.ndarray, " J"], several: bool
) -> list[Float[np.ndarray, " J"]]:
    """Labels ±1 of each class that has some, against all others; or those of the two there are."""
    if not several:
        return [labels]
    return [np.where(labels == k, 1.0, -1.0) for k in np.unique(labels)]


def of_two_classes(likelihood: Any) -> Any:
    """What the likelihood says of a class against the rest."""
    if not likelihood.several:
        return likelihood
    if isinstance(likelihood, LevelSet):  # a label costs 2/γ² of two classes, 1/γ² of several
        return LevelSet(likelihood.noise_std * math.sqrt(2.0))
    return NoiseFree() if likelihood.step else Probit(likelihood.noise_std)


def conditioned(prior: Any, precision: Any, shift: Any) -> Conditioned:
    """Mean and variance of ``N(0, G)`` given sites, and the normaliser; G may be singular.

    ``Σ = (I + G T)⁻¹ G``; no white coordinates.
    """
    n_labels = prior.shape[0]
    system = jnp.eye(n_labels) + prior * precision[None, :]
    covariance = jnp.linalg.solve(system, prior)
    mean = covariance @ shift
    return Conditioned(
        mean=mean,
        variance=jnp.diagonal(covariance),
        seen_mean=jnp.zeros((0,)),
        seen_covariance=jnp.zeros((0, 0)),
        log_normalizer=0.5 * shift @ mean - 0.5 * jnp.linalg.slogdet(system)[1],
    )


class GivenField(Field):
    """A field of which the covariance at the labelled nodes is all that is known."""

    covariance: Float[Array, "J J"]

    @property
    def dimension(self) -> int:
        """Number of labelled nodes."""
        return int(self.covariance.shape[0])

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, " J"]:
        """By a Cholesky factor."""
        return jnp.linalg.cholesky(jnp.asarray(self.covariance)) @ white

    def condition(self, precision: Float[Array, " J"], shift: Float[Array, " J"]) -> Conditioned:
        """See `conditioned`."""
        return conditioned(jnp.asarray(self.covariance), precision, shift)


@eqx.filter_jit
def _propagated(covariance: Array, likelihood: Any, labels: Array, damping: Array) -> Any:
    """Expectation propagation's evidence; its gradient with the sites held fixed (Seeger 2005)."""
    target = Target(GivenField(covariance), likelihood, labels)
    sites, _, change = settle(target, damping, MAX_SWEEPS, jnp.asarray(TOLERANCE))

    def evidence(parts: Any) -> Any:
        return log_evidence(Target(GivenField(parts[0]), parts[1], labels), sites)

    value, gradient = _with_gradient(evidence, (covariance, likelihood))
    return value, gradient, change


@eqx.filter_jit
def _laplace(covariance: Array, likelihood: Any, labels: Array) -> Any:
    """Laplace's evidence ``log p(y | u) − ½ aᵀ G a − ½ log|I + W G|`` at the mode ``u = G a``.

    Newton's method in a (Rasmussen & Williams 2006, algorithm 3.1), halved until the objective
    rises. The mode moves with the hyperparameters: one more Newton step, taken with its matrix held
    fixed, has the right derivative.
    """

    def slopes(likelihood: Any, u: Any) -> Any:
        return jax.grad(lambda v: likelihood.log_prob(v, labels).sum())(u)

    def curvature(likelihood: Any, u: Any) -> Any:
        return -jax.jvp(lambda v: slopes(likelihood, v), (u,), (jnp.ones_like(u),))[1]

    def objective(a: Any) -> Any:
        u = covariance @ a
        return likelihood.log_prob(u, labels).sum() - 0.5 * a @ u

    def towards(a: Any, u: Any, prior: Any, likelihood: Any) -> Any:
        """Newton's step for ``a = ∇ log p(y | G a)``."""
        system = jnp.eye(len(a)) + curvature(likelihood, u)[:, None] * prior
        return system, slopes(likelihood, prior @ a) - a

    def again(carry: Any) -> Any:
        _, _, n_steps, left, moved = carry
        return (n_steps < MAX_NEWTON) & (left > TOLERANCE) & moved

    def improve(carry: Any) -> Any:
        a, value, n_steps, _, _ = carry
        step = jnp.linalg.solve(*towards(a, covariance @ a, covariance, likelihood))

        def too_far(search: Any) -> Any:
            _, reached, n_halvings = search
            return ~(reached >= value - 1e-11 * (1 + jnp.abs(value))) & (n_halvings < HALVINGS)

        def halve(search: Any) -> Any:
            length, _, n_halvings = search
            return length / 2, objective(a + length / 2 * step), n_halvings + 1

        start = (jnp.ones_like(value), objective(a + step), jnp.asarray(0))
        length, reached, n_halvings = jax.lax.while_loop(too_far, halve, start)
        moved = n_halvings < HALVINGS
        a = jnp.where(moved, a + length * step, a)
        left = jnp.abs(slopes(likelihood, covariance @ a) - a).max()
        return a, jnp.where(moved, reached, value), n_steps + 1, left, moved

    zero = jnp.zeros_like(labels)
    left = jnp.abs(slopes(likelihood, zero)).max()
    start = (zero, objective(zero), jnp.asarray(0), left, jnp.asarray(True))
    mode, _, _, left, _ = jax.lax.while_loop(again, improve, start)
    mode = jax.lax.stop_gradient(mode)

    def evidence(parts: Any) -> Any:
        prior, law = parts
        system, missing = towards(mode, covariance @ mode, prior, law)
        a = mode + jnp.linalg.solve(jax.lax.stop_gradient(system), missing)
        u = prior @ a
        spread = jnp.eye(len(a)) + curvature(law, u)[:, None] * prior
        return law.log_prob(u, labels).sum() - 0.5 * a @ u - 0.5 * jnp.linalg.slogdet(spread)[1]

    value, gradient = _with_gradient(evidence, (covariance, likelihood))
    return value, gradient, left


def _with_gradient(function: Any, parts: Any) -> Any:
    return eqx.filter_value_and_grad(function)(parts)  # type: ignore[no-untyped-call]


@eqx.filter_jit
def _alignment(covariance: Array, likelihood: Any, labels: Array) -> Any:
    """``⟨H G H, y yᵀ⟩ / (|H G H| |H y|²)`` with H the projection off the constant."""

    def aligned(parts: Any) -> Any:
        prior, _ = parts
        y = labels - labels.mean()
        rows = prior - prior.mean(axis=0)[None, :]
        centred = rows - rows.mean(axis=1)[:, None]
        return y @ centred @ y / (jnp.sqrt((centred**2).sum()) * (y @ y))

    return _with_gradient(aligned, (covariance, likelihood))


class SeriesField(Field):
    """The series as it stands, for gradients in its spectral deviations; nothing is sampled.

    ``u_L = R diag(s) ξ + s̄ r`` has covariance ``G = R diag(d) Rᵀ + s̄² I``; `condition` works in
    J or ℓ dimensions, whichever is smaller, and accepts any G, singular ones too.
    """

    rows: Float[Array, "J L"]
    scale: Float[Array, " J"]
    modes: Float[Array, " L"]
    tail: Any

    @property
    def dimension(self) -> int:
        """Number of coefficients of the series; those of the tail are not counted."""
        return int(self.modes.shape[0])

    def at_labelled(self, white: Float[Array, " n"]) -> Float[Array, " J"]:
        """The kept modes' part of the field at the labelled nodes."""
        return self.scale * (self.rows @ (self.modes * white))

    def condition(self, precision: Float[Array, " J"], shift: Float[Array, " J"]) -> Conditioned:
        """The field at the labelled nodes, and the normaliser, given sites; no white coordinates.

        With ``Σ = (G⁻¹ + T)⁻¹``: ``Σ = (I + G T)⁻¹ G`` in J dimensions; or with ``E = I + s̄² T``,
        ``Σ = s̄² E⁻¹ + E⁻¹ R d (I + Rᵀ T E⁻¹ R d)⁻¹ Rᵀ E⁻¹`` in ℓ.
        """
        tail_variance = jnp.asarray(self.tail) ** 2
        mode_variance = jnp.asarray(self.modes) ** 2 - tail_variance
        rows = jnp.asarray(self.rows)
        site = precision * self.scale**2
        shift = shift * self.scale
        n_labels, n_modes = rows.shape
        if n_labels <= n_modes:
            prior = (rows * mode_variance[None, :]) @ rows.T + tail_variance * jnp.eye(n_labels)
            found = conditioned(prior, site, shift)
            mean, variance = self.scale * found.mean, self.scale**2 * found.variance
            return found._replace(mean=mean, variance=variance)
        e = 1 + tail_variance * site
        information = rows.T @ ((site / e)[:, None] * rows)
        system = jnp.eye(n_modes) + information * mode_variance[None, :]
        inner = mode_variance[:, None] * jnp.linalg.inv(system)
        scaled = rows / e[:, None]
        mean = tail_variance * shift / e + scaled @ (inner @ (scaled.T @ shift))
        variance = tail_variance / e + ((scaled @ inner) * scaled).sum(axis=1)
        log_determinant = jnp.linalg.slogdet(system)[1] + jnp.log(jnp.abs(e)).sum()
        return Conditioned(
            mean=self.scale * mean,
            variance=self.scale**2 * variance,
            seen_mean=jnp.zeros((0,)),
            seen_covariance=jnp.zeros((0, 0)),
            log_normalizer=0.5 * shift @ mean - 0.5 * log_determinant,
        )
