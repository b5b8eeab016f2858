"""Models: what turns a basis and labels into a weighted set of posteriors."""

from collections.abc import Callable

from graphuq.models.auto import Auto
from graphuq.models.average import Average
from graphuq.models.base import Model
from graphuq.models.counts import Counts
from graphuq.models.evidence import Fixed, LargestEvidence
from graphuq.models.labels import Labels
from graphuq.models.likeliest import Likeliest
from graphuq.models.mixture import Mixture, Term
from graphuq.models.ordered import OrderedAverage
from graphuq.models.pooled import Pooled
from graphuq.models.regression import Regression

MODELS: dict[str, Callable[[], Model]] = {
    "auto": Auto,
    "average": Average,
    "likeliest": Likeliest,
    "largest-evidence": LargestEvidence,
    "fixed": Fixed,
}
"""Models by the names that users type."""

__all__ = [
    "MODELS",
    "Auto",
    "Average",
    "Counts",
    "Fixed",
    "Labels",
    "LargestEvidence",
    "Likeliest",
    "Mixture",
    "Model",
    "OrderedAverage",
    "Pooled",
    "Regression",
    "Term",
]
