"""Distance → weight."""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from graphuq.errors import InvalidInput, require


@runtime_checkable
class WeightFunction(Protocol):
    """A rule from distances, and the local scales τ at both ends, to weights."""

    metric: ClassVar[str]  # the distance it is a function of: "euclidean" or "cosine"

    def weight(
        self, distance: np.ndarray, scale_rows: np.ndarray, scale_columns: np.ndarray
    ) -> np.ndarray:
        """Weights of the shape to which the three arguments broadcast."""
        ...


@dataclass(frozen=True)
class SelfTuning:
    """``exp(-sharpness d² / (τ_i τ_j))``, τ the distance to the K-th neighbour.

    Zelnik-Manor & Perona 2004; Bertozzi et al. 2018, (16), with sharpness 1/2. Larger values
    favour the nearest of the K neighbours. Identical points have weight 1, also where so many
    coincide that τ = 0.
    """

    sharpness: float = 0.5
    metric: ClassVar[str] = "euclidean"

    def __post_init__(self) -> None:
        require(
            self.sharpness > 0, "sharpness", f"{self.sharpness!r} is not positive", "use 0.5, or 4"
        )

    def weight(
        self, distance: np.ndarray, scale_rows: np.ndarray, scale_columns: np.ndarray
    ) -> np.ndarray:
        """Weights of the shape to which the three arguments broadcast."""
        with np.errstate(divide="ignore", invalid="ignore"):
            exponent = self.sharpness * distance**2 / (scale_rows * scale_columns)
        return np.exp(-np.where(distance == 0, 0.0, exponent))


@dataclass(frozen=True)
class GaussianWeights:
    """``exp(-d² / (2 scale²))``; ``scale`` > 0 in units of the distance."""

    scale: float
    metric: ClassVar[str] = "euclidean"

    def __post_init__(self) -> None:
        require(self.scale > 0, "scale", f"{self.scale!r} is not positive", "give a length > 0")

    def weight(
        self, distance: np.ndarray, scale_rows: np.ndarray, scale_columns: np.ndarray
    ) -> np.ndarray:
        """Weights of the shape of ``distance``."""
        return np.exp(-(distance**2) / (2 * self.scale**2))


@dataclass(frozen=True)
class Unweighted:
    """1 for every edge."""

    metric: ClassVar[str] = "euclidean"

    def weight(
        self, distance: np.ndarray, scale_rows: np.ndarray, scale_columns: np.ndarray
    ) -> np.ndarray:
        """Ones of the shape of ``distance``."""
        return np.ones_like(distance)


@dataclass(frozen=True)
class Cosine:
    """``<x, x'> / (|x| |x'|)`` (Bertozzi et al. 2018, §5.1.4); features must make it >= 0."""

    metric: ClassVar[str] = "cosine"

    def weight(
        self, distance: np.ndarray, scale_rows: np.ndarray, scale_columns: np.ndarray
    ) -> np.ndarray:
        """Weights of the shape of ``distance``, which is 1 - cosine."""
        weights = 1.0 - distance
        rounding = 1e-12
        if (weights < -rounding).any():
            raise InvalidInput(
                "weights",
                f"'cosine' is negative for some pairs (smallest {weights.min():.3g})",
                "use non-negative features, fewer neighbours, or weights='self-tuning'",
            )
        return np.maximum(weights, 0.0)


WEIGHT_NAMES = ("self-tuning", "gaussian", "unweighted", "cosine")


def weight_function(weights: str | WeightFunction, scale: float | None = None) -> WeightFunction:
    """Resolve a name of `WEIGHT_NAMES`, or pass a weight function through.

    Raises
    ------
    InvalidInput
        If the name is unknown, ``"gaussian"`` comes without a ``scale``, or a ``scale``
        comes with anything else.
    """
    if weights == "gaussian":
        if scale is None:
            raise InvalidInput(
                "scale", "missing", "weights='gaussian' needs a length, for example scale=1.25"
            )
        return GaussianWeights(scale)
    require(
        scale is None,
        "scale",
        f"{scale!r} has no effect with weights={weights!r}",
        "leave it out, or use weights='gaussian'",
    )
    if not isinstance(weights, str):
        return weights
    table: dict[str, WeightFunction] = {
        "self-tuning": SelfTuning(),
        "unweighted": Unweighted(),
        "cosine": Cosine(),
    }
    require(
        weights in table,
        "weights",
        f"{weights!r} is unknown",
        f"use one of {', '.join(WEIGHT_NAMES)}",
    )
    return table[weights]
