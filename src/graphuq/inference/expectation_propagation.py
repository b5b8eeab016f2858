"""Expectation propagation: a Gaussian that matches each label's moments in turn."""

import math
import time
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.field import LeadField, LowRankField, covariances_at, of_one_class
from graphuq.inference.base import Approximation, Gaussian, SiteTarget, quickly_compiled, with_dtype
from graphuq.likelihoods import Probit, Softmax
from graphuq.target import Target, in_steps

LEGENDRE_NODES, WIDTH = 64, 9.0  # of the quadrature at labels; half its range, in deviations
DAMPINGS = (1.0, 0.2)  # to start with, in this order, until one converges
ALIKE = 1e-8  # determinant, of a product of squares, below which two turns are one
LEEWAY = 5.0  # a sweep that learns from others may look so many times worse, and be none
GAIN, LOSS, LEAST = 1.2, 0.5, 0.02  # of the damping: by a sweep that came closer, or did not


class ExpectationPropagation(Approximation):
    r"""Replace each likelihood term by a Gaussian site ``exp(ν u − τ u²/2)`` (Minka 2001).

    The site is chosen so that site × cavity has the mean and variance of likelihood × cavity,
    the cavity being the belief about ``u_j`` from all other labels. All sites move at once, by less
    where they oscillate (Rasmussen & Williams 2006, §3.6, in parallel and damped), and, of smooth
    likelihoods, to where the last three sweeps would settle if they were linear (Anderson 1965).

    Of several classes, a label's own field leads each other one through noise of its own: pairs
    of classes that are two-class probits, of variance 2γ², all but what ties them to each other.

    An approximation; `result.diagnostics` says what share of its draws would pass as the
    posterior's.

    Parameters
    ----------
    max_sweeps : int, default 500
        Sweeps over all labels, for each of two dampings that are tried.
    tolerance : float, default 1e-5
        Converged once no mean of u at a label moves more than this in a sweep, in units of its
        standard deviation.
    """

    max_sweeps: int = 500
    tolerance: float = 1e-5
    requires_gradient: ClassVar[bool] = False

    def __check_init__(self) -> None:
        require(self.max_sweeps >= 1, "max_sweeps", f"{self.max_sweeps}", "use 1 or more")
        require(self.tolerance > 0, "tolerance", f"{self.tolerance!r}", "use a positive bound")

    def fit(self, target: SiteTarget) -> Gaussian:
        """Iterate to the fixed point.

        Raises
        ------
        IncompatibleParts
            If there are several classes, and not a smooth likelihood of a fixed number of them, or
            a tail and more labels than modes.
        InvalidInput
            If no damping reaches it.
        """
        began = time.perf_counter()
        several = target.likelihood.several
        fields = target.field
        n_labels, dimension = len(target.labels), target.field.dimension
        with jax.enable_x64(True):
            prepared = _by_pairs(target) if several else in_steps(target)
            target = with_dtype(prepared, jnp.float64)
            for damping in DAMPINGS:
                sites, n_sweeps, change = settle(
                    target, jnp.asarray(damping), self.max_sweeps, jnp.asarray(self.tolerance)
                )
                if float(change) <= self.tolerance:
                    conditioned, tilted, evidence = _answer(target, sites)
                    total = float(evidence)
                    if several:
                        mean = np.asarray(fields.at_labelled(conditioned.seen_mean))
                        spread = covariances_at(fields.field.factor, conditioned.seen_covariance)
                        variance = np.asarray(jnp.diagonal(spread, axis1=1, axis2=2))
                        label_mean = np.full_like(mean, np.nan)  # `summaries` draws
                    else:
                        # Cut in NumPy: in JAX each length would be a program of its own.
                        total += (len(target.labels) - n_labels) * math.log(2)
                        mean = np.asarray(conditioned.mean)[:n_labels]
                        variance = np.asarray(conditioned.variance)[:n_labels]
                        label_mean = np.asarray(tilted)[:n_labels]
                    return Gaussian(
                        seen_mean=np.asarray(conditioned.seen_mean)[:dimension],
                        seen_covariance=np.asarray(conditioned.seen_covariance)[
                            :dimension, :dimension
                        ],
                        labelled_mean=mean,
                        labelled_variance=variance,
                        labelled_label_mean=label_mean,
                        log_evidence=total,
                        n_iterations=int(n_sweeps),
                        seconds=time.perf_counter() - began,
                        description=f"expectation propagation, {int(n_sweeps)} sweeps",
                    )
        raise InvalidInput(
            "inference",
            f"expectation propagation did not settle within {self.max_sweeps} sweeps at any "
            f"damping (last change {float(change):.1g})",
            "raise max_sweeps, use a larger noise_std, or sample with PCN()",
        )


