"""Choosing hyperparameters and graphs by the marginal likelihood of the labels."""

from graphuq.utils.lazy_imports import lazy_names

__getattr__ = lazy_names(__name__, {"EvidenceMaximum": "maximize", "maximize_evidence": "maximize"})
