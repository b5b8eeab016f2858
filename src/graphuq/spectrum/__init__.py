"""Spectrum of a graph: Laplacians, their smallest eigenpairs, and solutions without eigenpairs."""

from graphuq.spectrum.basis import NodeBasis, SpectralBasis
from graphuq.spectrum.blocks import Basis
from graphuq.spectrum.closed_form import ProductBasis
from graphuq.spectrum.covariance_columns import CovarianceColumns
from graphuq.spectrum.exponential import ExponentialFunctions
from graphuq.spectrum.few_variables import FunctionsOfFew
from graphuq.spectrum.fiedler import fiedler_signs
from graphuq.spectrum.harmonic import harmonic_function
from graphuq.spectrum.joined import JoinedGraph
from graphuq.spectrum.known_blocks import Functions
from graphuq.spectrum.laplacian import Laplacian
from graphuq.spectrum.nystrom import nystrom_spectrum
from graphuq.spectrum.power_precision import PowerPrecision
from graphuq.spectrum.powers import PowerFunctions, ThirdPower
from graphuq.spectrum.precision import Precision
from graphuq.spectrum.smoothed import SmoothedFeatures
from graphuq.spectrum.solve import laplacian_spectrum
from graphuq.spectrum.spectrum import Spectrum, load_spectrum
from graphuq.spectrum.whitened import WhitenedGraph, WhitenedLinear

__all__ = [
    "Basis",
    "CovarianceColumns",
    "ExponentialFunctions",
    "Functions",
    "FunctionsOfFew",
    "JoinedGraph",
    "Laplacian",
    "NodeBasis",
    "PowerFunctions",
    "PowerPrecision",
    "Precision",
    "ProductBasis",
    "SmoothedFeatures",
    "SpectralBasis",
    "Spectrum",
    "ThirdPower",
    "WhitenedGraph",
    "WhitenedLinear",
    "fiedler_signs",
    "harmonic_function",
    "laplacian_spectrum",
    "load_spectrum",
    "nystrom_spectrum",
]
