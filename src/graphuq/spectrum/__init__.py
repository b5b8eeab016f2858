"""Spectrum of a graph: Laplacians, their smallest eigenpairs, and solutions without eigenpairs."""

from graphuq.spectrum.basis import NodeBasis
from graphuq.spectrum.closed_form import ProductBasis
from graphuq.spectrum.covariance_columns import CovarianceColumns
from graphuq.spectrum.feature_columns import with_feature_columns, without_feature_columns
from graphuq.spectrum.fiedler import fiedler_signs
from graphuq.spectrum.harmonic import harmonic_function
from graphuq.spectrum.laplacian import Laplacian
from graphuq.spectrum.nystrom import nystrom_spectrum
from graphuq.spectrum.precision import Precision
from graphuq.spectrum.solve import laplacian_spectrum
from graphuq.spectrum.spectrum import Spectrum, load_spectrum

__all__ = [
    "CovarianceColumns",
    "Laplacian",
    "NodeBasis",
    "Precision",
    "ProductBasis",
    "Spectrum",
    "fiedler_signs",
    "harmonic_function",
    "laplacian_spectrum",
    "load_spectrum",
    "nystrom_spectrum",
    "with_feature_columns",
    "without_feature_columns",
]
