"""Priors: Gaussian random series on the eigenvectors of a graph, one file each."""

from graphuq.priors.base import Modes, Prior, SpectralStd
from graphuq.priors.diffusion import Diffusion
from graphuq.priors.eigen_scales import EigenScales
from graphuq.priors.inverse_cosine import InverseCosine
from graphuq.priors.inverse_laplacian import InverseLaplacian
from graphuq.priors.learned_spectrum import LearnedSpectrum
from graphuq.priors.matern import Matern
from graphuq.priors.random_series import RandomSeries
from graphuq.priors.random_walk import RandomWalk
from graphuq.priors.regularized_laplacian import RegularizedLaplacian
from graphuq.spectrum import PowerPrecision

__all__ = [
    "Diffusion",
    "EigenScales",
    "InverseCosine",
    "InverseLaplacian",
    "LearnedSpectrum",
    "Matern",
    "Modes",
    "PowerPrecision",
    "Prior",
    "RandomSeries",
    "RandomWalk",
    "RegularizedLaplacian",
    "SpectralStd",
]
