"""Reversible jump for random series with a probit (Hartog and van Zanten 2018)."""

from graphuq.inference.reversible_jump.sampler import ReversibleJump

__all__ = ["ReversibleJump"]
