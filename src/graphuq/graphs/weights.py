"""Weight functions, which map distances to weights.

The formulas serve NumPy and JAX arrays alike, so that the evidence can be differentiated with
respect to their parameters (`graphuq.EvidenceSearch`).
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, SupportsFloat, TypeAlias, runtime_checkable

import numpy as np

from graphuq.errors import InvalidInput, require
from graphuq.utils.arrays import Array, array_namespace
from graphuq.utils.checks import describe, require_positive, require_scale
from graphuq.utils.shown import shown_call

Scale: TypeAlias = SupportsFloat | Sequence[SupportsFloat]
"""Length scale of a weight function, or one per feature."""

METRICS = ("euclidean", "cosine", "precomputed")
OTHER_METRICS = {
    "correlation": "; it is the cosine of X - X.mean(axis=1, keepdims=True)",
    "l2": "; it is euclidean",
}
COSINE_ROUNDING = 1e-12  # largest negative cosine that counts as the rounding error of 0


@runtime_checkable
class WeightFunction(Protocol):
    """Rule that maps distances, and the local scales τ of both ends, to weights.

    Two attributes are optional: ``uses_local_scales``, False by default, tells whether the local
    scales enter the weights. ``feature_scales``, None by default, holds one length per feature.
    """

    @property
    def metric(self) -> str:
        """Distance that the weights are a function of, one of `METRICS`."""
        ...

    def weight(self, distance: Array, scale_rows: Array, scale_columns: Array) -> Any:
        """Return weights of the shape to which the three arguments broadcast."""
        ...

    def __repr__(self) -> str:
        """Return the call that makes it, without arguments that have their default."""
        is_value = dataclasses.is_dataclass(self)
        return shown_call(self) if is_value else object.__repr__(self)


def _check_metric(metric: str) -> None:
    require(
        metric in METRICS,
        "metric",
        f"{metric!r} is unknown",
        f"use one of {', '.join(METRICS)}"
        + (OTHER_METRICS.get(metric, "") if isinstance(metric, str) else ""),
    )


@dataclass(frozen=True, repr=False)
class SelfTuning(WeightFunction):
    """Weights ``exp(-sharpness d² / (τ_i τ_j))``, where τ is the distance to the K-th neighbour.

    Zelnik-Manor & Perona 2004; Bertozzi et al. 2018, (16), with sharpness 1/2. Larger values
    favour the nearest of the K neighbours. Identical points have weight 1, even if more than K
    points coincide and τ = 0.

    Parameters
    ----------
    sharpness : float, default 0.5
        Factor > 0 of the exponent.
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
    """

    uses_local_scales: ClassVar[bool] = True

    sharpness: float = 0.5
    metric: str = "euclidean"

    def __post_init__(self) -> None:
        _check_metric(self.metric)
        require_positive("sharpness", self.sharpness, "use a number > 0, such as 0.5 or 4")

    def weight(self, distance: Array, scale_rows: Array, scale_columns: Array) -> Array:
        """Return weights of the shape to which the three arguments broadcast."""
        xp = array_namespace(distance)
        product = scale_rows * scale_columns
        known = (product > 0) & (distance > 0)
        exponent = self.sharpness * distance**2 / xp.where(known, product, 1.0)
        # If a scale is 0 and the points differ, the weight is 0.
        return xp.where(known, xp.exp(-exponent), xp.where(distance > 0, 0.0, 1.0))


@dataclass(frozen=True, repr=False)
class GaussianWeights(WeightFunction):
    """Weights ``exp(-d² / (2 scale²))``.

    These are the exponential weights ``exp(-d²/α²)`` of Zhu, Lafferty & Ghahramani with
    ``scale = α/√2``.

    Parameters
    ----------
    scale : float, or sequence of d floats
        Length scale > 0 in units of the distance, or one per feature, for Euclidean distances
        only. A feature of large scale has little influence.
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
    """

    scale: Scale
    metric: str = "euclidean"

    def __post_init__(self) -> None:
        _check_metric(self.metric)
        remedy = "give a length > 0, or one per feature"
        try:
            scales = np.asarray(self.scale, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput("scale", f"{describe(self.scale)} is not a number", remedy) from None
        require(scales.ndim <= 1, "scale", f"{scales.ndim} dimensions", remedy)
        if isinstance(self.scale, np.ndarray | list) and scales.ndim == 1:
            object.__setattr__(self, "scale", tuple(scales.tolist()))
        require((scales > 0).all(), "scale", f"{self.scale!r} is not positive", remedy)
        for scale in np.unique(scales):
            require_scale("scale", float(scale))
        require(
            scales.ndim == 0 or self.metric == "euclidean",
            "scale",
            f"one per feature, with {self.metric} distances",
            "give one number, or use Euclidean distances",
        )

    @property
    def feature_scales(self) -> Any:
        """Lengths that features are divided by before distances are computed, or None."""
        scale: Any = self.scale
        return scale if np.ndim(scale) else None

    def weight(self, distance: Array, scale_rows: Array, scale_columns: Array) -> Array:
        """Return weights of the shape of ``distance``."""
        scale: Any = self.scale if self.feature_scales is None else 1.0
        return array_namespace(distance).exp(-(distance**2) / (2 * scale**2))


@dataclass(frozen=True, repr=False)
class TanhWeights(WeightFunction):
    """Weights ``(1 − tanh(steepness (d − cutoff))) / 2``, a soft cutoff (Zhu et al. 2003, §3).

    Weights are near 1 below the cutoff and near 0 above it. As the steepness grows, the graph
    becomes an unweighted graph of all pairs within the cutoff. The paper's α₁ is minus the
    steepness.

    Parameters
    ----------
    steepness : float
        Number > 0, in units of 1/distance.
    cutoff : float
        Number > 0, in units of the distance.
    metric : {"euclidean", "cosine", "precomputed"}, default "euclidean"
    """

    steepness: float
    cutoff: float
    metric: str = "euclidean"

    def __post_init__(self) -> None:
        _check_metric(self.metric)
        for name in ("steepness", "cutoff"):
            require_positive(name, getattr(self, name))

    def weight(self, distance: Array, scale_rows: Array, scale_columns: Array) -> Array:
        """Return weights of the shape of ``distance``."""
        # The equivalent 1 / (1 + e^{2x}) does not round small weights to 0.
        xp = array_namespace(distance)
        x = xp.clip(2 * self.steepness * (distance - self.cutoff), -700.0, 700.0)
        return 1 / (1 + xp.exp(x))


@dataclass(frozen=True, repr=False)
class Unweighted(WeightFunction):
    """Weight 1 for every edge."""

    metric: str = "euclidean"

    def __post_init__(self) -> None:
        _check_metric(self.metric)

    def weight(self, distance: Array, scale_rows: Array, scale_columns: Array) -> Array:
        """Return ones of the shape of ``distance``."""
        return array_namespace(distance).ones_like(distance)


@dataclass(frozen=True, repr=False)
class Cosine(WeightFunction):
    """Weights ``<x, x'> / (|x| |x'|)`` (Bertozzi et al. 2018, §5.1.4).

    They must be >= 0, as they are for non-negative features.
    """

    metric: str = "cosine"

    def __post_init__(self) -> None:
        require(
            self.metric == "cosine",
            "metric",
            f"{self.metric!r} does not fit cosine weights",
            "leave it out, or use 'cosine'",
        )

    def weight(self, distance: Array, scale_rows: Array, scale_columns: Array) -> Array:
        """Return weights of the shape of ``distance``, which is 1 − cosine."""
        weights = 1.0 - distance
        if (weights < -COSINE_ROUNDING).any():
            raise InvalidInput(
                "weights",
                f"'cosine' is negative for some pairs (smallest {weights.min():.3g})",
                "use non-negative features, fewer neighbours, or weights='self-tuning'",
            )
        return array_namespace(distance).maximum(weights, 0.0)


def uses_local_scales(weight: WeightFunction) -> bool:
    """Whether the weights depend on the local scales of the nodes."""
    return bool(getattr(weight, "uses_local_scales", False))


def feature_scales(weight: WeightFunction) -> Any:
    """Return the lengths that features are divided by, or None."""
    return getattr(weight, "feature_scales", None)


WEIGHT_NAMES = ("self-tuning", "gaussian", "unweighted", "cosine")


def weight_function(
    weights: str | WeightFunction, scale: Scale | None = None, metric: str | None = None
) -> Any:
    """Return the weight function of a name in `WEIGHT_NAMES`, or the given weight function.

    Raises
    ------
    InvalidInput
        If the name or the metric is unknown, ``weights`` is no weight function, ``"gaussian"`` is
        given without a ``scale``, or a ``scale`` or ``metric`` would have no effect.
    """
    require(
        isinstance(weights, WeightFunction | str) and not isinstance(weights, type),
        "weights",
        f"{describe(weights)} is not a weight function",
        f"use one of {', '.join(WEIGHT_NAMES)}, or an instance such as SelfTuning()",
    )
    require(
        scale is None or (isinstance(weights, str) and weights == "gaussian"),
        "scale",
        f"{scale!r} has no effect with weights={weights!r}",
        "leave it out, or use weights='gaussian'",
    )
    function: Any = weights
    if isinstance(weights, str):
        require(
            weights in WEIGHT_NAMES,
            "weights",
            f"{weights!r} is unknown",
            f"use one of {', '.join(WEIGHT_NAMES)}",
        )
        if weights == "gaussian":
            if scale is None:
                raise InvalidInput(
                    "weights", "'gaussian' has no length", "use GaussianWeights(scale=1.25)"
                )
            function = GaussianWeights(scale)
        else:
            table = {"self-tuning": SelfTuning, "unweighted": Unweighted, "cosine": Cosine}
            function = table[weights]()
    if metric is None or metric == function.metric:
        return function
    require(
        dataclasses.is_dataclass(function),
        "metric",
        f"{metric!r} beside {function!r}",
        "leave it out: the weight function determines its distance",
    )
    return dataclasses.replace(function, metric=metric)
