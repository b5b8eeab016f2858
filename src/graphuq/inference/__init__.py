"""Ways to explore a posterior, one file each; those in `WITH_JAX` need the extra "jax"."""

from typing import TYPE_CHECKING

from graphuq.utils.lazy_imports import lazy_names

if TYPE_CHECKING:
    from graphuq.inference.answers import GaussianApproximation, GaussianMixture, Point
    from graphuq.inference.base import Approximation, Sampler
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
    from graphuq.inference.transitions import Info, State

WITHOUT_JAX = {
    "AnnotatorGibbs": "collapsed_gibbs",
    "Approximation": "base",
    "CollapsedGibbs": "collapsed_gibbs",
    "EachComponent": "model_average",
    "ExpectationPropagation": "expectation_propagation",
    "GaussianApproximation": "answers",
    "GaussianMixture": "answers",
    "Independence": "independence.gaussian",
    "IndependenceSampler": "independence.base",
    "MCMC": "mcmc",
    "ModelAverage": "model_average",
    "Point": "answers",
    "ReversibleJump": "reversible_jump",
    "Sampler": "base",
    "SequentialIndependence": "independence.sequential",
}
WITH_JAX = {
    "EllipticalSlice": "elliptical_slice",
    "ExactHamiltonian": "exact_hamiltonian",
    "Hamiltonian": "hamiltonian",
    "Info": "transitions",
    "Kernel": "kernel",
    "Laplace": "laplace",
    "MAP": "map",
    "MetropolisWithinGibbs": "metropolis_within_gibbs",
    "PCN": "pcn",
    "ParallelTempering": "parallel_tempering",
    "ReflectiveHamiltonian": "exact_hamiltonian.reflective",
    "State": "transitions",
    "TemperedHamiltonian": "exact_hamiltonian.tempered",
}
"""Module of each name, inside the package, by whether it needs JAX."""

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

__getattr__ = lazy_names(__name__, WITHOUT_JAX | WITH_JAX)
