"""Independence samplers: whole draws are proposed and accepted by Metropolis and Hastings."""

from graphuq.inference.independence.base import IndependenceSampler
from graphuq.inference.independence.gaussian import Independence
from graphuq.inference.independence.sequential import SequentialIndependence

__all__ = ["Independence", "IndependenceSampler", "SequentialIndependence"]
