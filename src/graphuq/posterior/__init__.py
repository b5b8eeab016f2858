"""Posterior: prior times likelihood at the labelled nodes, and its form in white coordinates."""

from graphuq.utils.lazy_imports import lazy_names

__getattr__ = lazy_names(__name__, {"Posterior": "posterior"})
