"""Collapsed Gibbs sampling of the noisy values behind the labels of a probit."""

from graphuq.inference.collapsed_gibbs.annotators import AnnotatorGibbs
from graphuq.inference.collapsed_gibbs.sampler import CollapsedGibbs

__all__ = ["AnnotatorGibbs", "CollapsedGibbs"]
