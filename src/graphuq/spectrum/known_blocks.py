"""Blocks of columns that are known, such as those of a file."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from graphuq.spectrum.spectrum import Spectrum
from graphuq.spectrum.whitened import functions_of
from graphuq.utils.concurrency import cached_property


@dataclass(frozen=True, eq=False)
class Functions:
    """A block of columns that are known: functions on the nodes.

    Attributes
    ----------
    name : str
    values : numpy.ndarray, shape (N, m)
        Φ. A field with unit coefficients has the covariance ``Φ Φᵀ``.
    scales : numpy.ndarray, shape (d,), optional
        Those of `FunctionsOfFew`, from which the features of a row determine its values.
    """

    name: str
    values: Float[np.ndarray, "N m"]
    scales: Float[np.ndarray, " d"] | None = None


@dataclass(frozen=True, eq=False)
class OtherEigenpairs:
    """A block of known eigenpairs of another graph of the same nodes.

    Attributes
    ----------
    name : str
    spectrum : Spectrum
    """

    name: str
    spectrum: Spectrum

    @cached_property
    def values(self) -> Float[np.ndarray, "N l"]:
        """Eigenvectors as functions on the nodes."""
        return functions_of(self.spectrum)
