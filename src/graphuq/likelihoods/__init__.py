"""Floor 3: what a label says about the field, one file each."""

from graphuq.likelihoods.base import Likelihood
from graphuq.likelihoods.level_set import LevelSet
from graphuq.likelihoods.probit import Probit

__all__ = ["LevelSet", "Likelihood", "Probit"]
