"""Draws from a finite mixture of priors: the evidence weighs the components."""

from graphuq.inference.model_average.likely_components import (
    likeliest_component,
    likeliest_of_kind,
    probabilities_of_components,
)
from graphuq.inference.model_average.sampler import ModelAverage

__all__ = [
    "ModelAverage",
    "likeliest_component",
    "likeliest_of_kind",
    "probabilities_of_components",
]
