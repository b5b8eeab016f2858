"""Floor 3: Gaussian random series, one file each."""

from graphuq.priors.base import Prior, SpectralStd
from graphuq.priors.inverse_laplacian import InverseLaplacian
from graphuq.priors.matern import Matern

__all__ = ["InverseLaplacian", "Matern", "Prior", "SpectralStd"]
