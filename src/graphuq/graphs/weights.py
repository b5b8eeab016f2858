"""Distance → weight.

Formulas serve NumPy and JAX arrays alike, so that evidence can be differentiated in their
parameters (`graphuq.EvidenceSearch`).
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from graphuq.errors import InvalidInput, require
from graphuq.utils.arrays import Array, array_namespace

METRICS = ("euclidean", "cosine", "precomputed")


@runtime_checkable
class WeightFunction(Protocol):
    """A rule from distances, and the local scales τ at both ends, to weights."""

    @property
    def metric(self) -> str:
        """The distance it is a function of: one of `METRICS`."""
        ...

    def weight(self, distance: Any, scale_rows: Any, scale_columns: Any) -> Any:
        """Weights of the shape to which the three arguments broadcast."""
        ...


def _check_metric(metric: str) -> None:
    require(
        metric in METRICS, "metric", f"{metric!r} is unknown", f"use one of {', '.join(METRICS)}"
    )


@dataclass(frozen=True)
class SelfTuning:
    """``exp(-sharpness d² / (τ_i τ_j))``, τ the distance to the K-th neighbour.

    Zelnik-Manor & Perona 2004; Bertozzi et al. 2018, (16), with sharpness 1/2. Larger values
    favour the nearest of the K neighbours. Identical points have weight 1, also where so many
    coincide that τ = 0.
    """

    sharpness: float = 0.5
    metric: str = dataclasses.field(default="euclidean", repr=False)

    def __post_init__(self) -> None:
        _check_metric(self.metric)
        require(
            self.sharpness > 0, "sharpness", f"{self.sharpness!r} is not positive", "use 0.5, or 4"
        )

    def weight(self, distance: Array, scale_rows: Array, scale_columns: Array) -> Array:
        """Weights of the shape to which the three arguments broadcast."""
        xp = array_namespace(distance)
        product = scale_rows * scale_columns
        known = (product > 0) & (distance > 0)
        exponent = self.sharpness * distance**2 / xp.where(known, product, 1.0)
        # Where the scale is 0 and the points are apart there is no weight.
        return xp.where(known, xp.exp(-exponent), xp.where(distance > 0, 0.0, 1.0))


@dataclass(frozen=True)
class GaussianWeights:
    """``exp(-d² / (2 scale²))``; ``scale`` > 0 in units of the distance.

    Zhu, Lafferty & Ghahramani's exponential weights ``exp(-d²/α²)`` with ``scale = α/√2``. Several
    scales, one a feature, are for Euclidean distances: a feature of large scale hardly counts.
    """

    scale: Any
    metric: str = dataclasses.field(default="euclidean", repr=False)

    def __post_init__(self) -> None:
        _check_metric(self.metric)
        if isinstance(self.scale, np.ndarray | list):
            object.__setattr__(self, "scale", tuple(float(x) for x in self.scale))
        positive = np.all(np.asarray(self.scale) > 0)
        require(positive, "scale", f"{self.scale!r} is not positive", "give a length > 0")
        require(
            not isinstance(self.scale, tuple) or self.metric == "euclidean",
            "scale",
            f"one a feature, of {self.metric} distances",
            "give one number, or use Euclidean distances",
        )

    @property
    def feature_scales(self) -> Any:
        """What features are divided by before distances are taken; None for nothing."""
        return self.scale if np.ndim(self.scale) else None

    def weight(self, distance: Array, scale_rows: Array, scale_columns: Array) -> Array:
        """Weights of the shape of ``distance``."""
        scale: Any = 1.0 if np.ndim(self.scale) else self.scale
        return array_namespace(distance).exp(-(distance**2) / (2 * scale**2))


@dataclass(frozen=True)
class TanhWeights:
    """``(1 − tanh(steepness (d − cutoff))) / 2``: a soft cutoff (Zhu et al. 2003, §3).

    Near 1 below the cutoff and near 0 above it, the sooner the steeper: as steepness grows, an
    unweighted graph of all pairs within the cutoff. The paper's α₁ is minus the steepness.

    Parameters
    ----------
    steepness : float
        > 0, in units of 1/distance.
    cutoff : float
        > 0, in units of the distance.
    """

    steepness: float
    cutoff: float
    metric: str = dataclasses.field(default="euclidean", repr=False)

    def __post_init__(self) -> None:
        _check_metric(self.metric)
        for name in ("steepness", "cutoff"):
            value = getattr(self, name)
            require(value > 0, name, f"{value!r} is not positive", "use a number > 0")

    def weight(self, distance: Array, scale_rows: Array, scale_columns: Array) -> Array:
        """Weights of the shape of ``distance``; ``1 / (1 + e^{2x})``, which keeps small ones."""
        xp = array_namespace(distance)
        x = xp.clip(2 * self.steepness * (distance - self.cutoff), -700.0, 700.0)
        return 1 / (1 + xp.exp(x))


@dataclass(frozen=True)
class Unweighted:
    """1 for every edge."""

    metric: str = dataclasses.field(default="euclidean", repr=False)

    def __post_init__(self) -> None:
        _check_metric(self.metric)

    def weight(self, distance: Array, scale_rows: Array, scale_columns: Array) -> Array:
        """Ones of the shape of ``distance``."""
        return array_namespace(distance).ones_like(distance)


@dataclass(frozen=True)
class Cosine:
    """``<x, x'> / (|x| |x'|)`` (Bertozzi et al. 2018, §5.1.4); features must make it >= 0."""

    metric: str = dataclasses.field(default="cosine", repr=False)

    def __post_init__(self) -> None:
        require(self.metric == "cosine", "metric", f"{self.metric!r}", "these are of the cosine")

    def weight(self, distance: Array, scale_rows: Array, scale_columns: Array) -> Array:
        """Weights of the shape of ``distance``, which is 1 - cosine."""
        weights = 1.0 - distance
        rounding = 1e-12
        if (weights < -rounding).any():
            raise InvalidInput(
                "weights",
                f"'cosine' is negative for some pairs (smallest {weights.min():.3g})",
                "use non-negative features, fewer neighbours, or weights='self-tuning'",
            )
        return array_namespace(distance).maximum(weights, 0.0)


WEIGHT_NAMES = ("self-tuning", "gaussian", "unweighted", "cosine")


def weight_function(
    weights: str | WeightFunction, scale: Any = None, metric: str | None = None
) -> Any:
    """Resolve a name of `WEIGHT_NAMES`, or pass a weight function through.

    Raises
    ------
    InvalidInput
        If the name or the metric is unknown, ``"gaussian"`` comes without a ``scale``, or a
        ``scale`` or ``metric`` comes with what has none.
    """
    require(
        scale is None or (isinstance(weights, str) and weights == "gaussian"),
        "scale",
        f"{scale!r} has no effect with weights={weights!r}",
        "leave it out, or use weights='gaussian'",
    )
    found: Any = weights
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
                    "scale", "missing", "weights='gaussian' needs a length, for example scale=1.25"
                )
            found = GaussianWeights(scale)
        else:
            table = {"self-tuning": SelfTuning, "unweighted": Unweighted, "cosine": Cosine}
            found = table[weights]()
    if metric is None or metric == found.metric:
        return found
    require(
        dataclasses.is_dataclass(found),
        "metric",
        f"{metric!r} beside {found!r}",
        "leave it out: the weight function says which distance it is of",
    )
    return dataclasses.replace(found, metric=metric)
