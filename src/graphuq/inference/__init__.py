"""Floor 4: ways to explore a posterior, one file each."""

from graphuq.inference.answers import GaussianApproximation, GaussianMixture, Point
from graphuq.inference.base import Approximation, Info, Sampler, State
from graphuq.inference.collapsed_gibbs import AnnotatorGibbs, CollapsedGibbs
from graphuq.inference.elliptical_slice import EllipticalSlice
from graphuq.inference.exact_hamiltonian import ExactHamiltonian
from graphuq.inference.exact_hamiltonian.reflective import ReflectiveHamiltonian
from graphuq.inference.exact_hamiltonian.tempered import TemperedHamiltonian
from graphuq.inference.expectation_propagation import ExpectationPropagation
from graphuq.inference.hamiltonian import Hamiltonian
from graphuq.inference.independence.base import IndependenceSampler
from graphuq.inference.independence.gaussian import Independence
from graphuq.inference.independence.sequential import SequentialIndependence
from graphuq.inference.kernel import Kernel
from graphuq.inference.laplace import Laplace
from graphuq.inference.map import MAP
from graphuq.inference.mcmc import MCMC
from graphuq.inference.metropolis_within_gibbs import MetropolisWithinGibbs
from graphuq.inference.model_average import EachComponent, ModelAverage
from graphuq.inference.parallel_tempering import ParallelTempering
from graphuq.inference.pcn import PCN
from graphuq.inference.reversible_jump import ReversibleJump

__all__ = [
    "MAP",
    "MCMC",
    "PCN",
    "AnnotatorGibbs",
    "Approximation",
    "CollapsedGibbs",
    "EachComponent",
    "EllipticalSlice",
    "ExactHamiltonian",
    "ExpectationPropagation",
    "GaussianApproximation",
    "GaussianMixture",
    "Hamiltonian",
    "Independence",
    "IndependenceSampler",
    "Info",
    "Kernel",
    "Laplace",
    "MetropolisWithinGibbs",
    "ModelAverage",
    "ParallelTempering",
    "Point",
    "ReflectiveHamiltonian",
    "ReversibleJump",
    "Sampler",
    "SequentialIndependence",
    "State",
    "TemperedHamiltonian",
]
