"""Expectation propagation: a Gaussian that matches the moments of each label's likelihood term."""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
from jaxtyping import Float

from graphuq.errors import InvalidInput, require
from graphuq.inference.answers import GaussianApproximation
from graphuq.inference.base import Approximation, SiteTarget
from graphuq.inference.nested_answer import nested_answer, starting_sites
from graphuq.inference.nested_start import StartingSites
from graphuq.inference.settings import RunSettings
from graphuq.inference.target_of_leads import target_of_leads
from graphuq.posterior.field import (
    ClassDifferenceField,
    FieldMoments,
    covariances_at,
)
from graphuq.posterior.posterior import Posterior
from graphuq.posterior.target import Target
from graphuq.utils.arrays import single_threaded_blas
from graphuq.utils.checks import check_fields
from graphuq.utils.progress import Progress

Sites: TypeAlias = Float[np.ndarray, "2 J"]  # precisions and shifts
PerLabel: TypeAlias = Float[np.ndarray, " J"]

DAMPINGS = (1.0, 0.2)  # initial values, tried in this order until one converges
SOFT_DAMPINGS = (0.2, 0.05)  # of soft labels, whose sites may have negative precisions
SMALL = 1e9  # labels × coordinates², up to which one core is as fast as two
PARALLEL = 1e-8  # determinant over product of squares, below which two differences are parallel
LEEWAY = 5.0  # factor by which the change may grow in a good sweep with Anderson's step
GAIN, LOSS, MIN_DAMPING = 1.2, 0.5, 0.02  # factors of the damping after a good or a bad sweep


class ExpectationPropagation(Approximation):
    r"""Replace each likelihood term by a Gaussian site ``exp(ν u − τ u²/2)`` (Minka 2001).

    The site is chosen so that site × cavity has the mean and variance of likelihood × cavity.
    The cavity is the distribution of ``u_j`` given all other labels. All sites are updated
    simultaneously, with damping if they oscillate (Rasmussen & Williams 2006, §3.6, in parallel).
    For smooth likelihoods of hard labels the step extrapolates the last three sweeps to their
    linear fixed point (Anderson 1965).

    For multiclass likelihoods this is nested expectation propagation (Riihimäki, Jylänki & Vehtari
    2013). Given the noise of the field of its class, a label is a product of K − 1 binary
    probits, one for each other class. Each has a scalar site. The noise, which they share, is
    integrated in closed form. `Softmax` is replaced by the probit with noise of the same variance.

    The method is an approximation; `result.diagnostics` reports the share of its draws that would
    be accepted as draws from the posterior.

    Parameters
    ----------
    max_sweeps : int, default 500
        Largest number of sweeps over all labels, for each of two initial dampings.
    tolerance : float, default 1e-5
        Largest change of a mean of u at a label in the last sweep, in standard deviations.
    """

    max_sweeps: int = 500
    tolerance: float = 1e-5
    requires_gradient: ClassVar[bool] = False

    def __check_init__(self) -> None:
        check_fields(self)
        require(self.max_sweeps >= 1, "max_sweeps", f"{self.max_sweeps}", "use 1 or more")
        require(self.tolerance > 0, "tolerance", f"{self.tolerance!r}", "use a positive bound")

    def unused_arguments(self, given: Sequence[str]) -> list[str]:
        """Return the arguments of `graphuq.infer` that have no effect: those of draws."""
        return [name for name in given if name not in ("start", "progress")]

    def run(
        self,
        posterior: Posterior,
        settings: RunSettings,
        reference: GaussianApproximation | StartingSites | None = None,
    ) -> GaussianApproximation:
        """Return the approximation of a posterior, from the sites of the reference."""
        return self.fit(posterior.plain_target, reference, settings.progress)

    def fit(
        self,
        target: SiteTarget,
        start: GaussianApproximation | StartingSites | None = None,
        progress: Progress | None = None,
    ) -> GaussianApproximation:
        """Iterate to the fixed point.

        Parameters
        ----------
        target : SiteTarget
        start : GaussianApproximation or StartingSites, optional
            Answer for the first of these labels, from whose sites the sweeps start, or the sites.
        progress : callable, optional
            Called after each sweep of several classes.

        Raises
        ------
        IncompatibleParts
            If the likelihood is multiclass and no probit (exactly or approximately) of a fixed
            number of classes, or the field has a tail and more labels than modes.
        InvalidInput
            If no damping reaches the fixed point.
        """
        began = time.perf_counter()
        fields, several = target.field, target.likelihood.is_multiclass
        if several:
            target = target_of_leads(target)
            found_nested = self._nested(fields, target, start, progress)
            if found_nested is not None:
                return found_nested
        small = not several and len(target.labels) * target.field.dimension**2 < SMALL
        sites = None if several else _first_sites(start, target.labels)
        for damping in dampings_of(target.likelihood):
            with single_threaded_blas() if small else nullcontext():
                found = iterate_sites(target, damping, self.max_sweeps, self.tolerance, sites)
            if found.change <= self.tolerance:
                break
        else:
            raise InvalidInput(
                "inference",
                f"expectation propagation did not converge within {self.max_sweeps} sweeps at any "
                f"damping (last change {found.change:.1g})",
                "raise max_sweeps, use a larger noise_std, or sample with PCN()",
            )
        given = found.given
        class_weights = class_shift = None
        if several:
            from graphuq.inference.nested_sites import field_shifts  # imports Numba

            differences = cast(ClassDifferenceField, target.field)
            class_weights, shifts = differences.star(*found.sites)
            class_shift = field_shifts(class_weights, shifts)
            mean = fields.at_labelled(given.white_mean)
            spread = covariances_at(fields.field.factor, given.white_covariance)
            variance = np.diagonal(spread, axis1=1, axis2=2)
            label_mean = np.full_like(mean, np.nan)  # `summaries` estimates it from draws
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
            class_weights=class_weights,
            class_shift=class_shift,
        )

    def _nested(
        self,
        fields: Any,
        target: Target,
        start: GaussianApproximation | StartingSites | None,
        progress: Progress | None,
    ) -> GaussianApproximation | None:
        """Return the answer of nested sweeps, or None if they do not reach a fixed point."""
        leads = cast(ClassDifferenceField, target.field)
        factor = np.asarray(fields.one_class.matrix(), dtype=np.float64)
        codes, noise_std = np.asarray(leads.codes, dtype=np.int64), float(leads.noise_std)
        sites = start if isinstance(start, StartingSites) else None
        if isinstance(start, GaussianApproximation) and start.class_weights is not None:
            sites = starting_sites(start.class_weights, start.class_shift, codes)
        return nested_answer(
            factor,
            codes,
            leads.n_classes,
            noise_std,
            self.max_sweeps,
            self.tolerance,
            sites,
            progress,
        )


