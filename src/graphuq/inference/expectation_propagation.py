"""Expectation propagation: a Gaussian that matches each label's moments in turn."""

import math
import time
from contextlib import nullcontext
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from graphuq.errors import IncompatibleParts, InvalidInput, require
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Approximation, SiteTarget
from graphuq.likelihoods import Probit
from graphuq.posterior.field import (
    ClassDifferenceField,
    FieldMoments,
    covariances_at,
)
from graphuq.posterior.target import Target
from graphuq.utils.arrays import single_threaded_blas

DAMPINGS = (1.0, 0.2)  # to start with, in this order, until one converges
SMALL = 1e9  # labels × coordinates², up to which one core is as quick as two
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

    def fit(self, target: SiteTarget) -> GaussianApproximation:
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
        fields, several = target.field, target.likelihood.is_multiclass
        target = _by_pairs(target) if several else target
        small = not several and len(target.labels) * target.field.dimension**2 < SMALL
        for damping in DAMPINGS:
            with single_threaded_blas() if small else nullcontext():
                found = iterate_sites(target, damping, self.max_sweeps, self.tolerance)
            if found.change <= self.tolerance:
                break
        else:
            raise InvalidInput(
                "inference",
                f"expectation propagation did not settle within {self.max_sweeps} sweeps at any "
                f"damping (last change {found.change:.1g})",
                "raise max_sweeps, use a larger noise_std, or sample with PCN()",
            )
        given = found.given
        if several:
            with jax.enable_x64(True):
                mean = np.asarray(fields.at_labelled(given.white_mean))
                spread = covariances_at(fields.field.factor, given.white_covariance)
            variance = np.diagonal(np.asarray(spread), axis1=1, axis2=2)
            label_mean = np.full_like(mean, np.nan)  # `summaries` draws
        else:
            mean, variance = given.mean, given.variance
            cavity = _cavity(given, *found.sites)
            label_mean = target.likelihood.tilted_label_mean(*cavity, target.labels)
        return GaussianApproximation(
            white_mean=given.white_mean,
            white_covariance=given.white_covariance,
            labelled_mean=mean,
            labelled_variance=variance,
            labelled_label_mean=label_mean,
            log_evidence=log_evidence(target, found),
            n_iterations=found.n_sweeps,
            seconds=time.perf_counter() - began,
            description=f"expectation propagation, {found.n_sweeps} sweeps",
            sites=None if several else found.sites,
        )


def _by_pairs(target: Any) -> Target:
    """Each label of several classes as K − 1 labels of two: its own field leads each other one."""
    likelihood = target.likelihood
    noise_std = likelihood.probit_noise_std
    if noise_std is None or likelihood.learnt:
        raise IncompatibleParts(
            f"expectation propagation knows no pairs of classes in {likelihood}; use Probit or "
            "Softmax of a fixed number of classes, or sample"
        )
    if not target.field.one_class.is_low_rank:
        raise IncompatibleParts(
            "expectation propagation of several classes needs a field without a tail, or with "
            "fewer labels than eigenpairs; compute the spectrum with tail_eigenvalue=False"
        )
    leads = ClassDifferenceField.of(target.field, target.labels)
    pairs = Probit(float(noise_std) * math.sqrt(2.0))
    return Target(leads, pairs, np.ones(len(target.labels) * (leads.n_classes - 1)))


class EPState(NamedTuple):
    """Where sites came to rest, or did not.

    Attributes
    ----------
    sites : numpy.ndarray, shape (2, J)
        Precisions and shifts.
    given : FieldMoments
        The field given them; anything where the fixed point was not reached.
    n_sweeps : int
    change : float
        In the last sweep; above the tolerance where the fixed point was not reached.
    """

    sites: Float[np.ndarray, "2 J"]
    given: Any
    n_sweeps: int
    change: float


