"""Floor 6: choosing a graph, a prior and a likelihood by evidence."""

from graphuq.classifier.search.search import EvidenceSearch

__all__ = ["EvidenceSearch"]