def _first_sites(start: Any, labels: Float[np.ndarray, " J"]) -> Sites | None:
    """Return sites of all labels of two classes, 0 where the start has none."""
    if isinstance(start, StartingSites):
        return start.of_one_field((np.asarray(labels) > 0).astype(int))
    if start is None or start.sites is None:
        return None
    return np.pad(np.asarray(start.sites), [(0, 0), (0, len(labels) - np.shape(start.sites)[1])])


@runtime_checkable
class EPTarget(Protocol):
    """Target of expectation propagation: a field to condition, a likelihood and labels."""

    @property
    def field(self) -> Any:
        """Field with a method ``condition(precision, shift)``, and ``slopes`` for gradients."""
        ...

    @property
    def likelihood(self) -> Any:
        """Binary likelihood of fixed numbers."""
        ...

    @property
    def labels(self) -> Any:
        """Labels ±1, shape (J,)."""
        ...


def dampings_of(likelihood: Any) -> tuple[float, ...]:
    """Return initial values of the damping, to be tried in this order until one converges."""
    return SOFT_DAMPINGS if likelihood.has_soft_labels else DAMPINGS


class EPState(NamedTuple):
    """Sites after the last sweep.

    Attributes
    ----------
    sites : numpy.ndarray, shape (2, J)
        Precisions and shifts.
    given : FieldMoments
        The field given the sites; meaningless if the fixed point was not reached.
    n_sweeps : int
    change : float
        Largest change of a mean in the last sweep, in standard deviations. It exceeds the
        tolerance if the fixed point was not reached.
    """

    sites: Sites
    given: Any  # FieldMoments or None
    n_sweeps: int
    change: float


