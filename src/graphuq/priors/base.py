"""What every prior offers: eigenvalues → spectral standard deviations."""

from abc import abstractmethod

import equinox as eqx
import numpy as np
from jaxtyping import Float

from graphuq.errors import IncompatibleParts
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


def null_vectors_take_part(constant: bool | None, spectrum: Spectrum) -> bool:
    """Whether they do: as ``constant`` says, or if it is None, only if the graph is disconnected.

    Raises
    ------
    IncompatibleParts
        If they do not, and isolated nodes have no other mode to live on.
    """
    take_part = spectrum.n_components > 1 if constant is None else constant
    if not take_part and (n_isolated := int((spectrum.degrees == 0).sum())):
        raise IncompatibleParts(
            f"constant=False leaves u = 0 at {n_isolated} isolated node(s); use constant=None, "
            "or drop those nodes"
        )
    return take_part
