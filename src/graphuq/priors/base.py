"""What every prior offers: eigenvalues → spectral standard deviations."""

from abc import abstractmethod

import equinox as eqx
import numpy as np
from jaxtyping import Float

from graphuq.spectrum import Spectrum


class SpectralStd(eqx.Module):
    """Standard deviations of the random series ``u = Σ_j s_j ξ_j q_j + s̄ r`` (MATH §1).

    Attributes
    ----------
    modes : numpy.ndarray, shape (L,)
        s_j >= 0 of each kept eigenvector.
    tail : float
        s̄ of everything orthogonal to them; 0 without a tail.
    """

    modes: Float[np.ndarray, " L"]
    tail: float


class Prior(eqx.Module):
    """A Gaussian random series on the spectrum of a graph Laplacian."""

    @abstractmethod
    def spectral_std(self, spectrum: Spectrum) -> SpectralStd:
        """Standard deviation of each coefficient of the series."""
