"""Floor 5: draws or a Gaussian → numbers for every node."""

import numpy as np
from jaxtyping import Float

from graphuq.inference import GaussianApproximation, Point
from graphuq.inference.draws import Draws
from graphuq.posterior.field import ClassField, LabelledField
from graphuq.results.summaries import binary, multiclass
from graphuq.results.summaries.base import Link, NodeSummaries, Rows, conditional_moments
from graphuq.results.summaries.marginals import (
    class_probability_draws,
    credible_interval,
    latent_draws,
    soft_label_mean,
    soft_labels,
)

__all__ = [
    "NodeSummaries",
    "Rows",
    "class_probability_draws",
    "conditional_moments",
    "credible_interval",
    "label_errors",
    "latent_draws",
    "soft_label_mean",
    "soft_labels",
    "summarize",
]


def summarize(
    answer: Draws | GaussianApproximation | Point,
    field: LabelledField | ClassField,
    rows: Rows,
    link: Link = None,
) -> NodeSummaries:
    """Means, deviations and Monte-Carlo errors at nodes; see the two modules."""
    if isinstance(field, ClassField):
        return multiclass.summarize(answer, field, rows)
    return binary.summarize(answer, field, rows, link)


def label_errors(
    draws: Draws,
    field: LabelledField | ClassField,
    rows: Rows,
    link: Link = None,
) -> Float[np.ndarray, "B *K"]:
    """Their Monte-Carlo errors of label means alone: what a stop rule asks time and again."""
    if isinstance(field, ClassField):
        return multiclass.summarize(draws, field, rows).label_mcse
    return binary.label_errors(draws, field, rows, link)
