"""Hamiltonian trajectories solved exactly between the half-spaces of a step likelihood."""

from graphuq.inference.exact_hamiltonian.reflective import ReflectiveHamiltonian
from graphuq.inference.exact_hamiltonian.sampler import ExactHamiltonian
from graphuq.inference.exact_hamiltonian.tempered import TemperedHamiltonian

__all__ = ["ExactHamiltonian", "ReflectiveHamiltonian", "TemperedHamiltonian"]