def iterate_sites(
    target: EPTarget,
    damping: float,
    max_sweeps: int,
    tolerance: float,
    initial_sites: Sites | None = None,
) -> EPState:
    """Sweep until the sites are at their fixed point.

    Parameters
    ----------
    target : EPTarget
        Only ``target.field.condition`` and `Likelihood.tilt` are used.
    damping : float
        Initial share of each update, in (0, 1].
    max_sweeps : int
    tolerance : float
        See `ExpectationPropagation`.
    initial_sites : numpy.ndarray, shape (2, J), optional
        Sites to start from, such as those of a similar target; zero by default.
    """
    # Sites of soft labels may have negative precisions; extrapolation keeps them in cycles.
    smooth = target.likelihood.has_gradient and not target.likelihood.has_soft_labels
    sites = np.zeros((2, len(target.labels))) if initial_sites is None else initial_sites
    given, change, n_sweeps = _field_given(target, sites), np.inf, 0
    past: list[_Sweep] = []
    with np.errstate(all="ignore"):  # values that are not finite are caught below
        while given is not None and change > tolerance and n_sweeps < max_sweeps:
            mean, variance = _cavity(given, *sites)
            usable = variance > 0
            mean, variance = np.where(usable, mean, 0.0), np.where(usable, variance, 1.0)
            _, first, second = target.likelihood.tilt(mean, variance, target.labels)
            scale = 1 + variance * second  # variance of likelihood × cavity over that of the cavity
            usable &= (scale > 0) & np.isfinite(scale) & np.isfinite(first)
            new = np.stack([-second, first - mean * second]) / scale
            now = _Sweep(sites, np.where(usable, new - sites, 0.0))
            sites = sites + damping * now.residual
            if smooth:
                weights = np.stack([given.variance, np.sqrt(given.variance)])
                sites = _anderson_step(now, past, weights, damping, sites)
            before, given = given, _field_given(target, sites)
            n_sweeps, last, change = n_sweeps + 1, change, np.inf
            if given is None:
                break
            if usable.all() and _is_proper(given, sites):
                moved = np.abs(given.mean - before.mean) / np.sqrt(before.variance)
                change = float(moved.max()) / damping
            # Oscillation increases the damping and clears the history; progress reduces it.
            better = change < (LEEWAY if smooth else 1.0) * last
            damping = min(damping * GAIN, 1.0) if better else max(damping * LOSS, MIN_DAMPING)
            past = [now, *past[:1]] if better else []
    return EPState(sites, given, n_sweeps, change)


def _field_given(target: EPTarget, sites: Sites) -> FieldMoments | None:
    """Return the field given sites, in NumPy, or None if they make no Gaussian."""
    try:
        given: FieldMoments = target.field.condition(*sites)
    except np.linalg.LinAlgError:
        return None
    return given if np.isfinite(given.mean).all() else None


def _is_proper(given: FieldMoments, sites: Sites) -> bool:
    """Return whether variances are positive, and all cavities Gaussian."""
    share = given.variance * sites[0]  # the label's own contribution to the precision
    return bool((given.variance > 0).all() and (share < 1).all())


def _cavity(given: FieldMoments, precision: PerLabel, shift: PerLabel) -> tuple[PerLabel, PerLabel]:
    """Return mean and variance of u at each label given all other labels."""
    variance = 1 / (1 / given.variance - precision)
    return variance * (given.mean / given.variance - shift), variance


class _Sweep(NamedTuple):
    """Sites before a sweep, and the undamped update of the sweep."""

    sites: Sites
    residual: Sites


def _anderson_step(
    now: _Sweep, past: list[_Sweep], weights: Sites, damping: float, plain: Sites
) -> Sites:
    """Return Anderson's step (1965): the fixed point of a linear map with these three sweeps.

    Residuals are measured in standard deviations of u. The ``plain`` step is returned instead if
    two differences are parallel or a precision would be negative.
    """
    sweeps = [now, *past]
    site_steps = [one.sites - other.sites for one, other in pairwise(sweeps)]
    residual_steps = [one.residual - other.residual for one, other in pairwise(sweeps)]
    if not residual_steps:
        return plain
    scaled = np.stack([(step * weights).ravel() for step in residual_steps])
    products = scaled @ scaled.T
    if np.linalg.det(products) <= PARALLEL * np.prod(np.diagonal(products)):
        return plain
    shares = np.linalg.solve(products, scaled @ (now.residual * weights).ravel())
    sites = plain
    for share, of_sites, of_residual in zip(shares, site_steps, residual_steps, strict=True):
        sites = sites - share * (of_sites + damping * of_residual)
    return sites if (sites[0] >= 0).all() else plain


def log_evidence(target: EPTarget, found: EPState) -> float:
    """Return ``log p(y)`` at given sites, which is stationary in the sites at the fixed point.

    Its gradient in the model's parameters is therefore the partial gradient with the sites held
    fixed (Seeger 2005): `field_slopes` and `likelihood_slopes`.
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


def field_slopes(target: EPTarget, found: EPState) -> Any:
    """Return the gradient of `log_evidence` in the parameters of the field.

    In the covariance G at the labels it is ``(b bᵀ − R)/2`` with ``b = ν − τ E u`` and
    ``R = T − T Σ T`` (Rasmussen & Williams 2006, (5.9)). The ``slopes`` method of the field
    converts it to the parameters of that field.
    """
    return target.field.slopes(*found.sites, found.given)


def likelihood_slopes(target: EPTarget, found: EPState) -> dict[str, float]:
    """Return the gradient of `log_evidence` in the likelihood's hyperparameters, by name."""
    cavity = _cavity(found.given, *found.sites)
    slopes: dict[str, float] = target.likelihood.tilted_slopes(*cavity, target.labels)
    return slopes
