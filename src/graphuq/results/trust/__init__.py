"""When to trust a result: checks of convergence and of trustworthiness, and their verdict."""

from graphuq.results.trust.base import Check, Trust
from graphuq.results.trust.truncation import TruncationEffect, truncation_effect

__all__ = ["Check", "TruncationEffect", "Trust", "truncation_effect"]
