"""What to label next: rules that score rows, batches, and when to stop."""

from graphuq.acquisition.audit import audited_errors
from graphuq.acquisition.base import Rule
from graphuq.acquisition.forecast import forecast_errors
from graphuq.acquisition.margin import Margin
from graphuq.acquisition.pool import Pool
from graphuq.acquisition.query import RULES, query
from graphuq.acquisition.random import Random
from graphuq.acquisition.variance_reduction import VarianceReduction

__all__ = [
    "RULES",
    "Margin",
    "Pool",
    "Random",
    "Rule",
    "VarianceReduction",
    "audited_errors",
    "forecast_errors",
    "query",
]
