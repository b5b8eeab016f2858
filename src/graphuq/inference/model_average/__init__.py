"""Draws from a finite mixture of priors: the evidence weighs the components."""

from graphuq.inference.model_average.class_shares import ClassShares, are_many_of_two, weigh_shares
from graphuq.inference.model_average.each_component import EachComponent, coefficients_given
from graphuq.inference.model_average.likely_components import (
    N_CHECKED,
    Screened,
    keep_earlier,
    keep_screened,
    likeliest_component,
    likeliest_of_block,
    likely_places,
    screened,
    screened_for_two,
    stratified,
)
from graphuq.inference.model_average.sampler import ModelAverage

__all__ = [
    "N_CHECKED",
    "ClassShares",
    "EachComponent",
    "ModelAverage",
    "Screened",
    "are_many_of_two",
    "coefficients_given",
    "keep_earlier",
    "keep_screened",
    "likeliest_component",
    "likeliest_of_block",
    "likely_places",
    "screened",
    "screened_for_two",
    "stratified",
    "weigh_shares",
]
