"""Floor 5: draws or a Gaussian → numbers for every node."""

from types import ModuleType
from typing import Any

from graphuq.field import ClassField, LabelledField
from graphuq.inference import Gaussian, Point
from graphuq.inference.chains import Draws
from graphuq.summaries import several_classes, two_classes
from graphuq.summaries.base import NodeSummaries, Rows

__all__ = [
    "NodeSummaries",
    "Rows",
    "conditional_moments",
    "credible_interval",
    "latent_draws",
    "summarize",
]


def _of(field: LabelledField | ClassField) -> ModuleType:
    return several_classes if isinstance(field, ClassField) else two_classes


def summarize(
    answer: Draws | Gaussian | Point, field: LabelledField | ClassField, rows: Rows
) -> NodeSummaries:
    """Means, deviations and Monte-Carlo errors at nodes; see the two modules."""
    found: NodeSummaries = _of(field).summarize(answer, field, rows)
    return found


def conditional_moments(field: LabelledField | ClassField, white: Any, rows: Rows) -> Any:
    """Mean (B, S) or (B, S, K), and deviation (B,), of u given each draw's u at the labels."""
    return _of(field).conditional_moments(field, white, rows)


def latent_draws(draws: Draws, field: LabelledField | ClassField, rows: Rows, seed: int = 0) -> Any:
    """U at nodes in every draw, (B, S) or (B, S, K)."""
    return _of(field).latent_draws(draws, field, rows, seed)


def credible_interval(
    answer: Draws | Gaussian | Point,
    field: LabelledField | ClassField,
    rows: Rows,
    probability: float,
) -> Any:
    """Equal-tailed credible interval of u at nodes, (B, 2) or (B, K, 2)."""
    return _of(field).credible_interval(answer, field, rows, probability)
