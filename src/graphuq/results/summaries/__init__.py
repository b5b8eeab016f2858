"""Numbers for every node, computed from draws, a Gaussian or a point."""

import numpy as np
from jaxtyping import Float

from graphuq.inference import GaussianApproximation, GaussianMixture, Point
from graphuq.inference.draws import Draws
from graphuq.posterior.field import ClassField, LabelledField
from graphuq.results.summaries.base import Link, NodeSummaries, Rows, conditional_moments
from graphuq.results.summaries.marginals import (
    class_probability_draws,
    credible_interval,
    latent_draws,
    module_for,
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
    answer: Draws | GaussianApproximation | GaussianMixture | Point,
    field: LabelledField | ClassField,
    rows: Rows,
    link: Link = None,
) -> NodeSummaries:
    """Return means, deviations and Monte-Carlo errors at nodes.

    See `binary.summarize`, `ordered.summarize` and `multiclass.summarize`.
    """
    found: NodeSummaries = module_for(field, link).summarize(answer, field, rows, link)
    return found


def label_errors(
    draws: Draws,
    field: LabelledField | ClassField,
    rows: Rows,
    link: Link = None,
) -> Float[np.ndarray, "B *K"]:
    """Return the Monte-Carlo errors of label means alone, which stop rules need repeatedly."""
    errors: np.ndarray = module_for(field, link).label_errors(draws, field, rows, link)
    return errors