def iterate_sites(
    target: Any,
    damping: float,
    max_sweeps: int,
    tolerance: float,
    near: Float[np.ndarray, "2 J"] | None = None,
) -> EPState:
    """Sweep until sites are at their fixed point: from zero, or from those of a target ``near``.

    ``target.field.condition`` is all that is asked of the field, and `Likelihood.tilt` of the
    likelihood.
    """
    smooth = target.likelihood.has_gradient
    sites = np.zeros((2, len(target.labels))) if near is None else near
    given, change, n_sweeps = _conditioned(target, sites), np.inf, 0
    past: list[_Sweep] = []
    with np.errstate(all="ignore"):  # what is not finite is found below
        while given is not None and change > tolerance and n_sweeps < max_sweeps:
            mean, variance = _cavity(given, *sites)
            usable = variance > 0
            mean, variance = np.where(usable, mean, 0.0), np.where(usable, variance, 1.0)
            _, first, second = target.likelihood.tilt(mean, variance, target.labels)
            scale = 1 + variance * second  # variance of likelihood × cavity over the cavity's
            usable &= (scale > 0) & np.isfinite(scale) & np.isfinite(first)
            new = np.stack([-second, first - mean * second]) / scale
            now = _Sweep(sites, np.where(usable, new - sites, 0.0))
            sites = sites + damping * now.residual
            if smooth:
                weights = np.stack([given.variance, np.sqrt(given.variance)])
                sites = _accelerated(now, past, weights, damping, sites)
            before, given = given, _conditioned(target, sites)
            n_sweeps, last, change = n_sweeps + 1, change, np.inf
            if given is None:
                break
            kept = given.variance * sites[0]  # of the field's precision, by the label itself
            if usable.all() and (given.variance > 0).all() and (kept < 1).all():
                moved = np.abs(given.mean - before.mean) / np.sqrt(before.variance)
                change = float(moved.max()) / damping
            # Oscillation is damped as it shows, what led to it forgotten; progress wins freedom.
            better = change < (LEEWAY if smooth else 1.0) * last
            damping = min(damping * GAIN, 1.0) if better else max(damping * LOSS, LEAST)
            past = [now, *past[:1]] if better else []
    return EPState(sites, given, n_sweeps, change)


def _conditioned(target: Any, sites: Float[np.ndarray, "2 J"]) -> FieldMoments | None:
    """The field given sites, in NumPy; None where they make no Gaussian."""
    try:
        with jax.enable_x64(True):  # of several classes it is compiled
            given = FieldMoments(*map(np.asarray, target.field.condition(*sites)))
    except np.linalg.LinAlgError:
        return None
    return given if np.isfinite(given.mean).all() else None


def _cavity(given: FieldMoments, precision: Any, shift: Any) -> tuple[Any, Any]:
    """Mean and variance at each label of what all others say."""
    variance = 1 / (1 / given.variance - precision)
    return variance * (given.mean / given.variance - shift), variance


class _Sweep(NamedTuple):
    """Sites, and how far from them a sweep wants to go."""

    sites: Float[np.ndarray, "2 J"]
    residual: Float[np.ndarray, "2 J"]


def _accelerated(
    now: _Sweep, past: list[_Sweep], weights: Any, damping: float, plain: Any
) -> Float[np.ndarray, "2 J"]:
    """Anderson's step (1965): where a linear map with these three sweeps would settle.

    Residuals are judged in deviations of u. A step that leaves a precision negative is not taken,
    nor one along two turns that are one: then the ``plain`` one is.
    """
    sweeps = [now, *past]
    moves = [one.sites - other.sites for one, other in pairwise(sweeps)]
    turns = [one.residual - other.residual for one, other in pairwise(sweeps)]
    if not turns:
        return plain
    seen = np.stack([(turn * weights).ravel() for turn in turns])
    products = seen @ seen.T
    if np.linalg.det(products) <= ALIKE * np.prod(np.diagonal(products)):
        return plain
    shares = np.linalg.solve(products, seen @ (now.residual * weights).ravel())
    sites = plain
    for share, move, turn in zip(shares, moves, turns, strict=True):
        sites = sites - share * (move + damping * turn)
    return sites if (sites[0] >= 0).all() else plain


def log_evidence(target: Any, found: EPState) -> float:
    """``log p(y)`` at given sites; stationary in them at the fixed point.

    Its gradient in the model's parameters is therefore the partial one, the sites held fixed
    (Seeger 2005): `field_slopes` and `likelihood_slopes`.
    """
    precision, shift = found.sites
    mean, variance = _cavity(found.given, precision, shift)
    log_z = target.likelihood.tilt(mean, variance, target.labels).log_partition
    together = precision + 1 / variance
    site_norm = (
        log_z
        + 0.5 * np.log1p(precision * variance)
        - 0.5 * ((shift + mean / variance) ** 2 / together - mean**2 / variance)
    )
    return float(site_norm.sum() + found.given.log_normalizer)


def field_slopes(target: Any, found: EPState) -> Any:
    """Gradient of `log_evidence` in the field.

    In its covariance G at the labels ``(b bᵀ − R)/2`` with ``b = ν − τ E u`` and
    ``R = T − T Σ T`` (Rasmussen & Williams 2006, (5.9)); the field says what that is in its terms.
    """
    return target.field.slopes(*found.sites, found.given)


def likelihood_slopes(target: Any, found: EPState) -> dict[str, float]:
    """Gradient of `log_evidence` in the likelihood's hyperparameters, by name."""
    cavity = _cavity(found.given, *found.sites)
    slopes: dict[str, float] = target.likelihood.tilted_slopes(*cavity, target.labels)
    return slopes
