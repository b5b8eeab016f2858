"""Selection of graph, prior and likelihood parameters by the evidence of the labels."""

from graphuq.classifier.search.search import EvidenceSearch

__all__ = ["EvidenceSearch"]
