"""Floor 3: what a label says about the field, one file each."""

from graphuq.likelihoods.atomic_noise import AtomicNoise
from graphuq.likelihoods.base import Likelihood, StepLikelihood
from graphuq.likelihoods.gaussian import Gaussian
from graphuq.likelihoods.ginzburg_landau import GinzburgLandau
from graphuq.likelihoods.level_set import LevelSet
from graphuq.likelihoods.logistic import Logistic
from graphuq.likelihoods.noise_free import NoiseFree
from graphuq.likelihoods.probit import Probit
from graphuq.likelihoods.softmax import Softmax

__all__ = [
    "AtomicNoise",
    "Gaussian",
    "GinzburgLandau",
    "LevelSet",
    "Likelihood",
    "Logistic",
    "NoiseFree",
    "Probit",
    "Softmax",
    "StepLikelihood",
]
