"""Likelihoods: the distribution of a label given the field, one file each."""

from graphuq.likelihoods.atomic_noise import AtomicNoise
from graphuq.likelihoods.base import Likelihood, StepLikelihood
from graphuq.likelihoods.confusion_matrix import ConfusionMatrix
from graphuq.likelihoods.gaussian import GaussianNoise
from graphuq.likelihoods.ginzburg_landau import GinzburgLandau, GinzburgLandauPrior
from graphuq.likelihoods.level_set import LevelSet
from graphuq.likelihoods.logistic import Logistic
from graphuq.likelihoods.noise_free import NoiseFree
from graphuq.likelihoods.ordered import Ordered
from graphuq.likelihoods.probit import Probit
from graphuq.likelihoods.soft_probit import SoftProbit
from graphuq.likelihoods.softmax import Softmax

__all__ = [
    "AtomicNoise",
    "ConfusionMatrix",
    "GaussianNoise",
    "GinzburgLandau",
    "GinzburgLandauPrior",
    "LevelSet",
    "Likelihood",
    "Logistic",
    "NoiseFree",
    "Ordered",
    "Probit",
    "SoftProbit",
    "Softmax",
    "StepLikelihood",
]