def _by_pairs(target: Any) -> Target:
    """Each label of several classes as K − 1 labels of two: its own field leads each other one."""
    likelihood = target.likelihood
    if not isinstance(likelihood, Probit | Softmax) or likelihood.learnt:
        raise IncompatibleParts(
            f"expectation propagation knows no pairs of classes in {likelihood}; use Probit or "
            "Softmax of a fixed number of classes, or sample"
        )
    if not isinstance(of_one_class(target.field), LowRankField):
        raise IncompatibleParts(
            "expectation propagation of several classes needs a field without a tail, or with "
            "fewer labels than eigenpairs; compute the spectrum with tail=False"
        )
    leads = LeadField.of(target.field, target.labels)
    pairs = Probit(float(likelihood.noise_std) * math.sqrt(2.0))
    return Target(leads, pairs, np.ones(len(target.labels) * (leads.n_classes - 1)))


@quickly_compiled
def _answer(target: Any, sites: tuple[Array, Array]) -> tuple[Any, Array, Array]:
    """The field given the sites, label means at the labels, and the evidence."""
    conditioned = target.field.condition(*sites)
    label_mean = _tilted_label_mean(target, *_cavity(conditioned, *sites))
    return conditioned, label_mean, log_evidence(target, sites)


def _moments(target: Any, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
    """``log Z`` of each label under its cavity, and its two derivatives in the cavity's mean."""

    def total(mean: Array) -> Array:
        return target.likelihood.log_partition(mean, variance, target.labels).sum()

    first, second = jax.jvp(jax.grad(total), (mean,), (jnp.ones_like(mean),))
    return target.likelihood.log_partition(mean, variance, target.labels), first, second


def _cavity(conditioned: Any, precision: Array, shift: Array) -> tuple[Array, Array]:
    variance = 1 / (1 / conditioned.variance - precision)
    mean = variance * (conditioned.mean / conditioned.variance - shift)
    return mean, variance


def _tilted_label_mean(target: Any, mean: Array, variance: Array) -> Array:
    """``E sign(u)`` under likelihood × cavity, by Gauss-Legendre quadrature on each half-line."""
    nodes, weights = np.polynomial.legendre.leggauss(LEGENDRE_NODES)
    deviation = jnp.sqrt(variance)

    def log_mass(sign: float) -> Array:
        near = jnp.maximum(sign * mean - WIDTH * deviation, 0.0)
        far = jnp.maximum(sign * mean + WIDTH * deviation, near + deviation)
        half = (far - near)[:, None] / 2
        u = sign * (near[:, None] + half * (jnp.asarray(nodes) + 1)[None, :])
        log_prior = -((u - mean[:, None]) ** 2) / (2 * variance[:, None])
        log_prob = jax.vmap(
            lambda column: target.likelihood.log_prob(column, target.labels), in_axes=1, out_axes=1
        )(u)
        log_weights = jnp.log(jnp.asarray(weights))[None, :] + jnp.log(half)
        return jax.nn.logsumexp(log_prob + log_prior + log_weights, axis=1)

    return jnp.tanh((log_mass(1.0) - log_mass(-1.0)) / 2)


@eqx.filter_jit
def settle(
    target: Any,
    damping: Array,
    max_sweeps: int,
    tolerance: Array,
    near: tuple[Array, Array] | None = None,
) -> tuple[tuple[Array, Array], Array, Array]:
    """Sites (precision, shift) of the fixed point, sweeps taken, and the last change.

    From sites of zero, or from those of a target that was ``near``.

    ``target.field.condition`` is all that is asked of the field; a change above the tolerance
    says that the fixed point was not reached.
    """
    zeros = jnp.zeros((2, *target.labels.shape), target.labels.dtype)  # precisions, and shifts

    def sweep(carry: Any) -> Any:
        sites, before, n_sweeps, last, damping, past = carry
        precision, shift = sites
        mean, variance = _cavity(before, precision, shift)
        usable = variance > 0
        mean, variance = jnp.where(usable, mean, 0.0), jnp.where(usable, variance, 1.0)
        _, first, second = _moments(target, mean, variance)
        scale = 1 + variance * second  # variance of likelihood × cavity over the cavity's
        usable &= (scale > 0) & jnp.isfinite(scale) & jnp.isfinite(first)
        new = jnp.stack([-second / scale, (first - mean * second) / scale])
        residual = jnp.where(usable, new - sites, 0.0)
        now = _Sweep(sites, residual)
        weights = jnp.stack([before.variance, jnp.sqrt(before.variance)])
        if target.likelihood.smooth:
            sites = _accelerated(now, past, weights, damping)
        else:
            sites = sites + damping * residual
        after = target.field.condition(*sites)
        change = jnp.max(jnp.abs(after.mean - before.mean) / jnp.sqrt(before.variance)) / damping
        change = jnp.where(usable.all() & (after.variance > 0).all(), change, jnp.inf)
        # Oscillation is damped as it shows, and what led to it forgotten; progress wins freedom.
        better = change < (LEEWAY if target.likelihood.smooth else 1.0) * last
        damping = jnp.where(
            better, jnp.minimum(damping * GAIN, 1.0), jnp.maximum(damping * LOSS, LEAST)
        )
        n_known = jnp.where(better, jnp.minimum(past.n_known + 1, 2), 0)
        return sites, after, n_sweeps + 1, change, damping, _Past(now, past.last, n_known)

    def unsettled(carry: Any) -> Any:
        sites, after, n_sweeps, change, _, _ = carry
        alive = jnp.isfinite(after.mean).all() & jnp.isfinite(sites[0]).all()
        return (n_sweeps < max_sweeps) & (change > tolerance) & alive

    sites = zeros if near is None else jnp.stack(near)
    nothing = _Sweep(zeros, zeros)
    start = (
        sites,
        target.field.condition(*sites),
        jnp.asarray(0),
        jnp.asarray(jnp.inf),
        damping,
        _Past(nothing, nothing, jnp.asarray(0)),
    )
    sites, after, n_sweeps, change, _, _ = jax.lax.while_loop(unsettled, sweep, start)
    change = jnp.where(jnp.isnan(after.mean).any(), jnp.inf, change)
    return (sites[0], sites[1]), n_sweeps, change


class _Sweep(NamedTuple):
    """Sites, and how far from them a sweep wants to go."""

    sites: Array  # (2, J)
    residual: Array


class _Past(NamedTuple):
    """The two sweeps before, of which so many are to be learnt from."""

    last: _Sweep
    before: _Sweep
    n_known: Array


def _accelerated(now: _Sweep, past: _Past, weights: Array, damping: Array) -> Array:
    """Anderson's step (1965): where a linear map with these three sweeps would settle.

    Residuals are judged in deviations of u. A step that leaves a precision negative is not taken.
    """
    plain = now.sites + damping * now.residual
    moves = now.sites - past.last.sites, past.last.sites - past.before.sites
    turns = now.residual - past.last.residual, past.last.residual - past.before.residual
    one, two = (turn * weights for turn in turns)
    residual = now.residual * weights
    first, second, mixed = (one**2).sum(), (two**2).sum(), (one * two).sum()
    pull_one, pull_two = (one * residual).sum(), (two * residual).sum()
    both = past.n_known > 1
    second, mixed, pull_two = (
        jnp.where(both, x, y) for x, y in ((second, 1.0), (mixed, 0.0), (pull_two, 0.0))
    )
    determinant = first * second - mixed**2
    known = (past.n_known > 0) & (determinant > ALIKE * first * second)
    determinant = jnp.where(known, determinant, 1.0)
    along_one = (pull_one * second - pull_two * mixed) / determinant
    along_two = (pull_two * first - pull_one * mixed) / determinant
    sites = plain
    for share, move, turn in zip((along_one, along_two), moves, turns, strict=True):
        sites = sites - share * (move + damping * turn)
    return jnp.where(known & (sites[0] >= 0).all(), sites, plain)


def log_evidence(target: Any, sites: tuple[Array, Array]) -> Float[Array, ""]:
    """``log p(y)`` at given sites; stationary in them at the fixed point.

    Its gradient in the model's parameters is therefore the partial one, the sites held fixed
    (Seeger 2005).
    """
    precision, shift = jax.lax.stop_gradient(sites)
    conditioned = target.field.condition(precision, shift)
    mean, variance = _cavity(conditioned, precision, shift)
    # The cavity belongs to the sites: held fixed with them.
    mean, variance = jax.lax.stop_gradient((mean, variance))
    log_z, _, _ = _moments(target, mean, variance)
    together = precision + 1 / variance
    site_norm = (
        log_z
        + 0.5 * jnp.log1p(precision * variance)
        - 0.5 * ((shift + mean / variance) ** 2 / together - mean**2 / variance)
    )
    return site_norm.sum() + conditioned.log_normalizer
